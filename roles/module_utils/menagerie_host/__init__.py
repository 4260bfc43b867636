"""Code by which the roles' modules change a host: files, kernel, programs and units, a file for each."""

from __future__ import annotations

import subprocess


class Refused(Exception):
    """The host can't be brought to its state. The text tells the operator why."""


def run(words: list[str], meaning: str) -> str:
    """Return a command's standard output. Refused, with `meaning` and the command's output, if it fails."""
    done = subprocess.run(words, check=False, capture_output=True)
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise Refused(f"{meaning}: {said}")
    return done.stdout.decode(errors="replace")
