"""Find disks, what is on them and what holds them."""

from __future__ import annotations

import json
import os
import re
import stat
from typing import NamedTuple

from .edge import Edge, Unknown, listed, read

SECTOR = 512  # unit of /sys/block/*/size, whatever the disk's sector size (Linux, Documentation/ABI/stable/sysfs-block)
NO_DISKS = re.compile(r"(ram|zram|fd|sr|nbd|rbd|dm-|md|drbd|zd)\d|loop\d")
LABEL = b"bluestore block device\n"
HOLDERS = {"LVM-": "LVM", "mpath-": "multipath", "CRYPT-": "dm-crypt"}


class Disk(NamedTuple):
    name: str
    path: str
    number: str
    by_id: tuple[str, ...]
    size: int
    rotational: bool
    removable: bool
    read_only: bool
    wwid: str


def disks(edge: Edge) -> list[Disk]:
    """Return every disk, and other devices with a name in by-id, such as a lab's loop devices."""
    names: dict[str, list[str]] = {}
    for name in listed(edge.by_id):
        kernel = os.path.basename(os.path.realpath(os.path.join(edge.by_id, name)))
        names.setdefault(kernel, []).append(name)
    devices = []
    for name in listed(edge.sys, "block"):
        if NO_DISKS.match(name) and name not in names:
            continue
        at = os.path.join(edge.sys, "block", name)
        size = int(read(at, "size") or 0) * SECTOR
        if size:
            devices.append(
                Disk(
                    name,
                    os.path.join(edge.dev, name),
                    read(at, "dev"),
                    # The shortest name has no namespace or bus number at its end.
                    tuple(sorted(names.get(name, ()), key=lambda each: (len(each), each))),
                    size,
                    read(at, "queue/rotational") == "1",
                    read(at, "removable") == "1",
                    read(at, "ro") == "1",
                    read(at, "device/wwid") or read(at, "wwid"),
                )
            )
    return devices


def partitions(edge: Edge, disk: Disk) -> list[str]:
    at = os.path.join(edge.sys, "block", disk.name)
    return [name for name in listed(at) if os.path.exists(os.path.join(at, name, "partition"))]


def holders(edge: Edge, disk: Disk) -> list[str]:
    """Return the kernel's devices that are built on the disk or its partitions."""
    at = os.path.join(edge.sys, "block", disk.name)
    names = []
    for place in ("", *partitions(edge, disk)):
        for holder in listed(at, place, "holders"):
            uuid = read(edge.sys, "block", holder, "dm/uuid")
            kind = next((word for prefix, word in HOLDERS.items() if uuid.startswith(prefix)), "")
            names.append(f"{holder} ({kind})" if kind else holder)
    return names


def numbers(edge: Edge, disk: Disk) -> set[str]:
    """Return major:minor of the disk and its partitions."""
    at = os.path.join(edge.sys, "block", disk.name)
    return {disk.number, *(read(at, name, "dev") for name in partitions(edge, disk))}


def mounts(edge: Edge, disk: Disk) -> list[str]:
    """Return mount points. proc(5), mountinfo: the third word is the device, the fifth the mount point."""
    own = numbers(edge, disk)
    lines = [line.split() for line in read(edge.proc, "self/mountinfo").splitlines()]
    return [words[4] for words in lines if len(words) > 4 and words[2] in own]


def swaps(edge: Edge, disk: Disk) -> list[str]:
    own, paths = numbers(edge, disk), []
    for line in read(edge.proc, "swaps").splitlines()[1:]:
        path = line.split()[0]
        try:
            status = os.stat(path)
        except OSError:
            continue
        number = status.st_rdev if stat.S_ISBLK(status.st_mode) else status.st_dev
        if f"{os.major(number)}:{os.minor(number)}" in own:
            paths.append(path)
    return paths


def signatures(edge: Edge, path: str) -> list[str]:
    """Return the types of signatures. Use blkid and wipefs, because each finds some that the other does not."""
    code, said = edge.ask("wipefs", "--no-act", "--json", path)
    if code:
        raise Unknown(f"wipefs {path}: {said.strip()}")
    types = [str(each.get("type")) for each in (json.loads(said) if said.strip() else {}).get("signatures", [])]
    code, said = edge.ask("blkid", "--probe", "--output", "export", path)
    if code == 8:
        types.append("several at once")
    elif code not in (0, 2):
        raise Unknown(f"blkid {path}: {said.strip()}")
    types += re.findall(r"^(?:PT)?TYPE=(\S+)$", said, re.MULTILINE) if code == 0 else []
    return list(dict.fromkeys(types))


def owner(label: bytes) -> str | None:
    """Return the Ceph cluster in an OSD's label; "" if the label has none. None without a label.

    BlueStore's label: this line, the OSD's UUID, then an encoded map with each text after its length.
    """
    if not label.startswith(LABEL):
        return None
    key = b"ceph_fsid"
    at = label.find(len(key).to_bytes(4, "little") + key)
    if at < 0:
        return ""
    start = at + 4 + len(key)
    length = int.from_bytes(label[start : start + 4], "little")
    return label[start + 4 : start + 4 + length].decode(errors="replace")
