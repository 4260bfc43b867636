"""What the lab refuses or fails at; every text says what to do next."""

from __future__ import annotations

from cluster.errors import FailedError, LockedError


class LabError(FailedError):
    """The lab cannot do what was asked."""

    code = "lab"


class ForeignLabError(LockedError, LabError):
    """A live lab of another checkout is on this machine."""

    code = "foreign-lab"
