"""Empty disks of hosts: loop devices over files in the host's folder, under names like those that udev gives to disks.

A loop device belongs to the machine and outlives the process that made it, so the lab finds its devices by the paths
of their files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from sandbox.lab import disk, shell

LIST = "etc/lab/disks"
"""File in a host's root: one line per disk, with its name in /dev/disk/by-id and its device. Read by ``lab-quirks``."""


def plug_in(folder: Path, disks: Mapping[str, int]) -> dict[str, Path]:
    """Create the disks of a host that has none yet; return name in /dev/disk/by-id -> device.

    folder: for their files, which use no space until something is written. disks: name -> bytes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    devices = {}
    for name, size in disks.items():
        file = folder / name
        with file.open("wb") as handle:
            handle.truncate(size)
        device = Path(shell.run("losetup", "--find", "--show", str(file)).strip())
        # The kernel treats a loop device as rotational when the disk below its file is.
        Path("/sys/block", device.name, "queue", "rotational").write_text("0")
        devices[name] = device
    return devices


def below(folder: Path) -> dict[Path, Path]:
    """Return the loop devices whose files are, or were, below a folder: device -> file."""
    output = shell.run("losetup", "--list", "--json", "--output", "NAME,BACK-FILE")
    entries = json.loads(output)["loopdevices"] if output.strip() else []
    files = {Path(entry["name"]): Path((entry["back-file"] or "").removesuffix(" (deleted)")) for entry in entries}
    return {device: file for device, file in files.items() if folder in file.parents}


def remove(folder: Path) -> None:
    """Detach the devices that `plug_in` made in a folder, and remove the folder. The host must be gone."""
    for device in below(folder):
        shell.succeeds("losetup", "--detach", str(device))
    disk.remove(folder)
