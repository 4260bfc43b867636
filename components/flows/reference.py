"""docs/reference/flows.md."""

from __future__ import annotations

from components.flows.flow import Protocol, Role, Table, into, roles, spans

_HEAD = """\
# Flows

Who opens connections to whom, on which port, and why. Security groups, firewalls and nftables are to come from this
one table, `components/flows/table.py`, and from nothing beside it; `flows(cluster)` is what one cluster needs of it. Written here
by `make golden`: a cluster with both etcds on hosts of their own, workers in the region and at a site that a VPN joins,
and VXLAN with direct routing, with the default ports.

- A connection's answers belong to it. What has no row is closed.
- A role stands for the addresses on the wire. What pods send beyond their own range carries the address of their
  worker, so their way to the API is a row of the worker.
- With `etcd.events.hosts: main`, the rows of etcd events are rows of the hosts of main.
- Without `direct_routing`, nothing reaches a pod but inside VXLAN. With `host-gw` there is no VXLAN.
- With `control_plane.public`, the operators that it names reach the API by a load balancer of its own, on the API's
  port alone, which passes on to API servers as the first one does.
- Without `vpn` at a site, there is neither an edge router nor a gateway. With it, all that the site and the region send
  each other goes through its tunnels; the rows of who sends what stay the same.
- Where a load balancer keeps its clients' addresses, a rule for API servers names who may reach the load balancer,
  beside the load balancer and its probes.
- Ports of Services (type NodePort and LoadBalancer, 30000 to 32767) answer the cluster itself, as long as
  `network.node_ports.cluster` does not say otherwise, and whom `network.node_ports.outside` names: nobody, by default.
- Without `roce` at a site, its workers open nothing for RDMA to each other; without `ceph`, nothing for storage.
- Workers at sites have these rows as rules of nftables of their own (role firewall), unless `firewall_enabled` says
  otherwise; pods on a host may ask of it what workers may.
- What workloads ask of the world (data sets, package sites) is the operator's choice, and none of these rows.
"""

_CLOSED = """\

## Closed on purpose

- **API servers open nothing towards workers and pods.** Logs, exec and webhooks travel in the tunnels that konnectivity
  agents opened, so workers may stand behind NAT. Ports of Services are closed to them too.
- **Workers and pods reach the load balancer, and neither the API servers behind it nor an etcd.** The etcds do not
  reach each other.
- **API servers reach neither each other nor their load balancer**: each uses its own host, so no cloud has to bring a
  packet back to its sender.
- **Nobody logs in on the cloud side.** SSH is for workers at a site, from the operator alone.
- **Metrics and health** of etcd, the controller manager, the scheduler and konnectivity, and kube-proxy's metrics,
  listen on 127.0.0.1. kube-proxy's health (10256) is on workers' own addresses, and has no row.
- **Nothing outside opens a connection inwards** but the operator, and whom the spec lets in at ports of Services. Control-plane hosts pull no images; workers at a site
  have no access to the secret store.
"""


def reference(table: Table) -> str:
    """The table for people, by destination."""
    sections = "".join(_section(table, role) for role in roles(table) if into(table, role))
    return f"{_HEAD}{sections}{_CLOSED}"


def _section(table: Table, destination: Role) -> str:
    sources: dict[tuple[str, str, str], list[str]] = {}
    for flow in into(table, destination):
        ports = "every" if flow.protocol is Protocol.ALL else ", ".join(spans(flow.ports)) or "none"
        sources.setdefault((flow.protocol.value, ports, flow.why), []).append(flow.source.value)
    rows = (f"| {', '.join(names)} | {' | '.join(what)} |\n" for what, names in sources.items())
    return f"\n## To: {destination.value}\n\n| from | protocol | port | why |\n|---|---|---|---|\n{''.join(rows)}"
