"""Errors that the command foresees: what it prints, a word for machines, and the exit code.

Raise a kind with a code, `RefusedError(text, code="no-router")`. Subclass a kind only where somebody catches the subclass by name.
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
"""The reader of our output has closed the pipe, as `head` does: what a shell reports of a program that SIGPIPE killed."""


class MenagerieError(Exception):
    """Base of all. code: for machines; it stays when the text changes.

    retryable: whether the same call may succeed later although nobody changes anything. False where that is not known.
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
    """Bad input, or a state in which the verb does not start. Nothing was changed."""

    exit_code = BAD_INPUT


class NotConfirmedError(RefusedError):
    """A verb that changes things needs a yes. declined: somebody was asked, and did not say it."""

    code = "not-confirmed"

    def __init__(self, text: str, *, declined: bool = False) -> None:
        super().__init__(text)
        self.exit_code = FAILED if declined else BAD_INPUT


class FailedError(MenagerieError):
    """The verb started and did not reach its end."""


class TimedOutError(FailedError):
    """A wait ended without what it waited for; the text names what was still missing."""

    code = "timed-out"
    retryable = True


class LockedError(MenagerieError):
    """Another run holds the lock, or has taken it over."""

    code = "locked"
    exit_code = LOCKED
    retryable = True


class UnreachableError(MenagerieError):
    """Some hosts did not answer, and nothing else went wrong."""

    exit_code = UNREACHABLE
    retryable = True


class StateUnreadableError(MenagerieError):
    """The state of stacks can't be read: whether a cluster exists is not known."""

    code = "state-unreadable"
    exit_code = STATE_UNREADABLE
