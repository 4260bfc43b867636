"""A file system of limited size that only this process and its children see, and that ends with them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster.errors import FailedError
from sandbox.lab import mounts, state

_INSIDE = "MENAGERIE_BENCH_INSIDE"


def enter_own_mounts(module: str) -> None:
    """Run this module again, with its arguments, in a mount namespace of its own. Return if it runs there already.

    Raises FailedError without root. While a lab runs, its disks would be copied into the namespace and stay busy, so it
    refuses then, too.
    """
    if os.environ.get(_INSIDE):
        return
    if os.geteuid() != 0:
        raise FailedError("a file system of limited size needs root: run this as root", code="bench")
    if mounted := mounts.below(state.root()):
        raise FailedError(f"a lab is up ({mounted[0]} is mounted): run `./menagerie destroy lab` first", code="bench")
    words = ["unshare", "--mount", "--propagation", "private", sys.executable, "-m", module, *sys.argv[1:]]
    os.execvpe(words[0], words, {**os.environ, _INSIDE: "yes"})


@contextmanager
def limited(folder: Path, megabytes: int) -> Iterator[None]:
    """Let a folder be a file system in memory of this size."""
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """Fill the file system of a folder."""
    filler = folder / "filler"
    subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=1M"], check=False, capture_output=True)
    try:
        yield
    finally:
        filler.unlink()
