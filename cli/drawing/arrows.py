"""The table of flows as few arrows: one for all that the same sources may open at the same destination."""

from __future__ import annotations

from dataclasses import dataclass

from components.flows.flow import Flow, Protocol, Role, Table, into, spans


@dataclass(frozen=True)
class Arrow:
    """What `sources` may open at `destination`. ports: as `tcp 6443, 8132; udp 8472`."""

    id: str
    sources: tuple[Role, ...]
    destination: Role
    ports: str
    flows: Table

    @property
    def about(self) -> str:
        reasons = " ".join(dict.fromkeys(flow.why for flow in self.flows))
        return f"{', '.join(self.sources)} → {self.destination}, {self.ports}. {reasons}"


def arrows(table: Table) -> tuple[Arrow, ...]:
    """The arrows of a table, by destination. What hosts of one role open among themselves is in `among` instead."""
    made: list[Arrow] = []
    for destination in Role:
        by_what: dict[tuple[Protocol, tuple[int, ...]], dict[Role, list[Flow]]] = {}
        for flow in into(table, destination):
            if flow.source is not destination:
                by_what.setdefault((flow.protocol, flow.ports), {}).setdefault(flow.source, []).append(flow)
        by_sources: dict[tuple[Role, ...], list[Flow]] = {}
        for sources in by_what.values():
            ordered = tuple(role for role in Role if role in sources)
            by_sources.setdefault(ordered, []).extend(flow for role in ordered for flow in sources[role])
        for ordered, found in by_sources.items():
            made.append(Arrow(f"flow-{len(made) + 1}", ordered, destination, ports(tuple(found)), tuple(found)))
    return tuple(made)


def among(table: Table, role: Role) -> str:
    """The ports that hosts of a role open at each other; "" for none."""
    return ports(tuple(flow for flow in into(table, role) if flow.source is role))


def ports(table: Table) -> str:
    """Protocols and ports of some flows, each once."""
    found: dict[Protocol, set[int]] = {}
    for flow in table:
        found.setdefault(flow.protocol, set()).update(flow.ports)
    return "; ".join(_named(protocol, found[protocol]) for protocol in Protocol if protocol in found)


def _named(protocol: Protocol, numbers: set[int]) -> str:
    if protocol is Protocol.ALL:
        return "every port"
    return " ".join(filter(None, (protocol.value, ", ".join(spans(sorted(numbers))))))
