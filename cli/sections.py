"""The sections of `status`: their names and options, and what looking at one returns.

A section connects to the cluster once and returns a function that looks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from inventories.batches import Amount


class Section(StrEnum):
    """Parts of a cluster with a more detailed status."""

    ETCD = "etcd"
    BACKUPS = "backups"
    KEYS = "keys"
    MACHINES = "machines"
    LINKS = "links"
    CONTROLLERS = "controllers"
    TENANCY = "tenancy"
    OPERATIONS = "operations"


@dataclass(frozen=True)
class Options:
    """Options that some sections take."""

    last: int | None = None
    limit: tuple[str, ...] = ()
    parallel: Amount | None = None
    settle: float = 0.0


@dataclass(frozen=True)
class Report:
    """The result of a look. document: for --json. show: prints it for people."""

    code: int
    document: dict[str, Any]
    show: Callable[[], None]


Look = Callable[[], Report]
OPTIONS: dict[Section, tuple[str, ...]] = {
    Section.ETCD: (),
    Section.BACKUPS: ("last", "limit"),
    Section.KEYS: (),
    Section.MACHINES: ("limit",),
    Section.LINKS: ("limit", "parallel", "settle"),
    Section.CONTROLLERS: (),
    Section.TENANCY: (),
    Section.OPERATIONS: ("last",),
}
"""Section -> the options that it takes."""
