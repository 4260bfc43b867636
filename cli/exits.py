"""Exit codes of the command, and what it refuses by itself."""

from __future__ import annotations

DONE = 0
FAILED = 1
BAD_INPUT = 2
LOCKED = 3
UNREACHABLE = 4
STATE_UNREADABLE = 5
INTERRUPTED = 130
UNHEARD = 141
"""Whoever read our output has stopped, as `head` does: what a shell says of a tool that SIGPIPE ended."""


class NotConfirmedError(Exception):
    """A verb that changes things was not told to go on. `declined` tells whether somebody was asked."""

    def __init__(self, text: str, *, declined: bool = False) -> None:
        self.declined = declined
        super().__init__(text)
