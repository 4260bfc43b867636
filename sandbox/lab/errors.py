"""What the lab refuses or fails at; every text says what to do next."""

from __future__ import annotations

from collections.abc import Sequence


class LabError(Exception):
    """The lab cannot do what was asked."""


class PreflightError(LabError):
    """The machine cannot hold a lab. `reasons` holds every reason at once."""

    def __init__(self, reasons: Sequence[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("this machine cannot hold a lab:\n" + "\n".join(f"  - {reason}" for reason in reasons))


class ForeignLabError(LabError):
    """A live lab of another checkout is on this machine."""
