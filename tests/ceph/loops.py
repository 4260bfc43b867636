"""Loop devices on files in a temporary folder, with links like those that udev makes for disks."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

MIB = 1 << 20
SIZE = 64 * MIB
RULE = {"by_id": "nvme-MODEL_*", "count": 1, "min_size": SIZE, "max_size": None, "rotational": True}
"""The kernel reports a loop device as rotational if the disk below its file is."""


class Loops:
    """The loop devices of a test."""

    def __init__(self, folder: Path, ends: ExitStack) -> None:
        self.by_id, self._folder, self._ends = folder / "by-id", folder, ends
        self.by_id.mkdir()
        self.paths: dict[str, str] = {}

    def add(self, name: str, content: bytes = b"", at: int = 0, size: int = SIZE) -> str:
        """Make a loop device and return its path. Its file holds `content` at `at` (from the end if negative), otherwise zeros."""
        file = self._folder / f"{name}.img"
        with file.open("wb") as handle:
            handle.truncate(size)
            handle.seek(at if at >= 0 else size + at)
            handle.write(content)
        device = subprocess.run(["losetup", "--find", "--show", file], capture_output=True, text=True, check=True)
        path = device.stdout.strip()
        self._ends.callback(subprocess.run, ["losetup", "--detach", path], check=True)
        (self.by_id / f"nvme-MODEL_{name}").symlink_to(path)
        self.paths[name] = path
        return path

    def rule(self, **changes: Any) -> dict[str, Any]:
        """Return a rule that matches these devices, rotational like this machine's loop devices."""
        name = os.path.basename(next(iter(self.paths.values())))
        turns = Path(f"/sys/block/{name}/queue/rotational").read_text().strip() == "1"
        return {**RULE, "rotational": turns, **changes}


@contextmanager
def made(folder: Path) -> Iterator[Loops]:
    """Yield loop devices. Skips the test if this machine can't make any."""
    if os.geteuid() != 0:
        pytest.skip("only root may make loop devices")
    if not Path("/dev/loop-control").exists():
        pytest.skip("this kernel view has no loop devices")
    with ExitStack() as ends:
        loops = Loops(folder, ends)
        try:
            loops.add("probe")
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no loop device can be made here: {error}")
        yield loops
