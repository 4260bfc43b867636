"""Kernel limits that all hosts on the machine share, raised while a lab is up.

inotify instances are counted per user, and every host's systemd, containerd and kubelet runs as the machine's root:
eleven hosts need more than the kernel's default of 128. Without inotify instances containerd serves no CRI and
systemd no path units.
"""

from __future__ import annotations

from pathlib import Path

from sandbox.lab import state

_INSTANCES = Path("/proc/sys/fs/inotify/max_user_instances")
ENOUGH = 4096


def ensure() -> None:
    """Raise the limit if it is too low, and record the previous value."""
    before = int(_INSTANCES.read_text())
    if before < ENOUGH:
        state.write(_record(), {"max_user_instances": before})
        _INSTANCES.write_text(str(ENOUGH))


def restore() -> None:
    """Restore the previous limit, if `ensure` raised it."""
    record = state.read(_record())
    if record:
        _INSTANCES.write_text(str(record["max_user_instances"]))
        _record().unlink()


def _record() -> Path:
    return state.root() / "limits.json"
