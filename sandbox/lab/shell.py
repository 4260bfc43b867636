"""Commands of the machine, with errors that show what the command said."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from sandbox.lab.errors import LabError


def run(*argv: str, text: str | None = None, timeout: float = 60) -> str:
    """Standard output of a command; `text` goes to its standard input.

    timeout: seconds. Raises LabError with the command and what it said when it fails.
    """
    try:
        result = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=timeout, check=False)
    except FileNotFoundError:
        raise LabError(
            f"{argv[0]} is not installed; `make setup` installs the packages of sandbox/lab/packages.txt"
        ) from None
    except subprocess.TimeoutExpired:
        raise LabError(f"`{' '.join(argv)}` did not end within {timeout:g} s") from None
    if result.returncode:
        said = (result.stderr or result.stdout).strip()
        raise LabError(f"`{' '.join(argv)}` failed with code {result.returncode}: {said}")
    return result.stdout


def succeeds(*argv: str, timeout: float = 60) -> bool:
    """Whether a command ends with code 0."""
    return subprocess.run(argv, capture_output=True, timeout=timeout, check=False).returncode == 0


def batch(lines: Sequence[str], netns: str | None = None) -> None:
    """Run lines of ``ip`` in one process, inside a network namespace when one is named."""
    where = ("-n", netns) if netns else ()
    run("ip", *where, "-batch", "-", text="\n".join(lines) + "\n")
