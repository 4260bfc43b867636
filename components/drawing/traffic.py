"""The arrows of a cluster: those inside it, and those to services around it, which share a line per set of sources."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from components.drawing.arrows import Arrow, arrows
from components.drawing.bands import Meeting
from components.flows.flow import Flow, Role, Table

SERVICES = (
    Role.SECRET_STORE,
    Role.METADATA,
    Role.CLOUD_API,
    Role.FILE_STORE,
    Role.BMC,
    Role.BUCKETS,
    Role.ARTEFACT_MIRROR,
    Role.RESOLVER,
    Role.TIME_SERVER,
    Role.REGISTRY,
)
"""From top to bottom. Services with the same clients are next to each other."""

_KINDS = {
    Role.LOAD_BALANCER: "control",
    Role.PUBLIC_BALANCER: "control",
    Role.API_SERVER: "control",
    Role.ETCD_MAIN: "etcd",
    Role.ETCD_EVENTS: "etcd",
    Role.WORKER_IN_REGION: "workers",
    Role.WORKER_AT_SITE: "workers",
    Role.POD: "network",
    Role.SITE_EDGE: "network",
    Role.VPN_GATEWAY: "network",
}


@dataclass(frozen=True)
class Shared:
    """The line of hosts that use the same services."""

    id: str
    sources: tuple[Role, ...]
    arrows: tuple[Arrow, ...]


@dataclass(frozen=True)
class Traffic:
    inside: tuple[Arrow, ...]
    around: tuple[Shared, ...]

    def left(self, role: Role | None) -> list[Meeting]:
        """Return what meets a band of this role: first the connections it accepts, then those it opens."""
        accepted = [Meeting(arrow.id, arrow.ports, True) for arrow in self.inside if arrow.destination is role]
        opened = [arrow for arrow in self.inside if role in arrow.sources]
        destinations = [arrow.destination for arrow in opened]
        return accepted + [
            Meeting(
                arrow.id,
                f"to {arrow.destination}" + f", {arrow.ports}" * (destinations.count(arrow.destination) > 1),
                False,
            )
            for arrow in opened
        ]

    def right(self, role: Role | None) -> list[str]:
        return [shared.id for shared in self.around if role in shared.sources]

    def all(self) -> tuple[Arrow, ...]:
        return (*self.inside, *(arrow for shared in self.around for arrow in shared.arrows))

    def line_of(self, flow: Flow) -> str | None:
        """Return the ID of a flow's line; None for a flow among hosts of one role."""
        for arrow in self.inside:
            if flow in arrow.flows:
                return arrow.id
        return next((shared.id for shared in self.around if any(flow in arrow.flows for arrow in shared.arrows)), None)


def traffic(table: Table) -> Traffic:
    """Return the arrows of a table of flows."""
    all_arrows = arrows(table)
    return Traffic(
        tuple(arrow for arrow in all_arrows if arrow.destination not in SERVICES), tuple(_shared(all_arrows))
    )


def kind_of(role: Role) -> str:
    """Return the kind, and with it the colour, of lines to a role."""
    return _KINDS.get(role, "outside")


def _shared(arrows_: Iterable[Arrow]) -> Iterable[Shared]:
    by_sources: dict[tuple[Role, ...], list[Arrow]] = {}
    for arrow in sorted((arrow for arrow in arrows_ if arrow.destination in SERVICES), key=_order):
        by_sources.setdefault(arrow.sources, []).append(arrow)
    for number, (sources, own) in enumerate(by_sources.items(), start=1):
        yield Shared(f"services-{number}", sources, tuple(own))


def _order(arrow: Arrow) -> int:
    return SERVICES.index(arrow.destination)
