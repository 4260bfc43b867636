"""Deliver `cluster.audit.host` to hosts: as a file on cloud hosts, and over SSH as an argument of a command."""

from __future__ import annotations

from pathlib import Path

from cluster.audit.evidence import Kind
from cluster.files import HostFile
from cluster.programs import without_words

_HOST = Path(__file__).resolve().parent / "host"
MODULE = "menagerie_evidence"
"""The collector's module name for programs on hosts. ``collect(kind)`` returns the document."""


def collector() -> HostFile:
    """Return the collector as a file for agents and programs on the host."""
    return HostFile(f"/usr/local/lib/menagerie/{MODULE}.py", without_words((_HOST / "evidence.py").read_text()))


def collect_command(kind: Kind) -> tuple[str, ...]:
    """Return the command with the collector of this checkout, so that hosts need no preparation."""
    return _command("evidence", kind)


def try_command(trials: str) -> tuple[str, ...]:
    """Return the command for trials. trials: JSON, as `cluster.audit.host.trials` reads it."""
    return _command("trials", trials)


def _command(module: str, argument: str) -> tuple[str, ...]:
    # -I ignores the host's Python paths and environment. An argument may have 128 KiB (execve(2)).
    return ("/usr/bin/python3", "-I", "-c", (_HOST / f"{module}.py").read_text(), argument)
