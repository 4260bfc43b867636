"""Says which disks of this host Ceph may be given, and of every other one why not. Opens disks for reading only.

    menagerie-disks [--json] [--settings FILE]      0 as the spec says, 1 not so, or a disk can't be looked at

Placed by Menagerie's role storage_host. Standard library only; blkid and wipefs of util-linux find signatures, asked in ways
that write nothing (blkid(8), --probe; wipefs(8), --no-act). The kernel closes no file of a disk that was opened for
reading with an event for udev, so nothing on the host notices.
"""

from __future__ import annotations

import argparse
import errno
import fnmatch
import ipaddress
import json
import os
import re
import stat
import subprocess
import sys
from typing import Any, NamedTuple

SETTINGS = "/etc/menagerie/storage.json"
MIB = 1 << 20
SECTOR = 512  # of /sys/block/*/size, whatever the disk's own is (Linux, Documentation/ABI/stable/sysfs-block)
NO_DISKS = re.compile(r"(ram|zram|fd|sr|nbd|rbd|dm-|md|drbd|zd)\d|loop\d")
LABEL = b"bluestore block device\n"
EMPTY, OSD, REFUSED, OTHER = "empty", "osd", "refused", "other"
HOLDERS = {"LVM-": "LVM", "mpath-": "multipath", "CRYPT-": "dm-crypt"}
SAYING = {
    "LVM2_member": "is a physical volume of LVM",
    "linux_raid_member": "is a member of an md array",
    "swap": "has swap space",
    "crypto_LUKS": "is encrypted (LUKS)",
    "mpath_member": "is a path of a multipath device",
    "zfs_member": "is a member of a ZFS pool",
    "ceph_bluestore": "holds an OSD of Ceph",
    "gpt": "has a partition table (GPT)",
    "dos": "has a partition table (MBR)",
    "PMBR": "has a partition table (GPT)",
}
FILE_SYSTEM = re.compile(r"(ext[234]|xfs|btrfs|vfat|ntfs|exfat|f2fs|jfs|reiserfs|udf|iso9660|squashfs|ufs|gfs2|ocfs2)")


class Unknown(Exception):
    """A disk, or the settings, can't be looked at."""


class Edge:
    """The host: its folders, and the tools that are asked."""

    def __init__(self, sys_: str = "/sys", proc: str = "/proc", dev: str = "/dev", by_id: str = "", run: str = "/run"):
        self.sys, self.proc, self.dev, self.run_folder = sys_, proc, dev, run
        self.by_id = by_id or os.path.join(dev, "disk/by-id")

    def ask(self, *words: str) -> tuple[int, str]:
        """(exit code, what it said)."""
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unknown(f"{words[0]} can't be asked: {error}") from None
        return done.returncode, done.stdout if done.returncode in (0, 2, 8) else done.stdout + done.stderr

    def ends(self, path: str, size: int) -> tuple[bytes, bytes]:
        """The first and the last MiB. O_EXCL: the kernel says EBUSY where anything in it holds the disk (open(2))."""
        descriptor = os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC)
        try:
            return os.pread(descriptor, MIB, 0), os.pread(descriptor, MIB, max(size - MIB, 0))
        finally:
            os.close(descriptor)

    def label(self, path: str) -> bytes:
        """Where BlueStore has its label, without asking whether somebody holds the disk."""
        with open(path, "rb") as handle:
            return handle.read(4096)


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


# --- what is there -----------------------------------------------------------------------------------------------


def disks(edge: Edge) -> list[Disk]:
    """Every disk, and whatever else has a name in by-id: a loop device of a lab, say."""
    names: dict[str, list[str]] = {}
    for name in listed(edge.by_id):
        kernel = os.path.basename(os.path.realpath(os.path.join(edge.by_id, name)))
        names.setdefault(kernel, []).append(name)
    found = []
    for name in listed(edge.sys, "block"):
        if NO_DISKS.match(name) and name not in names:
            continue
        at = os.path.join(edge.sys, "block", name)
        size = int(read(at, "size") or 0) * SECTOR
        if size:
            found.append(
                Disk(
                    name,
                    os.path.join(edge.dev, name),
                    read(at, "dev"),
                    # The shortest name has no number of a namespace or a bus at its end.
                    tuple(sorted(names.get(name, ()), key=lambda each: (len(each), each))),
                    size,
                    read(at, "queue/rotational") == "1",
                    read(at, "removable") == "1",
                    read(at, "ro") == "1",
                    read(at, "device/wwid") or read(at, "wwid"),
                )
            )
    return found


def partitions(edge: Edge, disk: Disk) -> list[str]:
    at = os.path.join(edge.sys, "block", disk.name)
    return [name for name in listed(at) if os.path.exists(os.path.join(at, name, "partition"))]


def holders(edge: Edge, disk: Disk) -> list[str]:
    """What the kernel has built on the disk or its partitions."""
    at = os.path.join(edge.sys, "block", disk.name)
    found = []
    for place in ("", *partitions(edge, disk)):
        for holder in listed(at, place, "holders"):
            uuid = read(edge.sys, "block", holder, "dm/uuid")
            kind = next((word for prefix, word in HOLDERS.items() if uuid.startswith(prefix)), "")
            found.append(f"{holder} ({kind})" if kind else holder)
    return found


def numbers(edge: Edge, disk: Disk) -> set[str]:
    """major:minor of the disk and its partitions."""
    at = os.path.join(edge.sys, "block", disk.name)
    return {disk.number, *(read(at, name, "dev") for name in partitions(edge, disk))}


def mounts(edge: Edge, disk: Disk) -> list[str]:
    """proc(5), mountinfo: the third word is the device, the fifth where it is."""
    own = numbers(edge, disk)
    lines = [line.split() for line in read(edge.proc, "self/mountinfo").splitlines()]
    return [words[4] for words in lines if len(words) > 4 and words[2] in own]


def swaps(edge: Edge, disk: Disk) -> list[str]:
    own, found = numbers(edge, disk), []
    for line in read(edge.proc, "swaps").splitlines()[1:]:
        path = line.split()[0]
        try:
            status = os.stat(path)
        except OSError:
            continue
        number = status.st_rdev if stat.S_ISBLK(status.st_mode) else status.st_dev
        if f"{os.major(number)}:{os.minor(number)}" in own:
            found.append(path)
    return found


def signatures(edge: Edge, path: str) -> list[str]:
    """Types of what blkid and wipefs find; each knows places that the other does not."""
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
    """The Ceph cluster of the OSD whose label this is; "" where it doesn't say. None without a label.

    BlueStore's label: this line, the OSD's UUID, then an encoded map, in which each text stands after its length.
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


# --- what it means -----------------------------------------------------------------------------------------------


def saying(kind: str) -> str:
    article = "an" if kind[:1] in "aeiou" else "a"
    known = f"has {article} {kind} file system" if FILE_SYSTEM.fullmatch(kind) else f"has a signature: {kind}"
    return SAYING.get(kind, known)


def reasons(edge: Edge, disk: Disk, paths: list[str]) -> list[str]:
    """Why Ceph must not have the disk; none where it is empty and free. paths: other disks with its WWID."""
    found = [f"has partitions: {', '.join(partitions(edge, disk))}"] if partitions(edge, disk) else []
    found += [f"is mounted at {place}" for place in mounts(edge, disk)]
    found += [f"swap is on it: {path}" for path in swaps(edge, disk)]
    found += [f"is held by {holder}" for holder in holders(edge, disk)]
    found += ["is read-only"] if disk.read_only else []
    found += ["is removable"] if disk.removable else []
    udev = read(edge.run_folder, "udev/data", f"b{disk.number}")
    if "E:DM_MULTIPATH_DEVICE_PATH=1" in udev.splitlines():
        found.append("is a path of a multipath device")
    found += [f"is the same disk as {other} by another path" for other in paths]
    kinds = signatures(edge, disk.path)
    found += list(dict.fromkeys(saying(kind) for kind in kinds))
    try:
        first, last = edge.ends(disk.path, disk.size)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise Unknown(f"{disk.path} can't be read: {error.strerror}") from None
        known = partitions(edge, disk) or mounts(edge, disk) or swaps(edge, disk) or holders(edge, disk)
        return found + ([] if known else ["is in use, by what doesn't show here: a mount of a container, perhaps"])
    if not kinds and (any(first) or any(last)):
        found.append("holds data of no known kind in its first or last MiB")
    return found


def meant(disk: Disk, rules: dict[str, dict[str, Any]]) -> list[str]:
    """The rules that mean the disk."""
    return [
        name
        for name, rule in rules.items()
        if any(fnmatch.fnmatchcase(each, rule["by_id"]) for each in disk.by_id)
        and rule["min_size"] <= disk.size <= (rule["max_size"] or disk.size)
        and rule["rotational"] == disk.rotational
    ]


def judged(edge: Edge, disk: Disk, every: list[Disk], rules: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A disk, as it is told."""
    by = meant(disk, rules)
    paths = [each.name for each in every if disk.wwid and each.wwid == disk.wwid and each.name != disk.name]
    try:
        why, fsid = reasons(edge, disk, paths), owner(edge.label(disk.path))
    except (Unknown, OSError) as error:
        why, fsid = [f"can't be looked at: {error}"], None
    # A label beside a file system or a mount is what was left of an OSD: nobody's any more.
    if fsid is not None and not any(mounts(edge, disk) + holders(edge, disk) + partitions(edge, disk)):
        why = [each for each in why if each not in (SAYING["ceph_bluestore"],) and not each.startswith("is in use")]
        state = OSD if not why else REFUSED
    else:
        fsid, state = None, REFUSED if why else EMPTY
    if len(by) > 1:
        why, state = [*why, f"is meant by {' and '.join(by)}"], REFUSED
    names = [name for name in disk.by_id if by and fnmatch.fnmatchcase(name, rules[by[0]]["by_id"])]
    return {
        "name": disk.name,
        "by_id": list(disk.by_id),
        "size": disk.size,
        "rotational": disk.rotational,
        "disks": by[0] if by else None,
        "state": state if by or state != EMPTY else OTHER,
        "why": why,
        "fsid": fsid,
        "device": f"/dev/disk/by-id/{names[0]}" if names and state in (EMPTY, OSD) else None,
    }


def wrong(host: str, told: list[dict[str, Any]], rules: dict[str, dict[str, Any]]) -> list[str]:
    """How the disks differ from the spec's."""
    found = []
    for name, rule in rules.items():
        own = [disk for disk in told if disk["disks"] == name]
        usable = [disk for disk in own if disk["device"]]
        if len(usable) == rule["count"]:
            continue
        found.append(
            f"{host}: {len(usable)} empty disks are as ceph.disks.{name} says ({rule['by_id']}), not {rule['count']}"
        )
        found += [
            f"{host}:/dev/{disk['name']} {'; '.join(disk['why'])}. Rook takes only empty devices. "
            "Wipe it, or remove it from ceph.disks"
            for disk in own
            if not disk["device"] and len(usable) < rule["count"]
        ]
    return found


def addresses(edge: Edge) -> list[str]:
    code, said = edge.ask("ip", "-json", "-4", "address")
    if code:
        raise Unknown(f"ip address: {said.strip()}")
    return [each["local"] for link in json.loads(said) for each in link.get("addr_info", []) if "local" in each]


def unreached(host: str, networks: dict[str, list[str]], own: list[str]) -> list[str]:
    """Networks of Ceph in which the host has no address."""
    return [
        f"{host} has no address in networks.{name} ({', '.join(ranges)}); its daemons would not start"
        for name, ranges in networks.items()
        if ranges and not any(ipaddress.ip_address(one) in ipaddress.ip_network(net) for one in own for net in ranges)
    ]


def facts(edge: Edge, settings: dict[str, Any]) -> dict[str, Any]:
    """All that is told of this host."""
    host, rules = os.uname().nodename, settings["disks"]
    every = disks(edge)
    told = [judged(edge, disk, every, rules) for disk in every]
    own = addresses(edge)
    problems = wrong(host, told, rules) + unreached(host, settings["networks"], own)
    if not os.path.exists(os.path.join(edge.run_folder, "udev/control")):
        problems.append(f"{host}: udev does not run; Rook's pods learn of disks from /run/udev")
    return {"host": host, "disks": told, "addresses": own, "wrong": problems}


def show(told: dict[str, Any]) -> None:
    for disk in told["disks"]:
        reason = f": {'; '.join(disk['why'])}" if disk["why"] else ""
        size, kind = f"{disk['size'] / 1e12:.2f} TB", disk["disks"] or "meant by no rule"
        print(f"/dev/{disk['name']}  {size}  {kind}  {disk['state']}{reason}")
        for name in disk["by_id"]:
            print(f"    /dev/disk/by-id/{name}")


def main(arguments: list[str], edge: Edge) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--settings", default=SETTINGS)
    given = parser.parse_args(arguments)
    try:
        with open(given.settings) as handle:
            settings = json.load(handle)
        told = facts(edge, settings)
    except (Unknown, OSError, ValueError, KeyError) as error:
        print(f"{os.uname().nodename}: {error}", file=sys.stderr)
        return 1
    if given.json:
        print(json.dumps(told))
    else:
        show(told)
    for line in told["wrong"]:
        print(line, file=sys.stderr)
    return 1 if told["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Edge()))
