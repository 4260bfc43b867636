"""First specs of clusters: small, commented, valid, with ranges unused in the fleet. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from cluster.check.ranges import DOCUMENTATION
from cluster.errors import RefusedError
from cluster.spec import Cloud, Cluster
from cluster.starter import places, ranges, texts
from cluster.starter.places import Place
from cluster.starter.ranges import Ranges
from cluster.vpn import GATEWAYS

__all__ = ["Request", "Starter", "make"]

SPEC, HOSTS = "cluster.yaml", "hosts.yaml"
_ROUTERS = 2
_TUNNELS_PREFIX = 28
"""Room for the four tunnels of two routers."""
_ASNS, _LAST_ASN = range(65010, 65535), 4_200_000_000


@dataclass(frozen=True)
class Request:
    """What the operator asked for.

    cloud: of the control plane. site: whether workers are at a site, as always in a lab. region, gpu: "" if not chosen.
    """

    name: str
    cloud: Cloud
    site: bool = False
    region: str = ""
    gpu: str = ""


@dataclass(frozen=True)
class Placeholder:
    """A dummy value that passes `check`, which the owner must replace."""

    path: str
    why: str


@dataclass(frozen=True)
class Starter:
    """The content of a new cluster's folder. files: name -> text. secrets: names of the keys that its stack needs."""

    request: Request
    region: str
    ranges: Ranges
    files: dict[str, str]
    placeholders: tuple[Placeholder, ...]
    secrets: tuple[str, ...]


def make(asked: Request, fleet: Sequence[Cluster]) -> Starter:
    """Create a folder for a new cluster in a fleet. Equal fleets give equal texts. Raises RefusedError with alternatives."""
    lab, at_site = asked.cloud is Cloud.LAB, asked.site or asked.cloud is Cloud.LAB
    if lab and asked.gpu:
        raise RefusedError("a lab has no GPUs; leave --gpu out", code="init-refused")
    if lab and asked.region not in ("", "local"):
        raise RefusedError("the region of a lab is local; leave --region out", code="init-refused")
    place = None if lab else places.choose(asked.cloud, asked.region, "" if at_site else asked.gpu)
    hardware = places.kinds_at_sites(asked.gpu) if at_site and asked.gpu else ""
    site = texts.Site(hardware, None if lab else _tunnels(asked.cloud, fleet)) if at_site else None
    chosen = ranges.choose(fleet, lab=lab, site=at_site)
    plan = texts.StarterPlan(asked.name, asked.cloud, chosen, place, site)
    files = {SPEC: texts.cluster_yaml(plan)} | ({HOSTS: texts.hosts_yaml(plan)} if site else {})
    secrets = tuple(texts.secret(number + 1) for number in range(_ROUTERS)) if site and site.tunnels else ()
    return Starter(
        asked, place.region if place else "local", chosen, files, tuple(_placeholders(asked, place, site)), secrets
    )


def _placeholders(asked: Request, place: Place | None, site: texts.Site | None) -> Iterator[Placeholder]:
    if place is None:
        return
    yield Placeholder("control_plane.operators", "the ranges of your VPN or peering; nobody else can reach the API")
    if place.gpu:
        yield Placeholder("pools.gpu.allow_no_driver", "or pools.gpu.image: an image with a driver for the GPUs")
    if site:
        yield Placeholder(f"sites.{texts.SITE}.racks", "the ranges of your racks")
        yield Placeholder(f"sites.{texts.SITE}.vpn.routers", "the public addresses of your edge routers")
        yield Placeholder(HOSTS, "your machines")


def _tunnels(cloud: Cloud, fleet: Iterable[Cluster]) -> texts.Tunnels:
    """Return addresses and an ASN unused in the fleet. Ranges inside tunnels are reused if none is left."""
    vpns = [site.vpn for cluster in fleet for site in cluster.spec.sites.values() if site.vpn]
    gateway = GATEWAYS[cloud]
    asns = {vpn.asn for vpn in vpns} | gateway.asns | {gateway.asn}
    asn = next(number for number in (*_ASNS, _LAST_ASN) if number not in asns)
    inside = gateway.free(_TUNNELS_PREFIX, [vpn.inside for vpn in vpns]) or gateway.free(_TUNNELS_PREFIX, ())
    assert inside
    return texts.Tunnels(asn, inside, _routers({router.address for vpn in vpns for router in vpn.routers.values()}))


def _routers(taken: set[IPv4Address]) -> tuple[IPv4Address, ...]:
    """Return addresses for documentation (RFC 5737) that no other cluster's routers have."""
    free = [address for network in DOCUMENTATION[1:] for address in network.hosts() if address not in taken]
    if len(free) < _ROUTERS:
        raise RefusedError(
            "no address of RFC 5737 is left for edge routers; replace placeholders in the fleet's specs first",
            code="init-refused",
        )
    return tuple(free[:_ROUTERS])
