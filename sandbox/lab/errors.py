"""The lab's errors; every message says what to do next."""

from __future__ import annotations

from cluster.errors import FailedError, LockedError


class LabError(FailedError):
    """The lab cannot do the requested operation."""

    code = "lab"


class ForeignLabError(LockedError, LabError):
    """Another checkout's live lab is on this machine."""

    code = "foreign-lab"
