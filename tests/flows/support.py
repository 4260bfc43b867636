"""Clusters of every shape, and queries that several tests of flows need."""

from __future__ import annotations

from hypothesis import strategies as st

from components.flows.flow import Protocol, Role, into, out_of
from network.addresses import ROLES

REGION = {"cpu": {"machine": "m", "max": 3}}
ETCDS = (Role.ETCD_MAIN, Role.ETCD_EVENTS)
VPN = {
    "asn": 65010,
    "inside": "169.254.21.0/29",
    "routers": {"a": {"address": "203.0.113.10", "psk": {"secret": "psk"}}},
}
ROCE = {"rails": {"workers": {"rail-0": {"interface": "ens1"}}}}
CEPH = {"hosts": ["workers"], "disks": {"nvme": {"by_id": "nvme-SAMSUNG_MZQL2*", "count": 2, "min_size": "1TiB"}}}
PUBLIC = {"name": "api.lab.example.org", "operators": ["198.51.100.0/24"]}
WORKERS = (Role.WORKER_IN_REGION, Role.WORKER_AT_SITE)


def shape(shared, backend, direct, where, ports, vxlan, ssh, vpn, public, services):
    """Return changes of the lab's spec. where: which of "region" and "site" have workers."""
    etcds = {role: {"client_port": ports[2 * n], "peer_port": ports[2 * n + 1]} for n, role in enumerate(ROLES)}
    return {
        "control_plane": {"public": public},
        "etcd": {"main": etcds["main"], "events": etcds["events"] | {"hosts": "main" if shared else "dedicated"}},
        "network": {"flannel": {"backend": backend, "direct_routing": direct, "port": vxlan}, "node_ports": services},
        "sites": {"onprem": {"ssh": {"port": ssh}, "vpn": vpn}},
        "pools": (REGION if "region" in where else {}) | ({} if "site" in where else {"workers": None}),
    }


PORTS = st.integers(11_000, 12_000)
SHAPES = st.builds(
    shape,
    shared=st.booleans(),
    backend=st.sampled_from(["vxlan", "host-gw"]),
    direct=st.booleans(),
    where=st.sets(st.sampled_from(["region", "site"])),
    ports=st.lists(PORTS, min_size=4, max_size=4, unique=True),
    vxlan=PORTS,
    ssh=st.sampled_from([22, 2222]),
    vpn=st.sampled_from([None, VPN]),
    public=st.sampled_from([None, PUBLIC]),
    services=st.sampled_from([{}, {"cluster": False}, {"outside": ["192.0.2.0/24"]}]),
)


def ports_into(table, role, protocol=Protocol.TCP):
    return {port for flow in into(table, role) if flow.protocol is protocol for port in flow.ports}


def between(table, source, destination):
    return {port for flow in out_of(table, source) if flow.destination is destination for port in flow.ports}
