"""When the hosts of a lab booted, according to their systemd. Read afterwards, because watching would cost CPU."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sandbox.lab import hosts

_STARTED = ("systemctl", "show", "--property=UserspaceTimestampMonotonic", "--value")
_BOOTED = ("systemctl", "show", "basic.target", "--property=ActiveEnterTimestampMonotonic", "--value")


@dataclass(frozen=True)
class Boot:
    """Seconds of the monotonic clock, which hosts share with the machine.

    first_start: when the first host's systemd started. all_booted: when the last host reached basic.target.
    """

    first_start: float
    all_booted: float


def read(names: Iterable[str]) -> Boot:
    """Return the boots of these hosts. LabError if one does not run."""
    hosts_ = tuple(names)
    return Boot(
        min(_seconds(name, _STARTED) for name in hosts_),
        max(_seconds(name, _BOOTED) for name in hosts_),
    )


def _seconds(name: str, command: tuple[str, ...]) -> float:
    return int(hosts.run(name, command).stdout) / 1e6
