"""The table of flows as arrows: one arrow for all flows with the same sources and the same destination."""

from __future__ import annotations

from dataclasses import dataclass

from components.flows.flow import Flow, Protocol, Role, Table, into, spans


@dataclass(frozen=True)
class Arrow:
    """Connections that `sources` may open to `destination`. ports: such as `tcp 6443, 8132; udp 8472`."""

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
    """Return the arrows of a table, by destination. Flows among hosts of one role are in `among` instead."""
    result: list[Arrow] = []
    for destination in Role:
        by_ports: dict[tuple[Protocol, tuple[int, ...]], dict[Role, list[Flow]]] = {}
        for flow in into(table, destination):
            if flow.source is not destination:
                by_ports.setdefault((flow.protocol, flow.ports), {}).setdefault(flow.source, []).append(flow)
        by_sources: dict[tuple[Role, ...], list[Flow]] = {}
        for sources in by_ports.values():
            ordered = tuple(role for role in Role if role in sources)
            by_sources.setdefault(ordered, []).extend(flow for role in ordered for flow in sources[role])
        for ordered, own_flows in by_sources.items():
            result.append(
                Arrow(f"flow-{len(result) + 1}", ordered, destination, ports(tuple(own_flows)), tuple(own_flows))
            )
    return tuple(result)


def among(table: Table, role: Role) -> str:
    """Return the ports of flows among hosts of a role; "" for none."""
    return ports(tuple(flow for flow in into(table, role) if flow.source is role))


def ports(table: Table) -> str:
    """Return the protocols and ports of flows, without duplicates."""
    by_protocol: dict[Protocol, set[int]] = {}
    for flow in table:
        by_protocol.setdefault(flow.protocol, set()).update(flow.ports)
    return "; ".join(_named(protocol, by_protocol[protocol]) for protocol in Protocol if protocol in by_protocol)


def _named(protocol: Protocol, numbers: set[int]) -> str:
    if protocol is Protocol.ALL:
        return "every port"
    return " ".join(filter(None, (protocol.value, ", ".join(spans(sorted(numbers))))))
