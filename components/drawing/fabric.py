"""The RDMA fabric of a site: its rails."""

from __future__ import annotations

from cluster.roce import Roce
from cluster.spec import Cluster
from components.drawing.cards import Band, Card


def fabric_band(cluster: Cluster, site: str, roce: Roce) -> Band:
    """Return the band of a site's fabric. Its packets leave by ports of their own, so no arrow meets it."""
    rails = tuple(dict.fromkeys(rail for ports in roce.rails.values() for rail in ports))
    facts = (
        f"RoCE v2, {roce.fabric}",
        f"{roce.gbit_s} Gbit/s" if roce.gbit_s else "",
        f"RDMA MTU {roce.mtu}, links {roce.link_mtu} bytes",
        f"priority {roce.priority}, DSCP {roce.dscp}",
    )
    cards = tuple(_rail(cluster, site, roce, rail) for rail in rails)
    title = f"RDMA fabric of {site}: {len(rails)} rails" if len(rails) > 1 else f"RDMA fabric of {site}: 1 rail"
    return Band(
        f"fabric-{site}", title, " · ".join(filter(None, facts)), "network", None, cards, in_region=False, cells=True
    )


def _rail(cluster: Cluster, site: str, roce: Roce, rail: str) -> Card:
    ports = {pool: own[rail] for pool, own in roce.rails.items() if rail in own}
    count = sum(len(cluster.hosts.get(pool, ())) for pool in ports)
    about = "; ".join(f"pool {pool}: {port}" for pool, port in ports.items())
    return Card(f"rail-{site}-{rail}", rail, (f"{count:,} ports" if count != 1 else "1 port",), about=about)
