"""Ctrl-C and SIGTERM: the command's children end with it.

At its first interrupt, Pulumi finishes the operations under way and exits; at the second, it drops them.
So each child must get a signal exactly once, and the command then waits for it.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cluster.waiting import poll

GRACE_S = 60.0
_NOTICE = b"\ninterrupted: finishing what is under way; interrupt again to drop it\n"


@contextmanager
def interrupts_raise() -> Iterator[None]:
    """Within the block, let SIGINT and SIGTERM raise KeyboardInterrupt, and pass them on to children."""
    noticed = False

    def on_signal(number: int, _: object) -> None:
        nonlocal noticed
        if not (number == signal.SIGINT and _is_foreground()):
            _signal({child for child, parent in _session().items() if parent == os.getpid()}, signal.SIGINT)
        if not noticed and children():
            # Not print: the signal may have come in the middle of one.
            os.write(2, _NOTICE)
        noticed = True
        # Threads of the engines' libraries read from pipes that close now, and would print tracebacks.
        threading.excepthook = lambda _: None
        raise KeyboardInterrupt

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def restoring_thread_reports() -> Iterator[None]:
    """Restore the reporting of failed threads after the block, which an interrupt in it may have turned off."""
    before = threading.excepthook
    try:
        yield
    finally:
        threading.excepthook = before


def end_children(grace_s: float = GRACE_S) -> None:
    """Wait until every child has ended; kill what is left after `grace_s`, or at another interrupt."""
    with suppress(KeyboardInterrupt):
        poll(_all_ended, grace_s, 0.05)
    while left := children():
        _signal(left, signal.SIGKILL)
        _reap()
        time.sleep(0.05)
    _reap()


def children() -> set[int]:
    """Return the live descendants of this process in its session.

    A daemon of the lab has its own session and is not included: it is meant to outlive the command.
    """
    parents = _session()
    descendants: set[int] = set()
    generation = {os.getpid()}
    while generation := {child for child, parent in parents.items() if parent in generation} - descendants:
        descendants |= generation
    return descendants


def _all_ended() -> bool:
    _reap()
    return not children()


def _session() -> dict[int, int]:
    """Return the live processes of our session -> their parents."""
    parents = {}
    ours = os.getsid(0)
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # proc(5): "pid (comm) state ppid pgrp session ..."; comm may hold spaces and brackets.
            state, parent, _, session = entry.read_text().rpartition(")")[2].split()[:4]
            if int(session) == ours and state not in "ZX":
                parents[int(entry.parent.name)] = int(parent)
    return parents


def _is_foreground() -> bool:
    """Return whether we are the foreground process group of a terminal: Ctrl-C then reached our group's children too."""
    for descriptor in (0, 1, 2):
        with suppress(OSError):
            return os.tcgetpgrp(descriptor) == os.getpgrp()
    return False


def _signal(processes: set[int], number: int) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
