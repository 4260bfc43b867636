"""Where every value of a loaded cluster stands: in cluster.yaml or in a pool's hosts file.

One namespace: a host's address is at ``("pools", "gpu", "hosts", 3, "address")``, whichever file
holds it; 3 is the host's index in `Cluster.hosts["gpu"]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from cluster.document import Document, Where, show


@dataclass(frozen=True)
class Mark:
    """A place for the eye. `where` is the value's place in that file."""

    file: str
    line: int
    column: int
    where: Where

    @property
    def path(self) -> str:
        return show(self.where)

    @property
    def spot(self) -> str:
        """``line 40``; the path where the cluster was not read from a file."""
        return f"line {self.line}" if self.line else self.path


@dataclass(frozen=True)
class HostMarks:
    """A hosts file, and the index in it of every host of the cluster: bad hosts are left out there."""

    document: Document
    indices: tuple[int, ...]


@dataclass(frozen=True)
class Positions:
    """left_out: places whose value in the cluster isn't what the files say, so no rule may judge it."""

    document: Document
    hosts: Mapping[str, HostMarks] = field(default_factory=dict)
    left_out: tuple[Where, ...] = ()

    def mark(self, where: Where) -> Mark:
        """Where a value stands, or the nearest thing around it that is in a file."""
        if len(where) > 3 and where[0] == "pools" and where[2] == "hosts" and isinstance(where[3], int):
            pool = self.hosts.get(str(where[1]))
            if pool:
                inner: Where = ("hosts", pool.indices[where[3]], *where[4:])
                return Mark(pool.document.file, *pool.document.at(inner), inner)
        line, column = self.document.at(where) if self.document.values else (0, 0)
        return Mark(self.document.file, line, column, where)

    def judged(self, where: Where) -> bool:
        """Whether the value is the file's own."""
        if not self.left_out:
            return True
        out, around = self._out
        return where not in around and not any(where[:depth] in out for depth in range(len(where) + 1))

    @cached_property
    def _out(self) -> tuple[frozenset[Where], frozenset[Where]]:
        """What is left out, and all that it is a part of: thousands of hosts may be bad."""
        around = (out[:depth] for out in self.left_out for depth in range(len(out)))
        return frozenset(self.left_out), frozenset(around)


def nowhere(name: str) -> Positions:
    """For a cluster that was not read from a file: problems carry its name in the file's stead."""
    return Positions(Document(name))
