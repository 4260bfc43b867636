"""How API servers learn whether a name is that of a machine of the cluster's workers in the region: a small program of each cloud.

Contract of `/usr/local/sbin/menagerie-machine NAME`: one JSON object on standard output, ``{"made": seconds}`` with the Unix time
at which the machine was made, and ``{"made": null}`` where there is no such machine. On failure a line on standard error, and
another exit status than 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cluster.files import HostFile

_PATH = "/usr/local/sbin/menagerie-machine"


def placed(program: str) -> HostFile:
    """It holds nothing secret, and runs as who approves certificates."""
    return HostFile(_PATH, program, 0o755)


def filled(program: Path, values: Mapping[str, str]) -> str:
    """A program's text with its placeholders filled in."""
    text = program.read_text()
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    return text
