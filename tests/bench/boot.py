"""When the hosts of a lab booted, by their own systemd's account. Asked afterwards: watching would cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sandbox.lab import hosts

_STARTED = ("systemctl", "show", "--property=UserspaceTimestampMonotonic", "--value")
_BOOTED = ("systemctl", "show", "basic.target", "--property=ActiveEnterTimestampMonotonic", "--value")


@dataclass(frozen=True)
class Boot:
    """Seconds of the monotonic clock, which hosts share with the machine.

    first_start: the first host's systemd began. all_booted: the last host reached basic.target.
    """

    first_start: float
    all_booted: float


def read(names: Iterable[str]) -> Boot:
    """The boots of these hosts. LabError when one does not run."""
    named = tuple(names)
    return Boot(
        min(_seconds(name, _STARTED) for name in named),
        max(_seconds(name, _BOOTED) for name in named),
    )


def _seconds(name: str, question: tuple[str, ...]) -> float:
    return int(hosts.run(name, question).stdout) / 1e6
