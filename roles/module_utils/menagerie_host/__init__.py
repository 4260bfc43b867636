"""What the modules of these roles do to a host, one file a kind of thing: files, kernel, programs, units."""

from __future__ import annotations

import subprocess


class Refused(Exception):
    """Why the host can't be brought to its state, for who has to mend it."""


def run(words: list[str], meaning: str) -> str:
    """Standard output of a command. Refused, with `meaning` and what the command said, where it fails."""
    done = subprocess.run(words, check=False, capture_output=True)
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise Refused(f"{meaning}: {said}")
    return done.stdout.decode(errors="replace")
