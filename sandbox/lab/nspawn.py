"""What every use of systemd-nspawn in the lab has in common."""

from __future__ import annotations

import shutil
from pathlib import Path

_PROPAGATE = Path("/run/systemd/nspawn/propagate")

# nspawn's locks are files that a killed container leaves behind; the lab locks by other means.
ENVIRONMENT = {"SYSTEMD_NSPAWN_LOCK": "0", "SYSTEMD_LOG_LEVEL": "notice"}


def command(machine: str, root: Path) -> list[str]:
    """Return the start of a command line: a container in the network namespace and control group created for it.

    machine: also the name of the network namespace, and the argument of `forget`.
    """
    return [
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
    if not _PROPAGATE.is_dir():
        return ()
    return tuple(sorted(entry.name for entry in _PROPAGATE.iterdir() if entry.name.startswith(prefix)))


def forget(machine: str) -> None:
    """Remove nspawn's files for a machine that no longer runs."""
    shutil.rmtree(_PROPAGATE / machine, ignore_errors=True)
