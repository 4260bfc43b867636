"""Find disks, format blank ones, mount them."""

from __future__ import annotations

import glob
import json
import os
from pathlib import Path
from typing import Any

from .host import Failure, run, say


def mounted_at(device: dict[str, Any]) -> list[str]:
    """Return where a device of lsblk, or anything on it, is mounted; [SWAP] counts."""
    below = [place for child in device.get("children", []) for place in mounted_at(child)]
    return [place for place in device["mountpoints"] if place] + below


def signatures(path: str) -> list[str]:
    """Return what libblkid recognises: file systems with labels, partition tables, RAID, LVM, encryption."""
    entries = json.loads(run("wipefs", "--json", "--no-act", path) or "{}").get("signatures", [])
    return [f"{each['type']} {each.get('label') or ''}".strip() for each in entries]


def use_of(device: dict[str, Any], least: int) -> str:
    """Return why a device must not be formatted: its use, or fewer than `least` bytes; "" if it is blank."""
    places, held = mounted_at(device), [child["path"] for child in device.get("children", [])]
    if places:
        return "mounted at " + ", ".join(places)
    contents = signatures(device["path"])
    if contents:
        return "holds " + ", ".join(contents)
    if held:
        return "part of " + ", ".join(held)
    return f"has {device['size']} of {least} bytes" if device["size"] < least else ""


def mount_disk(disk: dict[str, Any]) -> None:
    """Mount the disk with our label, or format the smallest blank one. Never change others; Failure lists them."""
    mount, label = disk["mount"], disk["label"]
    if os.path.ismount(mount):
        return
    listed = json.loads(run("lsblk", "--json", "--bytes", "--output", "NAME,PATH,SIZE,MOUNTPOINTS"))["blockdevices"]
    linked = [os.path.realpath(link) for pattern in disk["devices"] for link in sorted(glob.glob(pattern))]
    # Partitions have such links too; lsblk lists them below their disk.
    devices = [each for path in dict.fromkeys(linked) for each in listed if each["path"] == path]
    uses = {each["path"]: use_of(each, disk["size"]) for each in devices}
    ours = [path for path, use in uses.items() if use == f"holds ext4 {label}"]
    blank = [each["path"] for each in sorted(devices, key=lambda each: int(each["size"])) if not uses[each["path"]]]
    if len(ours) > 1 or not ours + blank:
        rejected = "".join(f"; {path} {use}" for path, use in uses.items())
        others = ", ".join(f"{each['path']} ({each['size']} bytes)" for each in listed if each not in devices)
        wrong = f"{len(ours)} disks are labelled {label}" if ours else f"no blank disk, and none labelled {label}"
        raise Failure(f"{mount}: {wrong}, at {' '.join(disk['devices'])}{rejected}; other disks: {others or 'none'}")
    (path,) = ours or blank[:1]
    if ours:
        run("fsck.ext4", "-p", path)
    else:
        run("mkfs.ext4", "-q", "-m", "0", "-L", label, path)
        say(f"{path} formatted for {mount}")
    Path(mount).mkdir(parents=True, exist_ok=True)
    run("mount", "-t", "ext4", "-o", ",".join(disk["options"]), path, mount)


def mount_disks(disks: list[dict[str, Any]]) -> None:
    for disk in disks:
        mount_disk(disk)
