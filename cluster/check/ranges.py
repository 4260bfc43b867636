"""Address ranges: which overlap, and which are free."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from itertools import islice

from cluster.check.finding import Checked
from cluster.document import Where

# RFC 1918, and the part of it that Docker's default bridge uses.
_PRIVATE = tuple(IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))
DOCKER = IPv4Network("172.17.0.0/16")
DOCUMENTATION = tuple(IPv4Network(text) for text in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"))
"""RFC 5737: used as public ranges in examples."""


@dataclass(frozen=True)
class Range:
    """A range that a cluster declares.

    name: its name in messages, such as network.pods.
    cluster: the cluster it belongs to, and where that declares it.
    """

    where: Where
    name: str
    network: IPv4Network
    cluster: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.network}"


def ranges(checked: Checked) -> tuple[Range, ...]:
    """Return every range of a cluster: pods, services, nodes, then each site's racks and networks in file order."""
    spec = checked.spec
    own = {"pods": spec.network.pods, "services": spec.network.services, "nodes": spec.network.nodes}
    listed = []
    for key, network in own.items():
        place: Where = ("network", key)
        listed.append(Range(place, f"network.{key}", network, checked.named(place)))
    for site_name, site in spec.sites.items():
        for rack, network in site.racks.items():
            where: Where = ("sites", site_name, "racks", rack)
            listed.append(Range(where, f"sites.{site_name}.racks.{rack}", network, checked.named(where)))
        for number, network in enumerate(site.vpn.networks if site.vpn else ()):
            where = ("sites", site_name, "vpn", "networks", number)
            listed.append(Range(where, f"sites.{site_name}.vpn.networks", network, checked.named(where)))
    return tuple(listed)


_MOST_AROUND = 5


def overlapping(
    listed: Sequence[IPv4Network], may: Callable[[int, int], bool] = lambda low, high: False
) -> Iterator[tuple[int, int]]:
    """Yield pairs of indices (low, high) of ranges that overlap although `may` doesn't allow it.

    Two CIDR ranges are disjoint or one contains the other, so one pass in the order of their first
    addresses, with the ranges still open on a stack, finds all pairs. For each range only the five innermost
    forbidden ones around it are reported: a thousand equal ranges would give half a million pairs.
    """
    order = sorted(range(len(listed)), key=lambda i: (int(listed[i].network_address), listed[i].prefixlen, i))
    around: list[int] = []
    for index in order:
        while around and int(listed[around[-1]].broadcast_address) < int(listed[index].network_address):
            around.pop()
        pairs = ((min(index, outer), max(index, outer)) for outer in reversed(around))
        yield from islice((pair for pair in pairs if not may(*pair)), _MOST_AROUND)
        around.append(index)


def holder(named: Mapping[str, IPv4Network]) -> Callable[[IPv4Address], str | None]:
    """Return a function that gives the name of the range that holds an address; the widest if there are several."""
    names: dict[IPv4Network, str] = {}
    for name, network in named.items():
        names.setdefault(network, name)
    lengths = sorted({network.prefixlen for network in names})

    def find(address: IPv4Address) -> str | None:
        around = (names.get(IPv4Network((address, length), strict=False)) for length in lengths)
        return next((name for name in around if name is not None), None)

    return find


def free(prefix: int, taken: Iterable[IPv4Network]) -> IPv4Network | None:
    """Return the first private range of a prefix length that overlaps neither `taken` nor Docker's range."""
    used = sorted((int(network.network_address), int(network.broadcast_address)) for network in (*taken, DOCKER))
    size = 2 ** (32 - prefix)
    for block in _PRIVATE:
        start = int(block.network_address)
        if size > block.num_addresses:
            continue
        for first, last in used:
            if first < start + size and last >= start:
                start = (last // size + 1) * size
        if start + size - 1 <= int(block.broadcast_address):
            return IPv4Network((start, prefix))
    return None


def suggestion(prefix: int, taken: Iterable[IPv4Network]) -> str:
    """Return ``, for example 10.64.0.0/14``, or an empty string if no private range is left."""
    room = free(prefix, taken)
    return f", for example {room}" if room else ""
