"""Run programs of PATH, without the rest of this process's environment."""

from __future__ import annotations

import os
import subprocess
from types import MappingProxyType
from typing import IO, Any, Mapping, Sequence


def clean(environment: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Return a program's environment: PATH and `environment`."""
    return {"PATH": os.environ.get("PATH", os.defpath), **environment}


class ProgramError(Exception):
    """A program failed; the text has its name, exit code and last output."""

    def __init__(self, command: Sequence[str], returncode: int, said: str) -> None:
        self.returncode = returncode
        self.said = said
        super().__init__(f"{command[0].rsplit('/', 1)[-1]} exited with {returncode}: {said or 'no output'}")


def run(
    command: Sequence[str],
    environment: Mapping[str, str] = MappingProxyType({}),
    stdin: IO[bytes] | None = None,
    stdout: IO[bytes] | None = None,
) -> str:
    """Return what the program printed, "" if it printed to `stdout`. ProgramError unless it exits with 0."""
    done: Any = subprocess.run(
        command,
        env=clean(environment),
        stdin=stdin or subprocess.DEVNULL,
        stdout=stdout or subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    if done.returncode:
        raise ProgramError(command, done.returncode, done.stderr.decode(errors="replace").strip()[-2000:])
    return (done.stdout or b"").decode(errors="replace")
