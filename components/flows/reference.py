"""Writes docs/reference/flows.md."""

from __future__ import annotations

from components.flows.flow import Protocol, Role, Table, into, roles, spans

_HEAD = """\
# Flows

Who opens connections to whom, on which port, and why. Security groups, firewalls and nftables come only from this table,
`components/flows/table.py`; `flows(cluster)` returns the rows that one cluster needs. `make golden` writes this page for a
cluster with separate hosts for each etcd, workers in the region and at a site with a VPN, VXLAN with direct routing, and the
default ports.

- Replies belong to their connection. A connection without a row is closed.
- A role stands for the addresses on the wire. Packets from pods to addresses outside the pod range carry the address of
  their worker, so pods' access to the API is a row of the worker.
- With `etcd.events.hosts: main`, the rows of etcd events apply to the hosts of main.
- Without `direct_routing`, pods are reached only through VXLAN. With `host-gw` there is no VXLAN.
- With `control_plane.public`, the operators that it names reach the API through a second, public load balancer. It serves
  only the API's port, and forwards to the API servers like the first one.
- Without `vpn` at a site, there is neither an edge router nor a gateway. With it, all traffic between the site and the
  region goes through its tunnels, and the other rows stay the same.
- If a load balancer preserves client addresses, the rule for API servers names the clients of the load balancer, in
  addition to the load balancer and its probes.
- Ports of Services (type NodePort and LoadBalancer, 30000 to 32767) are open to the cluster itself, unless
  `network.node_ports.cluster` closes them, and to the ranges in `network.node_ports.outside` (none by default).
- Without `roce` at a site, its workers open no ports for RDMA to each other; without `ceph`, none for storage.
- Workers at sites enforce these rows with nftables (role firewall), unless `firewall_enabled` turns that off. Pods may
  reach the same ports of their own host as workers.
- The pods that watch the cluster run where controllers run: on workers of one pool, in the region or at a site. Rows name all
  workers there. With `monitoring.enabled: false` there are no such rows.
- Traffic of workloads to the outside (data sets, package sites) is up to the operator and has no rows.
"""

_CLOSED = """\

## Closed on purpose

- **API servers open no connections to workers and pods.** Logs, exec, webhooks and metrics-server use the tunnels that
  konnectivity agents opened, so workers may be behind NAT. Ports of Services are closed to API servers too.
- **Workers and pods reach the load balancer, but neither the API servers behind it nor an etcd.** Of the hosts of both,
  the pods that watch the cluster reach one port, and so do other pods and workers of the same kind, in the region or at sites: who
  has no certificate of the scraper gets no answer there. The etcds do not reach each other.
- **API servers reach neither each other nor their load balancer.** Each uses the API server on its own host, so no cloud
  has to return a packet to its sender.
- **There is no login on the cloud side.** SSH is only for workers at a site, and only from the operator.
- **Metrics and health** of etcd, the controller manager, the scheduler and konnectivity, and kube-proxy's metrics,
  listen on 127.0.0.1. `metrics-relay` on control-plane hosts passes metrics on. kube-proxy's health port (10256) listens on the worker's own addresses and has no row.
- **Nothing outside opens a connection inwards**, except for the operator and the clients that the spec allows at ports of
  Services. Control-plane hosts pull no images. Workers at a site have no access to the secret store.
"""


def reference(table: Table) -> str:
    """Return the page: the table by destination."""
    sections = "".join(_section(table, role) for role in roles(table) if into(table, role))
    return f"{_HEAD}{sections}{_CLOSED}"


def _section(table: Table, destination: Role) -> str:
    sources: dict[tuple[str, str, str], list[str]] = {}
    for flow in into(table, destination):
        ports = "every" if flow.protocol is Protocol.ALL else ", ".join(spans(flow.ports)) or "none"
        sources.setdefault((flow.protocol.value, ports, flow.why), []).append(flow.source.value)
    rows = (f"| {', '.join(names)} | {' | '.join(what)} |\n" for what, names in sources.items())
    return f"\n## To: {destination.value}\n\n| from | protocol | port | why |\n|---|---|---|---|\n{''.join(rows)}"
