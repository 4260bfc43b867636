"""What a proof is, and what it may use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from clients.access import Access
from cluster.spec import Cluster

if TYPE_CHECKING:
    from kubernetes import client

    from clients.waiting import Report
    from operations.verify.workload import Workload


class FailedProofError(Exception):
    """What was claimed does not hold; the text says what was seen."""


@dataclass(frozen=True)
class Traffic:
    """Packets seen on one host's cable while something happened."""

    encapsulated: int
    plain: int
    """Packets straight from pod to pod."""


class Machines(Protocol):
    """What only the owner of the machines can do: break them, and look from them and at their cables.

    The lab offers it. A cloud does not: there the proofs that need it are skipped, and say so.
    """

    def kill(self, host: str) -> None:
        """End a host as a power cut does."""

    def stop_unit(self, host: str, unit: str, at_most_s: int) -> None:
        """Stop a unit. After `at_most_s` seconds the host starts it again by itself, whatever became of us."""

    def start_unit(self, host: str, unit: str) -> None:
        """Start a unit, and do not wait for it."""

    def reaches(self, host: str, address: str) -> bool:
        """Whether `host` gets an answer to a ping of `address`."""

    def traffic(self, host: str, while_doing: Callable[[], None]) -> Traffic:
        """Count packets on the cable of `host` while `while_doing` runs."""

    def isolate(self, racks: Sequence[str], at_most_s: int) -> None:
        """Let these racks reach one another and nothing else. After `at_most_s` seconds that ends by itself."""

    def rejoin(self) -> None:
        """End what `isolate` began; nothing where it has ended."""

    def repair(self) -> None:
        """Run `up` again. FailedError when it fails."""


@dataclass(frozen=True)
class Context:
    """What a proof works with. offered: the machines, None where nobody may break them."""

    cluster: Cluster
    access: Access
    api: client.ApiClient
    start: Callable[[], Workload]
    offered: Machines | None
    report: Report

    @cached_property
    def workload(self) -> Workload:
        """The pods of the proofs, started when the first proof asks for them."""
        return self.start()

    @cached_property
    def nodes(self) -> dict[str, str]:
        """Node -> its address: every machine at a site, and the workers that the region has when a proof first asks."""
        from clients.nodes import addresses

        return addresses(self.cluster, self.api)

    @property
    def machines(self) -> Machines:
        """The machines, for proofs that are only run where there are some."""
        if self.offered is None:
            raise LookupError("this proof needs a provider whose machines it may break")
        return self.offered


@dataclass(frozen=True)
class Proof:
    """One claim about the cluster. `run` returns what was seen, or raises: FailedProofError says what was seen.

    lacks: why it can't be tried on this cluster, "" where it can.
    """

    name: str
    claim: str
    run: Callable[[Context], str]
    lacks: Callable[[Context], str] = lambda _: ""
    effect: str = "reads, and runs small pods in a namespace of its own"


def lacks_machines(context: Context) -> str:
    """For proofs that break machines, or listen to them."""
    if context.offered is None:
        return "needs machines that it may break or listen to, which this provider does not offer"
    return ""


@dataclass(frozen=True)
class Result:
    name: str
    claim: str
    outcome: str
    """proved, failed or skipped."""
    seen: str
    seconds: float

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def demand(holds: bool, seen: str) -> None:
    """Raise `FailedProofError` with what was seen, unless it holds."""
    if not holds:
        raise FailedProofError(seen)
