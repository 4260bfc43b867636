"""Access of `menagerie-disks` to the host: folders, the ends of disks, and tools."""

from __future__ import annotations

import os
import subprocess

MIB = 1 << 20


class Unknown(Exception):
    """A disk, or the settings, can't be read."""


class Edge:
    """The host: its folders and tools."""

    def __init__(self, sys_: str = "/sys", proc: str = "/proc", dev: str = "/dev", by_id: str = "", run: str = "/run"):
        self.sys, self.proc, self.dev, self.run_folder = sys_, proc, dev, run
        self.by_id = by_id or os.path.join(dev, "disk/by-id")

    def ask(self, *words: str) -> tuple[int, str]:
        """Return a tool's (exit code, output). Unknown if it can't run."""
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unknown(f"{words[0]} can't run: {error}") from None
        return done.returncode, done.stdout if done.returncode in (0, 2, 8) else done.stdout + done.stderr

    def ends(self, path: str, size: int) -> tuple[bytes, bytes]:
        """Return the first and the last MiB. O_EXCL: OSError EBUSY if the kernel uses the disk (open(2))."""
        descriptor = os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC)
        try:
            return os.pread(descriptor, MIB, 0), os.pread(descriptor, MIB, max(size - MIB, 0))
        finally:
            os.close(descriptor)

    def label(self, path: str) -> bytes:
        """Return the block with BlueStore's label, even if the disk is in use."""
        with open(path, "rb") as handle:
            return handle.read(4096)


def read(*parts: str) -> str:
    try:
        with open(os.path.join(*parts)) as handle:
            return handle.read().strip()
    except OSError:
        return ""


def listed(*parts: str) -> list[str]:
    try:
        return sorted(os.listdir(os.path.join(*parts)))
    except OSError:
        return []
