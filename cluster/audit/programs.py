"""What of `cluster.audit.host` goes where: beside the other programs on hosts of the cloud, and over ssh as words of a command."""

from __future__ import annotations

from pathlib import Path

from cluster.audit.evidence import Kind
from cluster.files import HostFile

_HOST = Path(__file__).resolve().parent / "host"
MODULE = "menagerie_evidence"
"""The collector's name on hosts, in Python's path of the programs there; ``collect(kind)`` gives the document."""


def collector() -> HostFile:
    """The collector, where an agent or a program of the host finds it."""
    return HostFile(f"/usr/local/lib/menagerie/{MODULE}.py", (_HOST / "evidence.py").read_text())


def collect_command(kind: Kind) -> tuple[str, ...]:
    """The collector as it stands in this checkout, so no host has to be prepared for it."""
    return _command("evidence", kind)


def try_command(trials: str) -> tuple[str, ...]:
    """trials: JSON, as `cluster.audit.host.trials` takes it."""
    return _command("trials", trials)


def _command(module: str, argument: str) -> tuple[str, ...]:
    # -I: nothing of the host's own Python paths or environment; a word of a command may have 128 KiB (execve(2)).
    return ("/usr/bin/python3", "-I", "-c", (_HOST / f"{module}.py").read_text(), argument)
