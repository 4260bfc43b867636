"""The root file system of the lab's hosts as one file, with owners, modes and attributes, to carry it to another machine."""

from __future__ import annotations

from pathlib import Path

from sandbox.lab import disk, shell

_ATTRIBUTES = ("--numeric-owner", "--xattrs", "--xattrs-include=*", "--acls")
_TIMEOUT_S = 600.0


def pack(root: Path, archive: Path) -> None:
    """Write a root file system to a tar, compressed by gzip. Raises LabError with tar's output."""
    compress = "--use-compress-program=gzip -n1"
    words = ("-C", str(root), "--sort=name", *_ATTRIBUTES, compress, "-cf", str(archive), ".")
    shell.run("tar", *words, timeout=_TIMEOUT_S)


def unpack(archive: Path, root: Path) -> None:
    """Create a root file system from such a tar, completely or not at all. Raises LabError with tar's output.

    GNU tar never leaves the folder: it strips leading slashes, refuses "..", and makes links to elsewhere last.
    """
    with disk.whole(root) as fresh:
        fresh.mkdir()
        shell.run("tar", *_ATTRIBUTES, "-xzpf", str(archive), "-C", str(fresh), timeout=_TIMEOUT_S)
