"""Positions of all values of a loaded cluster, in cluster.yaml or in a pool's hosts file.

Paths are the same for all files: a host's address is at ``("pools", "gpu", "hosts", 3, "address")``, where 3 is
the host's index in `Cluster.hosts["gpu"]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from cluster.document import Document, Where, show


@dataclass(frozen=True)
class Mark:
    """A position to show to people. where: the value's path in that file."""

    file: str
    line: int
    column: int
    where: Where

    @property
    def path(self) -> str:
        return show(self.where)

    @property
    def spot(self) -> str:
        """``line 40``; the path if the cluster wasn't read from a file."""
        return f"line {self.line}" if self.line else self.path


@dataclass(frozen=True)
class HostMarks:
    """A hosts file, and the index in it of every host of the cluster, which omits hosts with errors."""

    document: Document
    indices: tuple[int, ...]


@dataclass(frozen=True)
class Positions:
    """Positions of a cluster. left_out: paths whose value differs from the files, so that rules must not check them."""

    document: Document
    hosts: Mapping[str, HostMarks] = field(default_factory=dict)
    left_out: tuple[Where, ...] = ()

    def mark(self, where: Where) -> Mark:
        """Return the position of a value, or of the nearest value around it that is in a file."""
        if len(where) > 3 and where[0] == "pools" and where[2] == "hosts" and isinstance(where[3], int):
            pool = self.hosts.get(str(where[1]))
            if pool:
                inner: Where = ("hosts", pool.indices[where[3]], *where[4:])
                return Mark(pool.document.file, *pool.document.at(inner), inner)
        line, column = self.document.at(where) if self.document.values else (0, 0)
        return Mark(self.document.file, line, column, where)

    def judged(self, where: Where) -> bool:
        """Return whether the value is the one in the file, so that rules may check it."""
        if not self.left_out:
            return True
        out, around = self._out
        return where not in around and not any(where[:depth] in out for depth in range(len(where) + 1))

    @cached_property
    def _out(self) -> tuple[frozenset[Where], frozenset[Where]]:
        """The paths left out, and all paths around them; as sets, because thousands of hosts may have errors."""
        around = (out[:depth] for out in self.left_out for depth in range(len(out)))
        return frozenset(self.left_out), frozenset(around)


def nowhere(name: str) -> Positions:
    """Return positions for a cluster that wasn't read from a file: problems have its name instead of a file's."""
    return Positions(Document(name))
