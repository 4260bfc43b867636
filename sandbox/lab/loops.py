"""Empty disks of hosts: loop devices over files in the host's folder, under names as udev gives disks.

A loop device belongs to the machine and outlives whoever made it, so those of a lab are found by where their files are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from sandbox.lab import disk, shell

LIST = "etc/lab/disks"
"""In a host's root: a line a disk, its name in /dev/disk/by-id and its device. Read by the host's ``lab-quirks``."""


def plug_in(folder: Path, disks: Mapping[str, int]) -> dict[str, Path]:
    """Disks of a host that has none yet: name in /dev/disk/by-id -> device.

    folder: where their files are; they take no room until something is written. disks: name -> bytes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for name, size in disks.items():
        file = folder / name
        with file.open("wb") as made:
            made.truncate(size)
        device = Path(shell.run("losetup", "--find", "--show", str(file)).strip())
        # The kernel takes a loop device for a hard disk where the disk below its file is one.
        Path("/sys/block", device.name, "queue", "rotational").write_text("0")
        found[name] = device
    return found


def below(folder: Path) -> dict[Path, Path]:
    """Loop devices whose files are, or were, below a folder: device -> file."""
    told = shell.run("losetup", "--list", "--json", "--output", "NAME,BACK-FILE")
    every = json.loads(told)["loopdevices"] if told.strip() else []
    files = {Path(each["name"]): Path((each["back-file"] or "").removesuffix(" (deleted)")) for each in every}
    return {device: file for device, file in files.items() if folder in file.parents}


def remove(folder: Path) -> None:
    """Detach what `plug_in` made of a folder, and remove the folder. The host must be gone."""
    for device in below(folder):
        shell.succeeds("losetup", "--detach", str(device))
    disk.remove(folder)
