"""Expected errors of the command: the text it prints, a machine-readable code, and the exit code.

Raise a kind with a code: `RefusedError(text, code="no-router")`. Subclass a kind only if something catches the subclass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cluster.problems import Problem

DONE = 0
FAILED = 1
BAD_INPUT = 2
LOCKED = 3
UNREACHABLE = 4
STATE_UNREADABLE = 5
INTERRUPTED = 130
UNHEARD = 141
"""The reader of our output has closed the pipe, as `head` does. Shells report this for a program killed by SIGPIPE."""


class MenagerieError(Exception):
    """Base of all expected errors.

    code: machine-readable; stays the same when the text changes.
    retryable: whether the same call may succeed later without any other change. False if that isn't known.
    """

    code: str
    exit_code = FAILED
    retryable = False

    def __init__(self, text: str, *, code: str = "", problems: Sequence[Problem] = ()) -> None:
        super().__init__(text)
        self.problems = problems
        if code:
            self.code = code


class RefusedError(MenagerieError):
    """Bad input, or a state in which the verb doesn't start. Nothing was changed."""

    exit_code = BAD_INPUT


class NotConfirmedError(RefusedError):
    """A verb that changes things wasn't confirmed. declined: a person was asked and answered no."""

    code = "not-confirmed"

    def __init__(self, text: str, *, declined: bool = False) -> None:
        super().__init__(text)
        self.exit_code = FAILED if declined else BAD_INPUT


class FailedError(MenagerieError):
    """The verb started but didn't finish."""


class TimedOutError(FailedError):
    """A wait timed out; the text names what was missing."""

    code = "timed-out"
    retryable = True


class LockedError(MenagerieError):
    """Another run holds the lock, or has taken it over."""

    code = "locked"
    exit_code = LOCKED
    retryable = True


class UnreachableError(MenagerieError):
    """Some hosts didn't answer; nothing else went wrong."""

    exit_code = UNREACHABLE
    retryable = True


class StateUnreadableError(MenagerieError):
    """The state of stacks can't be read, so it isn't known whether a cluster exists."""

    code = "state-unreadable"
    exit_code = STATE_UNREADABLE
