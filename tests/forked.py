"""Run the command in a child of this process, and see what it prints and how it ends, even if it would kill the process."""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cli.running import run

GIB = 2**30


@dataclass(frozen=True)
class Ended:
    """How a child ended.

    code: exit code, or minus the signal that killed it. cpu_s: seconds of CPU time. peak: bytes of memory.
    """

    code: int
    text: str
    cpu_s: float
    peak: int


def command(*words: str, cpu_s: int = 20, memory: int = 2 * GIB, wall_s: int = 120) -> Ended:
    """Run a command line. Nothing is imported again, so this takes milliseconds. `text` has both streams."""
    return forked(lambda: run(words), cpu_s=cpu_s, memory=memory, wall_s=wall_s)


def forked(work: Callable[[], int], *, cpu_s: int = 20, memory: int = 2 * GIB, wall_s: int = 120) -> Ended:
    """Run `work` in a child with limits. memory: bytes of address space on top of what this process has."""
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if not child:
            _limited(output.fileno(), cpu_s, memory, wall_s)
            code = 99
            try:
                code = work()
            except BaseException:  # noqa: BLE001 - reported as text, and by the exit code
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        _, status, used = os.wait4(child, 0)
        output.seek(0)
        text = output.read().decode(errors="replace")
    return Ended(os.waitstatus_to_exitcode(status), text, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def _limited(output: int, cpu_s: int, memory: int, wall_s: int) -> None:
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))  # noqa: SIM115
    with open("/proc/self/statm", encoding="ascii") as pages:
        now = int(pages.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + memory, now + memory))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(wall_s)


def words_of(ended: Ended, forbidden: Sequence[str] = ("Traceback", "this is a bug")) -> list[str]:
    """Return the forbidden words that the command printed."""
    return [word for word in forbidden if word in ended.text]
