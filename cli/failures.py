"""Errors that a room foresaw: what to print, and the exit code."""

from __future__ import annotations

from dataclasses import dataclass

import urllib3
from kubernetes.client.exceptions import ApiException

from cluster.load import SpecError
from inventories.matching import NothingMatches
from inventories.run import RunFailed
from lab.errors import ForeignLabError, LabError
from operations.access import NotBuiltError
from operations.build import WorkersError
from operations.verify.run import UnknownProofError
from operations.waiting import TimedOutError
from stacks.automation import StackError, StackLockedError
from tools.build import BuildError
from tools.golang import GoMissing

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_LOCKED = 3
EXIT_UNREACHABLE = 4

_CODES: tuple[tuple[type[Exception], int], ...] = (
    (SpecError, EXIT_BAD_INPUT),
    (NothingMatches, EXIT_BAD_INPUT),
    (UnknownProofError, EXIT_BAD_INPUT),
    (ForeignLabError, EXIT_LOCKED),
    (StackLockedError, EXIT_LOCKED),
    (LabError, EXIT_FAILED),
    (StackError, EXIT_FAILED),
    (NotBuiltError, EXIT_FAILED),
    (TimedOutError, EXIT_FAILED),
    (RunFailed, EXIT_FAILED),
    (BuildError, EXIT_FAILED),
    (GoMissing, EXIT_FAILED),
)


@dataclass(frozen=True)
class Foreseen:
    text: str
    code: int


def explain(error: Exception) -> Foreseen | None:
    """What to say about an error, None when nobody foresaw it."""
    if isinstance(error, WorkersError):
        return Foreseen(str(error), EXIT_UNREACHABLE if error.unreachable else EXIT_FAILED)
    if isinstance(error, ApiException):
        return Foreseen(f"the API server answers {error.status} {error.reason}: {error.body}", EXIT_FAILED)
    if isinstance(error, urllib3.exceptions.HTTPError):
        return Foreseen(f"the API server does not answer: {error}", EXIT_FAILED)
    return next((Foreseen(str(error), code) for kind, code in _CODES if isinstance(error, kind)), None)
