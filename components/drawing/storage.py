"""The Ceph of a site: its storage hosts and daemons."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.ceph import Ceph
from cluster.quantities import format_bytes
from cluster.spec import Cluster
from components.ceph.names import GATEWAYS, METADATA_SERVERS, managers
from components.drawing.cards import Band, Card


def ceph_band(cluster: Cluster, site: str, ceph: Ceph) -> Band:
    """Return the band of a site's Ceph. It shares the machines of the site's pools, so no arrow meets it."""
    hosts = sum(len(cluster.hosts.get(pool, ())) for pool in ceph.hosts)
    kinds = dict.fromkeys(kind for team in ceph.teams.values() for kind in team.quotas)
    facts = (
        f"{ceph.replicas} copies, each in another {ceph.failure_domain}",
        f"{', '.join(kinds)} storage of {', '.join(ceph.teams)}" if ceph.teams else "no teams",
        "encrypted on the wire" if ceph.encrypt else "",
    )
    cards = tuple(Card(f"ceph-{site}-{id_}", name, lines) for id_, name, lines in _parts(cluster, ceph, hosts))
    title = f"Ceph of {site}"
    return Band(f"ceph-{site}", title, " · ".join(filter(None, facts)), "storage", None, cards, in_region=False)


def _parts(cluster: Cluster, ceph: Ceph, hosts: int) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield (id, name, lines) of the hosts and of each kind of daemon."""
    yield "hosts", "storage hosts", tuple(f"{len(cluster.hosts.get(pool, ())):,} of pool {pool}" for pool in ceph.hosts)
    for name, disks in ceph.disks.items():
        lines = (f"{hosts * disks.count:,}, one for each disk", f"{disks.count} in each host", _size(disks.min_size))
        yield f"osds-{name}", f"OSDs on {name}", lines
    yield "monitors", "monitors", (f"{ceph.monitors}, each on another host",)
    yield "managers", "managers", (f"{managers(hosts)}, one of them active",)
    if any(team.file is not None for team in ceph.teams.values()):
        yield "metadata", "metadata servers", (f"{METADATA_SERVERS}, one of them active",)
    if any(team.object is not None for team in ceph.teams.values()):
        yield "gateways", "object gateways", (str(GATEWAYS),)


def _size(least: int) -> str:
    return f"{format_bytes(least)} or more each"
