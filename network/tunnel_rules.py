"""nftables' rules of an edge router: who may speak through tunnels, and how large TCP's segments are there.

A table of its own, which says nothing about packets that come from and go to other interfaces than tunnels.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from network.gateway import EdgeRouter

TABLE = "menagerie_vpn"


def rules(router: EdgeRouter) -> str:
    """A script for ``nft -f``, which replaces the table in one step."""
    tunnels = ", ".join(f'"{line.interface}"' for line in router.lines)
    return "\n".join(
        [
            f"table inet {TABLE} {{}}",
            f"delete table inet {TABLE}",
            f"table inet {TABLE} {{",
            "  set tunnels {",
            "    type ifname",
            f"    elements = {{ {tunnels} }}",
            "  }",
            *_chain("segments", "forward", "mangle", _segments(router)),
            *_chain("forward", "forward", "filter", _forward(router)),
            *_chain("input", "input", "filter", _input(router)),
            "}",
            "",
        ]
    )


def _chain(name: str, hook: str, priority: str, lines: Iterator[str]) -> list[str]:
    head = f"    type filter hook {hook} priority {priority}; policy accept;"
    return [f"  chain {name} {{", head, *(f"    {line}" for line in lines), "  }"]


def _segments(router: EdgeRouter) -> Iterator[str]:
    """Both ways, for the other router of a site may have let the first packet through. Linux only ever lowers the size."""
    for line in router.lines:
        for way in ("iifname", "oifname"):
            yield f'{way} "{line.interface}" tcp flags syn tcp option maxseg size set {line.tunnel.mss}'


def _forward(router: EdgeRouter) -> Iterator[str]:
    """A router of the region may say that a packet was too large, from an address that is nobody's. What is meant for a
    region goes by tunnel or not at all: between the loss of the last tunnel and FRR's blackhole there is a moment.
    """
    regions = tuple(dict.fromkeys(network for line in router.lines for network in line.region))
    yield "iifname @tunnels oifname @tunnels drop"
    yield f"ip daddr {_set(regions)} oifname != @tunnels drop"
    for line in router.lines:
        region, site = _set(line.region), _set(line.site)
        yield f'iifname "{line.interface}" ip saddr {region} ip daddr {site} accept'
        yield f'oifname "{line.interface}" ip saddr {site} ip daddr {region} accept'
        yield (
            f'iifname "{line.interface}" ip daddr {site} '
            "icmp type { destination-unreachable, time-exceeded, parameter-problem } accept"
        )
    yield "iifname @tunnels drop"
    yield "oifname @tunnels drop"


def _input(router: EdgeRouter) -> Iterator[str]:
    for line in router.lines:
        own, peer = line.tunnel.edge.address.ip, line.tunnel.cloud.address.ip
        ends = f'iifname "{line.interface}" ip saddr {peer} ip daddr {own}'
        yield f"{ends} tcp dport 179 accept"
        yield f"{ends} tcp sport 179 accept"
        yield f"{ends} ip protocol icmp accept"
    yield "iifname @tunnels drop"


def _set(networks: tuple[IPv4Network, ...]) -> str:
    return f"{{ {', '.join(map(str, networks))} }}"
