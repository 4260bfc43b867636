"""Decide whether a host may take work: compare its hardware with what its kind must have.

Only `host` reads the host, and only `node` calls the API; the other files are pure. Standard library only, for the
host's Python.
"""

from __future__ import annotations

from typing import NamedTuple

CONDITION = "PreflightPassed"
"""Type of the Node's condition."""
TAINT = "menagerie.dev/preflight"
"""Key of the taint that a host joins with. Its kubelet can't remove it (NodeRestriction); the API servers do."""
FAIL, WATCH = "fail", "watch"
CHECKS = ("cpu", "memory", "disks", "links", "rdma", "clock", "gpus", "driver", "nvlink", "diagnostic", "xid")


class Finding(NamedTuple):
    """Something that differs from what is expected. reason: the condition's, in CamelCase."""

    check: str
    reason: str
    text: str
    level: str = FAIL


class Unknown(Exception):
    """The check has no result. The text tells the operator why."""
