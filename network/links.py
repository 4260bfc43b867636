"""Configuration of links on hosts at sites: the variables of role links. No I/O."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from cluster.links import Cable, Link
from cluster.mtu import PathSection as Stretch
from cluster.mtu import carried
from cluster.outputs import ClusterOutputs
from cluster.pools import Host
from cluster.spec import Cluster

FOLDER = "/etc/systemd/network"
_RINGS = {"rx_ring": "RxBufferSize", "tx_ring": "TxBufferSize"}


def of_hosts(cluster: Cluster, outputs: ClusterOutputs) -> dict[str, dict[str, Any]]:
    """Return host -> the role's variables. Hosts of pools without declared links are left out, which skips the role there."""
    declared = {pool: links for pool in cluster.hosts if (links := _declared(cluster, pool))}
    if not declared:
        return {}
    name, _, port = outputs.endpoint.rpartition(":")
    api = {"address": outputs.balancers[0] if outputs.balancers else name, "port": int(port)}
    sites = {site: _Site(cluster, site, api) for site in {cluster.spec.pools[pool].site or "" for pool in declared}}
    return {
        host.name: _variables(sites[cluster.spec.pools[pool].site or ""], declared[pool], host)
        for pool in declared
        for host in cluster.hosts[pool]
    }


def link_file(name: str, link: Mapping[str, Any]) -> str:
    """Return a systemd.link(5) file, which applies from the next boot. Only the first matching file counts, so it repeats the
    default file's settings."""
    match = f"Path=pci-{link['pci']}" if "pci" in link else f"PermanentMACAddress={link['mac']}"
    lines = ["# Placed by Menagerie's role links.", "[Match]", match, "", "[Link]", f"Name={name}"]
    lines += ["AlternativeNamesPolicy=database onboard slot path", f"MTUBytes={link['mtu']}"]
    lines += [f"{key}={link[ring]}" for ring, key in _RINGS.items() if ring in link]
    return "\n".join(lines) + "\n"


def _declared(cluster: Cluster, pool: str) -> Mapping[str, Link]:
    site = cluster.spec.sites.get(cluster.spec.pools[pool].site or "")
    return site.links.get(pool, {}) if site else {}


class _Site:
    """The data that all hosts of a site share."""

    def __init__(self, cluster: Cluster, name: str, api: Mapping[str, Any]) -> None:
        self.link_mtu = cluster.spec.sites[name].link_mtu
        self.api = api
        self._widths: Mapping[str, Stretch] = carried(cluster.spec, name)
        self.racks: dict[str, list[Host]] = defaultdict(list)
        for pool, host in cluster.host_list():
            if cluster.spec.pools[pool].site == name:
                self.racks[host.rack].append(host)

    def ways(self, host: Host) -> Iterator[dict[str, Any]]:
        """Yield the destinations that full-size packets must reach. They are the first hosts of racks, so that a new host does not
        change the files of others.

        A destination without an address is the host's own router. `host` is another machine of the fleet, which may not be
        configured yet.
        """
        same_rack = next((other for other in self.racks[host.rack] if other.name != host.name), None)
        if same_rack:
            yield self._to(
                "rack", f"{same_rack.name} in the same rack", host=same_rack.name, address=str(same_rack.address)
            )
        yield self._to("site", "the rack's router")
        other_rack = next((rack for name, rack in self.racks.items() if name != host.rack), None)
        if other_rack:
            first = other_rack[0]
            yield self._to("site", f"{first.name} in rack {first.rack}", host=first.name, address=str(first.address))
        yield self._to("API", "the API's load balancer", **self.api)

    def _to(self, way: str, to: str, **more: Any) -> dict[str, Any]:
        width = self._widths[way]
        return {"to": to, **more, "mtu": width.mtu, "setting": ".".join(map(str, width.where))}


def _variables(site: _Site, declared: Mapping[str, Link], host: Host) -> dict[str, Any]:
    links = {name: _link(link, host.links.get(name, Cable()), site.link_mtu) for name, link in declared.items()}
    own = {"mac": _mac(host.mac)} if host.mac else {}
    settings = {"host": host.name, "address": str(host.address), **own, "links": links, "paths": [*site.ways(host)]}
    files = [
        {"path": f"{FOLDER}/10-menagerie-{name}.link", "text": link_file(name, link)} for name, link in links.items()
    ]
    return {"links_settings": settings, "links_files": files}


def _link(link: Link, cable: Cable, mtu: int) -> dict[str, Any]:
    settings = {**link.model_dump(exclude_none=True), **cable.model_dump(exclude_none=True), "mtu": link.mtu or mtu}
    return {**settings, "mac": _mac(cable.mac)} if cable.mac else settings


def _mac(text: str) -> str:
    """Return a MAC address in Linux's notation."""
    return text.lower().replace("-", ":")
