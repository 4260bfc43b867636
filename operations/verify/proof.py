"""A proof, and what it may use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from clients.access import Access
from cluster.spec import Cluster

if TYPE_CHECKING:
    from kubernetes import client

    from clients.waiting import Report
    from operations.verify.workload import Workload


class FailedProofError(Exception):
    """A claim does not hold; the text says what was observed."""


@dataclass(frozen=True)
class Traffic:
    """Packets on one host's cable during an action."""

    encapsulated: int
    plain: int
    """Packets sent directly from pod to pod."""


class Machines(Protocol):
    """Actions that only the owner of the machines can do: break them, ping from them, and capture on their cables.

    The lab offers this. A cloud does not; there, the proofs that need it are skipped and say so.
    """

    def kill(self, host: str) -> None:
        """Stop a host as a power cut does."""

    def stop_unit(self, host: str, unit: str, at_most_s: int) -> None:
        """Stop a unit. After `at_most_s` seconds the host starts it again, even if this process is gone."""

    def start_unit(self, host: str, unit: str) -> None:
        """Start a unit without waiting for it."""

    def reaches(self, host: str, address: str) -> bool:
        """Return whether `host` gets a response to a ping of `address`."""

    def traffic(self, host: str, while_doing: Callable[[], None]) -> Traffic:
        """Count packets on the cable of `host` while `while_doing` runs."""

    def isolate(self, racks: Sequence[str], at_most_s: int) -> None:
        """Let these racks reach one another and nothing else. Ends automatically after `at_most_s` seconds."""

    def rejoin(self) -> None:
        """Undo `isolate`. Does nothing if it has ended."""

    def repair(self) -> None:
        """Run `up` again. Raises FailedError if it fails."""


@dataclass(frozen=True)
class Context:
    """What a proof works with. offered: the machines, None if they must not be broken."""

    cluster: Cluster
    access: Access
    api: client.ApiClient
    start: Callable[[], Workload]
    offered: Machines | None
    report: Report

    @cached_property
    def workload(self) -> Workload:
        """The pods of the proofs, started when a proof first needs them."""
        return self.start()

    @cached_property
    def nodes(self) -> dict[str, str]:
        """Node -> address: every machine at a site, and the workers in the region when a proof first needs them."""
        from clients.nodes import addresses  # noqa: PLC0415 - memory: the Kubernetes client, not next to the engine

        return addresses(self.cluster, self.api)

    @property
    def machines(self) -> Machines:
        """The machines, for proofs that run only if there are some."""
        if self.offered is None:
            raise LookupError("this proof needs a provider whose machines it may break")
        return self.offered


@dataclass(frozen=True)
class Proof:
    """One claim about the cluster. `run` returns what was observed, or raises FailedProofError with that.

    lacks: returns why it can't be tried on this cluster, "" if it can.
    """

    name: str
    claim: str
    run: Callable[[Context], str]
    lacks: Callable[[Context], str] = lambda _: ""
    effect: str = "reads, and runs small pods in a separate namespace"


def lacks_machines(context: Context) -> str:
    """Return why proofs can't break machines or capture their traffic, "" if they can."""
    if context.offered is None:
        return "needs machines that it may break or capture traffic on, which this provider does not offer"
    return ""


@dataclass(frozen=True)
class ProofResult:
    name: str
    claim: str
    outcome: str
    """proved, failed or skipped."""
    observation: str
    seconds: float

    def to_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "claim": self.claim,
            "outcome": self.outcome,
            "seen": self.observation,
            "seconds": self.seconds,
        }


def demand(holds: bool, observation: str) -> None:
    """Raise FailedProofError with what was observed, unless it holds."""
    if not holds:
        raise FailedProofError(observation)
