"""Totals as text for node-exporter's textfile collector, and as JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from .layout import named
from .totals import State

PREFIX = "menagerie_traffic"


class Now(NamedTuple):
    """attributed, waiting: addresses of pods with and without a namespace. host_network: namespace -> its pods there.

    heard_at: Unix time of the API's last answer, 0 without one.
    """

    attributed: int
    waiting: int
    host_network: Mapping[str, int]
    heard_at: float


def text(state: State, now: Now) -> str:
    """Return the metrics. Counters that are zero have no series: most pairs of class and namespace never occur."""
    return "".join(f"{line}\n" for line in _lines(state, now))


def _lines(state: State, now: Now) -> Iterator[str]:
    rows = sorted((parts, count) for name, count in state.totals.items() if (parts := named(name)) and count.packets)
    for what in ("bytes", "packets"):
        yield from _head(f"{what}_total", "counter", f"IP {what} of pods, by namespace, direction and class.")
        for (direction, kind, namespace), count in rows:
            if namespace:
                labels = f'namespace="{namespace}",direction="{direction}",class="{kind}"'
                yield f"{PREFIX}_{what}_total{{{labels}}} {getattr(count, what)}"
        yield from _head(f"unknown_{what}_total", "counter", f"IP {what} of addresses that no pod was known to have.")
        for (direction, kind, namespace), count in rows:
            if not namespace:
                labels = f'direction="{direction}",class="{kind}"'
                yield f"{PREFIX}_unknown_{what}_total{{{labels}}} {getattr(count, what)}"
    yield from _head("host_network_pods", "gauge", "Pods in the host's network, whose packets are not attributed.")
    for namespace, pods in sorted(now.host_network.items()):
        yield f'{PREFIX}_host_network_pods{{namespace="{namespace}"}} {pods}'
    yield from _head("addresses", "gauge", "Addresses of pods with (attributed) and without (waiting) a namespace.")
    yield f'{PREFIX}_addresses{{state="attributed"}} {now.attributed}'
    yield f'{PREFIX}_addresses{{state="waiting"}} {now.waiting}'
    yield from _head("resets_total", "counter", "Times that the kernel's counters were lost, by a boot or by somebody.")
    yield f"{PREFIX}_resets_total {state.resets}"
    yield from _head("api_timestamp_seconds", "gauge", "When the API server last answered about this node's pods.")
    yield f"{PREFIX}_api_timestamp_seconds {now.heard_at:.0f}"


def _head(name: str, kind: str, meaning: str) -> Iterator[str]:
    yield f"# HELP {PREFIX}_{name} {meaning}"
    yield f"# TYPE {PREFIX}_{name} {kind}"


def plain(state: State) -> list[dict[str, Any]]:
    """Return the counters for JSON. namespace is None for unknown pods."""
    rows = sorted((parts, count) for name, count in state.totals.items() if (parts := named(name)) and count.packets)
    return [
        {
            "namespace": namespace or None,
            "direction": direction,
            "class": kind,
            "bytes": count.bytes,
            "packets": count.packets,
        }
        for (direction, kind, namespace), count in rows
    ]
