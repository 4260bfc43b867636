"""What pages show of a cluster. Readers fill it, and pages never ask a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from cluster.spec import Cluster
from components.drawing.live import Health, Live
from components.drawing.shapes import Drawing
from controllers.autoscaler.capacity import Row
from controllers.autoscaler.waits import Wait
from controllers.tenancy.directory.model import Tenant, TenantKind
from controllers.tenancy.directory.names import namespace
from controllers.web.kept import Kept
from controllers.web.parts import Part
from operations.record.ledger import Ledger
from operations.status.fleet import FleetRow, row_of
from operations.status.model import Status


@dataclass(frozen=True)
class NodeState:
    """A node, or a machine of the spec that has not joined. words: its state in one or two words, such as ``NotReady``."""

    name: str
    pool: str
    health: Health
    words: str


@dataclass(frozen=True)
class Capacity:
    """Nodes, free capacity and what waits, all of one moment. notices: what could not be read, for people."""

    rows: tuple[Row, ...]
    waits: tuple[Wait, ...]
    nodes: tuple[NodeState, ...]
    notices: tuple[str, ...] = ()

    @cached_property
    def ready(self) -> int:
        """Return how many nodes are healthy."""
        return sum(node.health is Health.HEALTHY for node in self.nodes)


@dataclass(frozen=True)
class Spec:
    """A cluster's model and its drawing, which follow from the spec alone."""

    cluster: Cluster
    drawing: Drawing


@dataclass(frozen=True)
class Drawn:
    """A cluster's drawing with the states of its parts. svg: without a style. parts: (ID in the drawing, state), from top to bottom."""

    svg: str
    parts: tuple[tuple[str, Live], ...]


@dataclass(frozen=True)
class ClusterFacts:
    """A cluster, part by part. Status, capacity and bills that were read and are None mean that it is not built.

    drawn: made by who reads, because it takes longer than a page; None before the spec was read.
    """

    name: str
    spec: Part[Spec] = field(default_factory=Part)
    status: Part[Status | None] = field(default_factory=Part)
    capacity: Part[Capacity | None] = field(default_factory=Part)
    operations: Part[Ledger] = field(default_factory=Part)
    bills: Part[Kept | None] = field(default_factory=Part)
    drawn: Drawn | None = None

    def row(self, now_s: float) -> FleetRow:
        """Return its row of the fleet, as `status` has it; also one for a cluster that was not read yet, or does not answer."""
        trouble = self.spec.trouble(now_s) or self.status.trouble(now_s)
        if trouble:
            state = "no answer" if trouble.startswith("no answer") else "unknown"
            return FleetRow(self.name, state, False, trouble.splitlines()[0], f"./menagerie status {self.name}")
        if self.status.at_s is None:
            return FleetRow(self.name, "being read", True, "first look at it")
        return row_of(self.name, self.status.value)

    def team_namespaces(self) -> dict[str, str]:
        """Return team -> its namespace, of the teams in the ledger. Who may list pods there may see the team's bill."""
        tenancy = self.spec.value.cluster.spec.tenancy if self.spec.value else None
        teams = self.bills.value.teams if self.bills.value else ()
        return {team: namespace(Tenant(TenantKind.TEAM, team), tenancy) for team in teams} if tenancy else {}

    def oldest_s(self) -> float | None:
        """Return the Unix time of the oldest of its parts, None before the first."""
        times = [part.at_s for part in (self.status, self.capacity, self.operations) if part.at_s is not None]
        return min(times, default=None)


@dataclass(frozen=True)
class Sight:
    """What somebody may see. whole: every page, and everybody's bill. teams: whose bills otherwise. lacks: why not the whole."""

    whole: bool
    teams: frozenset[str] = frozenset()
    lacks: str = ""

    def bill_of(self, team: str) -> bool:
        """Return whether the bill of a team may be seen; of everybody for ""."""
        return self.whole or (bool(team) and team in self.teams)


WHOLE = Sight(True)


@dataclass(frozen=True)
class Site:
    """All that a page is made from. look: returns the clusters as they are now. clock: Unix time."""

    look: Callable[[], Sequence[ClusterFacts]]
    clock: Callable[[], float]

    def cluster(self, name: str) -> ClusterFacts | None:
        return next((each for each in self.look() if each.name == name), None)

    def team_namespaces(self) -> dict[str, str]:
        """Return team -> its namespace, of all clusters."""
        return {team: space for each in self.look() for team, space in each.team_namespaces().items()}
