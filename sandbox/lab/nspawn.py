"""What every use of systemd-nspawn in the lab has in common."""

from __future__ import annotations

import shutil
from pathlib import Path

from sandbox.lab import mounts

_PROPAGATE = Path("/run/systemd/nspawn/propagate")
_EXPORT = Path("/run/systemd/nspawn/unix-export")
"""Sockets of containers, since systemd 256: a mount for each machine, which a killed container leaves behind. The next one refuses to
start over it."""
_CLEARED = 'umount --lazy "$0" 2>/dev/null; rmdir "$0" 2>/dev/null; exec "$@"'

# nspawn's locks are files that a killed container leaves behind; the lab locks by other means.
ENVIRONMENT = {"SYSTEMD_NSPAWN_LOCK": "0", "SYSTEMD_LOG_LEVEL": "notice"}


def command(machine: str, root: Path) -> list[str]:
    """Return the start of a command line: a container in the network namespace and control group created for it.

    machine: also the name of the network namespace, and the argument of `forget`.
    """
    return [
        *("sh", "-c", _CLEARED, str(_EXPORT / machine)),
        "systemd-nspawn",
        "--quiet",
        "--settings=no",
        f"--directory={root}",
        f"--machine={machine}",
        f"--network-namespace-path=/run/netns/{machine}",
        "--register=no",
        "--keep-unit",
        "--link-journal=no",
        "--resolv-conf=off",
        "--timezone=off",
    ]


def leftover_machines(prefix: str) -> tuple[str, ...]:
    """Return the machines with this name prefix that nspawn still has files for."""
    folders = [folder for folder in (_PROPAGATE, _EXPORT) if folder.is_dir()]
    names = {entry.name for folder in folders for entry in folder.iterdir()}
    return tuple(sorted(name for name in names if name.startswith(prefix)))


def forget(machine: str) -> None:
    """Remove nspawn's files for a machine that no longer runs."""
    shutil.rmtree(_PROPAGATE / machine, ignore_errors=True)
    mounts.remove(_EXPORT / machine)
    shutil.rmtree(_EXPORT / machine, ignore_errors=True)
