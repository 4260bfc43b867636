"""What a rule gets and what it reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cluster.document import Where
from cluster.pools import Host
from cluster.positions import Positions
from cluster.problems import Severity
from cluster.spec import Cluster, ClusterSpec


@dataclass(frozen=True)
class Finding:
    """One problem that a rule reports.

    where: the value to look at.
    also: other values that the rule compared it with.
    unknown: the catalogue lacks the entry, which may be newer than the catalogue.
    """

    where: Where
    message: str
    hint: str
    notes: tuple[str, ...] = ()
    also: tuple[Where, ...] = ()
    severity: Severity = "error"
    unknown: bool = False


@dataclass(frozen=True)
class Checked:
    """A cluster under check, with the positions of its values."""

    cluster: Cluster
    positions: Positions

    @property
    def spec(self) -> ClusterSpec:
        return self.cluster.spec

    def hosts(self) -> Iterator[tuple[Where, str, Host]]:
        """Yield (place, pool, host) of every machine."""
        for pool, hosts in self.cluster.hosts.items():
            for index, host in enumerate(hosts):
                yield ("pools", pool, "hosts", index), pool, host

    def line(self, where: Where) -> str:
        """Return ``line 40``; not useful if the cluster wasn't read from a file."""
        return self.positions.mark(where).spot

    def named(self, where: Where) -> str:
        """Return ``jaguar (inventories/jaguar/cluster.yaml line 24)``, to name this cluster in a message about another."""
        mark = self.positions.mark(where)
        return f"{self.spec.name} ({mark.file} line {mark.line})" if mark.line else self.spec.name


@dataclass(frozen=True)
class Subject(Checked):
    """The cluster that a rule checks, and the others loaded with it."""

    others: tuple[Checked, ...] = ()


Rule = Callable[[Subject], Iterator[Finding]]
