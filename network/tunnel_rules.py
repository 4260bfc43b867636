"""nftables rules of an edge router: who may communicate through tunnels, and the TCP segment size there.

They are in a separate table, and affect only packets that enter or leave through a tunnel, or are meant for a region.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from network.gateway import RouterConfig

TABLE = "menagerie_vpn"


def rules(router: RouterConfig) -> str:
    """Return a script for ``nft -f`` that replaces the table atomically."""
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


def _segments(router: RouterConfig) -> Iterator[str]:
    """Yield the rules that clamp segments in both directions: the other router of a site may have forwarded the first packet.
    Linux only ever lowers the size."""
    for line in router.lines:
        for direction in ("iifname", "oifname"):
            yield f'{direction} "{line.interface}" tcp flags syn tcp option maxseg size set {line.tunnel.mss}'


def _forward(router: RouterConfig) -> Iterator[str]:
    """Yield the forwarding rules.

    ICMP errors come from any source address: a router in the region may report that a packet was too large, from an address
    outside the ranges. Packets for a region leave through a tunnel or are dropped: there is a moment between the loss of the
    last tunnel and FRR's blackhole.
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


def _input(router: RouterConfig) -> Iterator[str]:
    for line in router.lines:
        own, peer = line.tunnel.edge.address.ip, line.tunnel.cloud.address.ip
        ends = f'iifname "{line.interface}" ip saddr {peer} ip daddr {own}'
        yield f"{ends} tcp dport 179 accept"
        yield f"{ends} tcp sport 179 accept"
        yield f"{ends} ip protocol icmp accept"
    yield "iifname @tunnels drop"


def _set(networks: tuple[IPv4Network, ...]) -> str:
    return f"{{ {', '.join(map(str, networks))} }}"
