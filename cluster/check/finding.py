"""What a rule sees and what it says."""

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
    """One thing wrong. `where` is the value to look at; `also` the others that the rule compared it with.

    unknown: it is only that the catalogue lacks an entry, which may be newer than the catalogue.
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
    """A cluster that is checked, with the places of its values."""

    cluster: Cluster
    positions: Positions

    @property
    def spec(self) -> ClusterSpec:
        return self.cluster.spec

    def hosts(self) -> Iterator[tuple[Where, str, Host]]:
        """(place, pool, host) of every machine."""
        for pool, hosts in self.cluster.hosts.items():
            for index, host in enumerate(hosts):
                yield ("pools", pool, "hosts", index), pool, host

    def line(self, where: Where) -> str:
        """``line 40``; nothing useful where the cluster was not read from a file."""
        return self.positions.mark(where).spot

    def named(self, where: Where) -> str:
        """``jaguar (inventories/jaguar/cluster.yaml line 24)``, to be told beside another cluster's value."""
        mark = self.positions.mark(where)
        return f"{self.spec.name} ({mark.file} line {mark.line})" if mark.line else self.spec.name


@dataclass(frozen=True)
class Subject(Checked):
    """One cluster under a rule. `others` are those loaded with it."""

    others: tuple[Checked, ...] = ()


Rule = Callable[[Subject], Iterator[Finding]]
