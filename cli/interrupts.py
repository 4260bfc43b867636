"""Ctrl-C and SIGTERM: what this command started ends with it.

Pulumi ends by itself at its first interrupt, after the operations under way; at the second it drops
them. So each of our children must hear of a signal exactly once, and is then waited for.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

GRACE_S = 60.0
_NOTICE = b"\ninterrupted: ending what is under way; once more drops it\n"


@contextmanager
def heard() -> Iterator[None]:
    """For the length of a block SIGINT and SIGTERM raise KeyboardInterrupt, and children hear of them."""
    told = False

    def on_signal(number: int, _: object) -> None:
        nonlocal told
        if not (number == signal.SIGINT and _is_foreground()):
            _signal({child for child, parent in _session().items() if parent == os.getpid()}, signal.SIGINT)
        if not told and children():
            # Not print: the signal may have come in the middle of one.
            os.write(2, _NOTICE)
        told = True
        # Threads of the engines' libraries read from pipes that close now, and would tell it as traces.
        threading.excepthook = lambda _: None
        raise KeyboardInterrupt

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def threads_told() -> Iterator[None]:
    """Threads that fail are told of after a block as before it, whatever an interrupt in it has set."""
    before = threading.excepthook
    try:
        yield
    finally:
        threading.excepthook = before


def end_children(grace_s: float = GRACE_S) -> None:
    """Wait until every child has ended; kill what is left after `grace_s`, or at another interrupt."""
    deadline = time.monotonic() + grace_s
    with suppress(KeyboardInterrupt):
        while children() and time.monotonic() < deadline:
            _reap()
            time.sleep(0.05)
    while left := children():
        _signal(left, signal.SIGKILL)
        _reap()
        time.sleep(0.05)
    _reap()


def children() -> set[int]:
    """Processes that descend from this one, in its session, and live.

    A daemon of the lab has a session of its own and is not among them: it outlives the command on purpose.
    """
    parents = _session()
    found: set[int] = set()
    generation = {os.getpid()}
    while generation := {child for child, parent in parents.items() if parent in generation} - found:
        found |= generation
    return found


def _session() -> dict[int, int]:
    """Live processes of our session, each with its parent."""
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
    """Whether a terminal has us in front: its Ctrl-C has then reached the children of our group as well."""
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
