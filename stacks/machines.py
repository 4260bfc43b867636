"""How API servers check whether a name is that of a machine of the cluster's workers in the region: a small program per cloud.

Contract of `/usr/local/sbin/menagerie-machine NAME`: it prints one JSON object to standard output, ``{"made": seconds}``
with the Unix time at which the machine was created, or ``{"made": null}`` if there is no such machine. On failure it
prints a line to standard error and exits with a status other than 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cluster.files import HostFile

_PATH = "/usr/local/sbin/menagerie-machine"


def placed(program: str) -> HostFile:
    """Return the program as a host file. It contains no secrets and runs as the user that approves certificates."""
    return HostFile(_PATH, program, 0o755)


def filled(program: Path, values: Mapping[str, str]) -> str:
    """Return a program's text with its placeholders filled in."""
    text = program.read_text()
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    return text
