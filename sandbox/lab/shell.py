"""Run commands of the machine; errors include the command's output."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from sandbox.lab.errors import LabError


def run(*argv: str, text: str | None = None, timeout: float = 60) -> str:
    """Return the standard output of a command; `text` becomes its standard input.

    timeout: seconds. Raises LabError with the command and its output when it fails.
    """
    try:
        result = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=timeout, check=False)
    except FileNotFoundError:
        raise LabError(
            f"{argv[0]} is not installed; `make setup` installs the packages of sandbox/lab/packages.txt"
        ) from None
    except subprocess.TimeoutExpired:
        raise LabError(f"`{' '.join(argv)}` did not finish within {timeout:g} s") from None
    if result.returncode:
        output = (result.stderr or result.stdout).strip()
        raise LabError(f"`{' '.join(argv)}` failed with code {result.returncode}: {output}")
    return result.stdout


def succeeds(*argv: str, timeout: float = 60) -> bool:
    """Whether a command exits with code 0."""
    return subprocess.run(argv, capture_output=True, timeout=timeout, check=False).returncode == 0


def batch(lines: Sequence[str], netns: str | None = None) -> None:
    """Run lines of ``ip`` in one process, inside a network namespace when one is given."""
    where = ("-n", netns) if netns else ()
    run("ip", *where, "-batch", "-", text="\n".join(lines) + "\n")
