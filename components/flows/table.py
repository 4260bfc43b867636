"""Who connects to whom on which port in one cluster: the source of every firewall."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from cluster.artefacts import ArtefactSource
from cluster.controllers import home
from cluster.network import NODE_PORTS, FlannelBackend
from cluster.provisioning import reader_secrets
from cluster.spec import Cloud, Cluster, ClusterSpec, EtcdHosts, RoleName
from cluster.storage import controllers_pool, has_file
from components.control_plane.ports import API_PORT, KONNECTIVITY_PORT
from components.flows.flow import CLOUD_SIDE, Flow, Protocol, Role, Table
from etcd.members import agent_port, settings
from network.addresses import ROLES

KUBELET_PORT = 10250
"""The kubelet's default, which its configuration does not change."""
HTTP, HTTPS, DNS, NTP, NFS = 80, 443, 53, 123, 2049
"""Ports of services around the cluster, from IANA's registry; metadata services use HTTP."""
NFS_3 = (111, 2046, NFS, 2050, 4045)
"""NFS 3: rpcbind, statd, nfs, mountd and nlockmgr (Filestore, "Configure firewall rules")."""
IKE, IKE_NAT, BGP = 500, 4500, 179
"""RFC 7296: IKE, and its port through NAT, which also carries ESP in UDP. RFC 4271: BGP."""

ROCE = 4791
"""RoCE v2, from IANA's registry."""
RDMA_TESTS = range(18515, 18515 + 64)
"""perftest's default port, and one for each pair that is measured at the same time (`operations.roce`)."""
CEPH_MONITORS, CEPH_DAEMONS = (3300, 6789), range(6800, 7569)
"""Ports of monitors for versions 2 and 1 of Ceph's protocol, and the range of all other daemons (Ceph, "Network Configuration
Reference")."""

CEPH = "Daemons of Ceph speak to each other, and hosts to them for the volumes of their pods."
LEDGER = "The controller that keeps the ledger writes its journal and its days."
POWER = "The controller that keeps the ledger reads the power of machines from their BMCs."
AUDIT_LOGS = "API servers upload their audit logs, so that the logs outlive the hosts."
ATTESTED = "API servers ask the cloud whether a host that joins in the region belongs to the cluster."
PORTS_OF_SERVICES = "Ports of Services on workers, which kube-proxy leads to pods."
SSH_LOGIN = "Ansible configures workers over SSH."

UPSTREAM = ArtefactSource(mirror=None, sha256={})
"""Programs and images from their publishers' sites."""

_CONTENT: dict[RoleName, str] = {"main": "everything but Events", "events": "Events"}


def flows(cluster: Cluster, source: ArtefactSource = UPSTREAM, buckets: str | None = None) -> Table:
    """Return the flows that a checked cluster needs, by destination. Everything else stays closed.

    source: where hosts download, as the provider knows it. buckets: URL of the object storage, None for the cloud's own.
    """
    spec = cluster.spec
    workers = tuple(_workers(spec))
    hosts = {role: _hosts(spec, role) for role in ROLES}
    machines = tuple(dict.fromkeys((Role.API_SERVER, *hosts.values(), *workers)))
    return (
        *_into_control_plane(cluster, workers),
        *(flow for role in ROLES for flow in _into_etcd(cluster, role, hosts[role])),
        *(flow for host in dict.fromkeys(hosts.values()) for flow in _into_agent(cluster, host)),
        *_into_workers(spec, workers),
        *_into_pods(spec, workers),
        *_between_site_and_cloud(spec),
        *_for_volumes(spec),
        *_for_backups(cluster, hosts, buckets),
        *_tcp([Role.API_SERVER], Role.BUCKETS, [_port(buckets)], AUDIT_LOGS),
        *_tcp(_home_of_the_ledger(cluster), Role.BUCKETS, [_port(buckets)], LEDGER),
        *_to_bmcs(cluster),
        *_tcp([Role.API_SERVER] * (spec.cloud_workers and not cluster.is_lab), Role.CLOUD_API, [HTTPS], ATTESTED),
        *_to_the_outside(spec, machines, workers, source),
    )


def _workers(spec: ClusterSpec) -> Iterator[Role]:
    if spec.cloud_workers:
        yield Role.WORKER_IN_REGION
    if any(pool.site for pool in spec.pools.values()):
        yield Role.WORKER_AT_SITE


def _hosts(spec: ClusterSpec, role: RoleName) -> Role:
    """Return the role of the hosts that the members of an etcd run on."""
    dedicated = role == "events" and spec.etcd.events.hosts is EtcdHosts.DEDICATED
    return Role.ETCD_EVENTS if dedicated else Role.ETCD_MAIN


def _tcp(sources: Iterable[Role], destination: Role, ports: Iterable[int], why: str) -> Iterator[Flow]:
    return (Flow(source, destination, Protocol.TCP, tuple(ports), why) for source in sources)


def _udp(sources: Iterable[Role], destination: Role, port: int, why: str) -> Iterator[Flow]:
    return (Flow(source, destination, Protocol.UDP, (port,), why) for source in sources)


def _operators(cluster: Cluster) -> tuple[Role, ...]:
    """Return who operates the region: nobody if the spec names no ranges of operators."""
    return (Role.OPERATOR,) if cluster.is_lab or cluster.spec.control_plane.operators else ()


def _into_control_plane(cluster: Cluster, workers: tuple[Role, ...]) -> Iterator[Flow]:
    spec, balancer = cluster.spec, Role.LOAD_BALANCER
    yield from _tcp(_operators(cluster), balancer, [API_PORT], "The operator calls the API.")
    yield from _tcp(workers, balancer, [API_PORT], "Kubelets, flannel, kube-proxy and pods call the API.")
    tunnels = "Konnectivity agents open the tunnels through which API servers reach nodes and pods."
    yield from _tcp(workers, balancer, [KONNECTIVITY_PORT], tunnels)
    requests = "Requests to the API, and readiness probes."
    yield from _tcp([balancer], Role.API_SERVER, [API_PORT], requests)
    yield from _tcp([balancer], Role.API_SERVER, [KONNECTIVITY_PORT], "Tunnels of konnectivity agents.")
    if spec.control_plane.public:
        outside = "Operators without a private connection to the region call the API (control_plane.public)."
        yield from _tcp([Role.PUBLIC_OPERATOR], Role.PUBLIC_BALANCER, [API_PORT], outside)
        yield from _tcp([Role.PUBLIC_BALANCER], Role.API_SERVER, [API_PORT], requests)


def _into_etcd(cluster: Cluster, role: RoleName, hosts: Role) -> Iterator[Flow]:
    client, peer = [settings(cluster, role).client_port], [settings(cluster, role).peer_port]
    yield from _tcp([Role.API_SERVER], hosts, client, f"API servers store {_CONTENT[role]} in etcd {role}.")
    yield from _tcp(_operators(cluster), hosts, client, f"menagerie status checks every member of etcd {role}.")
    yield from _tcp([hosts], hosts, client, f"etcdctl-{role} on the host of a member calls every member.")
    yield from _tcp([hosts], hosts, peer, f"Members of etcd {role} replicate to each other.")


def _into_agent(cluster: Cluster, hosts: Role) -> Iterator[Flow]:
    """Yield the flow to the agent, which serves all members of a host."""
    yield from _tcp(
        _operators(cluster), hosts, [agent_port(cluster)], "Operators call the agent that repairs etcd members."
    )


def _into_workers(spec: ClusterSpec, workers: tuple[Role, ...]) -> Iterator[Flow]:
    if Role.WORKER_AT_SITE in workers:
        sites = {pool.site for pool in spec.pools.values() if pool.site}
        ssh = sorted({spec.sites[site].ssh.port for site in sites})
        yield from _tcp([Role.OPERATOR], Role.WORKER_AT_SITE, ssh, SSH_LOGIN)
    asks = "metrics-server asks each kubelet for its metrics, and the agent of another node one without an agent."
    for worker in workers:
        yield from _tcp(workers, worker, [KUBELET_PORT], asks)
        if spec.network.flannel.backend is FlannelBackend.VXLAN:
            port = spec.network.flannel.port
            yield from _udp(workers, worker, port, "VXLAN of flannel carries packets of pods between nodes.")
    yield from _to_node_ports(spec, workers)
    yield from _between_machines_of_a_site(spec)


def _to_node_ports(spec: ClusterSpec, workers: tuple[Role, ...]) -> Iterator[Flow]:
    """Yield the flows to ports of Services. Packets of pods carry their workers' addresses here."""
    node_ports = spec.network.node_ports
    clients = (*(workers if node_ports.cluster else ()), *([Role.SERVICE_CLIENT] if node_ports.outside else []))
    for worker in workers:
        for protocol in (Protocol.TCP, Protocol.UDP):
            yield from (Flow(client, worker, protocol, tuple(NODE_PORTS), PORTS_OF_SERVICES) for client in clients)


def _between_machines_of_a_site(spec: ClusterSpec) -> Iterator[Flow]:
    site = [Role.WORKER_AT_SITE]
    if any(declared.roce for declared in spec.sites.values()):
        # Network cards receive these packets without the kernel, but a firewall on the way must let them through.
        yield from _udp(site, site[0], ROCE, "RDMA over Ethernet, version 2, between the cards of machines.")
        yield from _tcp(site, site[0], RDMA_TESTS, "menagerie roce test agrees with the other end of each measurement.")
    if any(declared.ceph for declared in spec.sites.values()):
        yield from _tcp(site, site[0], [*CEPH_MONITORS, *CEPH_DAEMONS], CEPH)


def _into_pods(spec: ClusterSpec, workers: tuple[Role, ...]) -> Iterator[Flow]:
    flannel = spec.network.flannel
    native = flannel.direct_routing or flannel.backend is FlannelBackend.HOST_GW
    if Role.WORKER_AT_SITE in workers and native:
        why = "Native routes of flannel between hosts in one layer-2 network of a site."
        for source in (Role.WORKER_AT_SITE, Role.POD):
            yield Flow(source, Role.POD, Protocol.ALL, (), why)


def _between_site_and_cloud(spec: ClusterSpec) -> Iterator[Flow]:
    """Yield the flows of the tunnels themselves. The other rows say who sends what inside them."""
    if not any(site.vpn for site in spec.sites.values()):
        return
    edge, gateway = Role.SITE_EDGE, Role.VPN_GATEWAY
    for source, destination in ((edge, gateway), (gateway, edge)):
        exchange = "IKEv2 sets up the tunnels of a site and renews their keys, from either end."
        yield Flow(source, destination, Protocol.UDP, (IKE, IKE_NAT), exchange)
        yield Flow(source, destination, Protocol.ESP, (), "Encrypted traffic between a site and the region.")
    # Azure's gateway waits for a router with a link-local address to open the session (VPN Gateway FAQ).
    yield from _tcp([edge], gateway, [BGP], "BGP inside a tunnel announces racks of the site and hosts in the region.")


def _for_volumes(spec: ClusterSpec) -> Iterator[Flow]:
    """Yield the flows of CSI drivers. Their controllers share the firewall of all workers in the region."""
    worker = [Role.WORKER_IN_REGION]
    if controllers_pool(spec):
        yield from _tcp(worker, Role.CLOUD_API, [HTTPS], "CSI controllers create, attach and delete volumes.")
    if has_file(spec):
        ports = NFS_3 if spec.control_plane.cloud is Cloud.GCP else (NFS,)
        yield from _tcp(worker, Role.FILE_STORE, ports, "Nodes mount shared file systems for their pods.")


def _for_backups(cluster: Cluster, hosts: Mapping[RoleName, Role], buckets: str | None) -> Iterator[Flow]:
    writing = dict.fromkeys(host for role, host in hosts.items() if settings(cluster, role).backup)
    why = "Backups of etcd, encrypted before they leave the host, and drills that restore them."
    yield from _tcp(writing, Role.BUCKETS, [_port(buckets)], why)


def _home_of_the_ledger(cluster: Cluster) -> Iterator[Role]:
    """Yield where the pods of the controller `metering` run, if there is one."""
    pool = home(cluster) if cluster.spec.metering else None
    if pool:
        yield Role.WORKER_AT_SITE if cluster.spec.pools[pool].site else Role.WORKER_IN_REGION


def _to_bmcs(cluster: Cluster) -> Iterator[Flow]:
    """Yield the flow to BMCs whose power is read. `check` demands that the controllers run at a site."""
    readers = reader_secrets(cluster.spec.sites)
    bmcs = [site.provisioning.bmc for name, site in cluster.spec.sites.items() if name in readers and site.provisioning]
    ports = sorted({own.port for own in bmcs if own})
    homes = [role for role in _home_of_the_ledger(cluster) if role is Role.WORKER_AT_SITE]
    if ports:
        yield from _tcp(homes, Role.BMC, ports, POWER)


def _to_registries(spec: ClusterSpec, workers: tuple[Role, ...], source: ArtefactSource) -> Iterator[Flow]:
    """Yield the flows to image registries. A site may have its own mirrors."""
    shared = _port(source.registry)
    sites = [site.registries for site in spec.sites.values()]
    own = {port for registries in sites if registries for port in registries.ports()}
    at_sites = sorted(own | (set() if sites and all(sites) else {shared}))
    for worker in workers:
        ports = at_sites if worker is Role.WORKER_AT_SITE else [shared]
        yield from _tcp([worker], Role.REGISTRY, ports, "Container images.")


def _to_the_outside(
    spec: ClusterSpec, machines: tuple[Role, ...], workers: tuple[Role, ...], source: ArtefactSource
) -> Iterator[Flow]:
    in_cloud = tuple(machine for machine in machines if machine in CLOUD_SIDE)
    fetched = "A host fetches its payload and its secrets with its identity."
    yield from _tcp(in_cloud, Role.SECRET_STORE, [HTTPS], fetched)
    yield from _tcp(machines, Role.ARTEFACT_MIRROR, [_port(source.mirror)], "Programs, by URL and checksum.")
    yield from _to_registries(spec, workers, source)
    names = "Names of download sites and registries, and queries of pods that CoreDNS forwards."
    yield from _udp(machines, Role.RESOLVER, DNS, names)
    yield from _tcp(machines, Role.RESOLVER, [DNS], "DNS answers that are too long for UDP.")
    yield from _udp(machines, Role.TIME_SERVER, NTP, "Certificates and leases need synchronised clocks.")
    yield from _tcp(in_cloud, Role.METADATA, [HTTP], "User data, and the identity of the host.")


def _port(address: str | None) -> int:
    """Return the port of a base URL or of host:port; that of HTTPS if it has none."""
    match = re.match(r"(?:(https?)://)?[^/]*?(?::(\d+))?(?:/|$)", address or "")
    scheme, port = match.groups() if match else (None, None)
    return int(port) if port else HTTP if scheme == "http" else HTTPS
