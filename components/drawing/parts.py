"""The parts of a cluster as bands of cards: the content of its drawing, without positions."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from cluster.artefacts import ArtefactSource
from cluster.mtu import pod_mtu
from cluster.network import FlannelBackend
from cluster.quantities import format_bytes
from cluster.spec import Cloud, Cluster, ClusterSpec, EtcdCluster, RoleName
from cluster.vpn import ENDS, gateway
from components.drawing.arrows import among
from components.drawing.cards import Band, Card
from components.drawing.pools import machine_facts, region_cards, zones
from components.drawing.sites import site_bands
from components.flows.flow import Role, Table, out_of
from etcd.members import members, settings
from network.addresses import ROLES, AddressPlan
from network.vpn import Tunnel

CLOUD_NAMES = {Cloud.AWS: "AWS", Cloud.AZURE: "Azure", Cloud.GCP: "Google Cloud", Cloud.LAB: "the lab"}
_STORES = {
    Cloud.AWS: "AWS Secrets Manager",
    Cloud.AZURE: "Azure Key Vault",
    Cloud.GCP: "Secret Manager",
    Cloud.LAB: "the lab's own",
}
_UNSOLD = ("local-nvme", "lab-folder")
"""Kinds of disks without a size of their own."""


def bands(cluster: Cluster, plan: AddressPlan, table: Table, joined: tuple[Tunnel, ...]) -> Iterator[Band]:
    """Yield the bands from the operator down to the pods."""
    spec = cluster.spec
    entered = {flow.destination for flow in out_of(table, Role.OPERATOR)}
    enters_region = bool(entered - {Role.WORKER_AT_SITE})
    if enters_region:
        yield _operators(cluster)
    yield from _others_outside(spec, table)
    yield _balancer(cluster, plan)
    if public := spec.control_plane.public:
        yield Band("public-balancer", "Public load balancer", public.name, "control", Role.PUBLIC_BALANCER)
    yield _api_servers(cluster, plan)
    for role in ROLES:
        if band := _etcd(cluster, role, plan, table):
            yield band
    if spec.cloud_workers:
        yield _pools(cluster, table)
    if joined:
        yield _gateway(spec)
        yield _edge(joined)
    if entered and not enters_region:
        yield _operators_at_sites()
    yield from site_bands(cluster, among(table, Role.WORKER_AT_SITE))
    yield _pods(cluster, plan)


def _operators(cluster: Cluster) -> Band:
    ranges = ", ".join(map(str, cluster.spec.control_plane.operators))
    facts = f"{ranges}, by a VPN or a peering" if ranges else "where menagerie and kubectl run"
    return Band("operator", "Operators", facts, "outside", Role.OPERATOR, in_region=False)


def _operators_at_sites() -> Band:
    """Return the band of operators who may only log in to machines at sites. It is drawn next to the sites."""
    facts = "log in to machines by SSH; the region admits no operator (control_plane.operators)"
    return Band("operator", "Operators at sites", facts, "outside", Role.OPERATOR, in_region=False)


def _others_outside(spec: ClusterSpec, table: Table) -> Iterator[Band]:
    """Yield the bands of everybody else who connects from outside."""
    if public := spec.control_plane.public:
        allowed = ", ".join(map(str, public.operators))
        yield Band(
            "public-operator", "Operators on the internet", allowed, "outside", Role.PUBLIC_OPERATOR, in_region=False
        )
    if out_of(table, Role.SERVICE_CLIENT):
        clients = ", ".join(map(str, spec.network.node_ports.outside))
        yield Band("clients", "Clients of Services", clients, "outside", Role.SERVICE_CLIENT, in_region=False)


def services(cluster: Cluster, source: ArtefactSource) -> dict[Role, Card]:
    """Return the services around the cluster, which are not part of it."""
    around = {
        Role.SECRET_STORE: ("Secret store", _STORES[cluster.spec.control_plane.cloud]),
        Role.METADATA: ("Metadata service", "user data, identity"),
        Role.CLOUD_API: ("API of the cloud", "volumes"),
        Role.FILE_STORE: ("Shared file system", "NFS"),
        Role.BMC: ("BMCs", "power of machines"),
        Role.BUCKETS: ("Object storage", "backups of etcd"),
        Role.ARTEFACT_MIRROR: ("Artefact source", source.mirror or "upstream download sites"),
        Role.REGISTRY: ("Image registry", source.registry or "upstream registries"),
        Role.RESOLVER: ("DNS resolver", _resolves(cluster)),
        Role.TIME_SERVER: ("Time server", ""),
    }
    return {role: Card(_id(name), name, (what,) if what else ()) for role, (name, what) in around.items()}


def _resolves(cluster: Cluster) -> str:
    """Return what resolves the API's name."""
    return "" if cluster.is_lab else f"private zone {cluster.name}.internal"


def _balancer(cluster: Cluster, plan: AddressPlan) -> Band:
    addresses = plan.balancers
    by_zone = map(str, cluster.spec.control_plane.zones) if len(addresses) > 1 else [None]
    cards = tuple(
        Card(f"balancer-{number}", str(address), (), zone)
        for number, (address, zone) in enumerate(zip(addresses, by_zone, strict=True), start=1)
    )
    facts = f"{plan.endpoint} · private · probes leave out etcd events"
    return Band("balancer", "Load balancer", facts, "control", Role.LOAD_BALANCER, cards)


def _api_servers(cluster: Cluster, plan: AddressPlan) -> Band:
    control = cluster.spec.control_plane
    facts = f"{control.api_servers} × {control.machine}"
    if machine := machine_facts(cluster.spec, control.machine):
        facts += f" ({machine})"
    cards = [Card(f"host-{host.name}", host.name, (str(host.address),), host.zone) for host in plan.api_servers]
    if not cards:
        name = f"group of {control.api_servers}, from one template"
        cards = [Card("host-api", name, (f"spread over {zones(control.zones)}; addresses from the cloud",))]
    return Band("api-servers", "API servers", facts, "control", Role.API_SERVER, tuple(cards))


def _etcd(cluster: Cluster, role: RoleName, plan: AddressPlan, table: Table) -> Band | None:
    """Return the band of an etcd; None for an events etcd on main's hosts, because their cards mention it."""
    by_etcd = {name: members(cluster, name, plan) for name in ROLES}
    events_members = {member.host: member for member in by_etcd["events"]} if role == "main" else {}
    etcd_members = by_etcd[role]
    if role == "events" and etcd_members[0].host == by_etcd["main"][0].host:
        return None
    chosen = settings(cluster, role)
    flow_role = Role.ETCD_MAIN if role == "main" else Role.ETCD_EVENTS
    facts = f"{len(etcd_members)} × {chosen.machine} · {_disk(chosen)} · quota {format_bytes(chosen.quota)}"
    if inside := among(table, flow_role):
        facts += f" · among themselves {inside}"
    cards = []
    for member in etcd_members:
        lines = [str(member.address), chosen.machine]
        if guest_member := events_members.get(member.host):
            lines.append(f"also {guest_member.name} :{guest_member.client_port}")
        cards.append(Card(f"host-{member.host}", member.host, tuple(lines), member.zone, f"member {member.name}"))
    keeps = "everything but Events" if role == "main" else "Events"
    return Band(f"etcd-{role}", f"etcd {role}: {keeps}", facts, "etcd", flow_role, tuple(cards))


def _disk(etcd: EtcdCluster) -> str:
    """Return an etcd's disk. A local disk's size and speed are those of the machine's."""
    if etcd.disk in _UNSOLD:
        return etcd.disk
    return f"{etcd.disk} {format_bytes(etcd.disk_size)}, {etcd.iops} IOPS"


def _pools(cluster: Cluster, table: Table) -> Band:
    facts = f"up to {cluster.spec.cloud_workers:,} machines"
    if inside := among(table, Role.WORKER_IN_REGION):
        facts += f" · among themselves {inside}"
    cards = tuple(region_cards(cluster))
    return Band("pools", "Workers in the region", facts, "workers", Role.WORKER_IN_REGION, cards)


def _gateway(spec: ClusterSpec) -> Band:
    asn = gateway(spec).asn
    cards = tuple(Card(f"gateway-end-{end}", f"end {end}", (f"announces {spec.network.nodes}",)) for end in range(ENDS))
    return Band("gateway", "VPN gateway", f"AS {asn} · IPsec, IKEv2, BGP", "network", Role.VPN_GATEWAY, cards)


def _edge(joined: tuple[Tunnel, ...]) -> Band:
    cards = {}
    for tunnel in joined:
        own = [other for other in joined if (other.site, other.router) == (tunnel.site, tunnel.router)]
        cards[tunnel.site, tunnel.router] = Card(
            f"router-{tunnel.site}-{tunnel.router}",
            f"{tunnel.site} / {tunnel.router}",
            (
                f"{tunnel.peer} · AS {tunnel.edge.asn}",
                *(f"end {other.gateway_end}: {other.cloud.address.network}" for other in own),
                f"MTU {tunnel.mtu}, MSS {tunnel.mss}",
            ),
            about=f"announces {_some(tunnel.edge.announces)}",
        )
    facts = f"{len(joined)} tunnels, one from each router to each end of the gateway"
    return Band("edge", "Edge routers of sites", facts, "network", Role.SITE_EDGE, tuple(cards.values()), False)


def _pods(cluster: Cluster, plan: AddressPlan) -> Band:
    network, flannel = cluster.spec.network, cluster.spec.network.flannel
    if flannel.backend is FlannelBackend.VXLAN:
        backend = f"VXLAN udp {flannel.port}, MTU {pod_mtu(cluster.spec)}"
        backend += ", native routes inside a rack" if flannel.direct_routing and cluster.spec.sites else ""
    else:
        backend = "host-gw"
    facts = (
        f"pods {network.pods}, a /{network.node_prefix} for each node · services {network.services} · "
        f"DNS {plan.dns_ip} · flannel: {backend}"
    )
    return Band("pods", "Pods and services", facts, "network", Role.POD, in_region=False)


def _some(ranges: tuple[IPv4Network, ...], most: int = 8) -> str:
    shown = ", ".join(map(str, ranges[:most]))
    return f"{shown} and {len(ranges) - most} more" if len(ranges) > most else shown


def _id(name: str) -> str:
    return name.lower().replace(" ", "-")
