"""What decides whether a host may take work: what it has, beside what its kind must have.

`host` is the only file that looks at the host, `node` the only one that speaks to the API; the others decide, and do
neither. Standard library alone, for the Python that a host has.
"""

from __future__ import annotations

from typing import NamedTuple

CONDITION = "PreflightPassed"
"""Type of the Node's condition."""
TAINT = "menagerie.dev/preflight"
"""Key of the taint that a host joins with. Its kubelet can't lift it (NodeRestriction); the API servers do."""
FAIL, WATCH = "fail", "watch"
CHECKS = ("cpu", "memory", "disks", "links", "rdma", "clock", "gpus", "driver", "nvlink", "diagnostic", "xid")


class Finding(NamedTuple):
    """One thing that is not as it should be. reason: a word of Kubernetes, in CamelCase."""

    check: str
    reason: str
    text: str
    level: str = FAIL


class Unknown(Exception):
    """What keeps the check from coming to any verdict, for who has to mend it."""
