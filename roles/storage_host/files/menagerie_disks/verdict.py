"""Decide why Ceph must not have a disk, and how the host differs from the spec."""

from __future__ import annotations

import errno
import fnmatch
import ipaddress
import re
from typing import Any

from .disk import Disk, holders, mounts, owner, partitions, signatures, swaps
from .edge import Edge, Unknown, read

EMPTY, OSD, REFUSED, OTHER = "empty", "osd", "refused", "other"
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


def saying(kind: str) -> str:
    article = "an" if kind[:1] in "aeiou" else "a"
    known = f"has {article} {kind} file system" if FILE_SYSTEM.fullmatch(kind) else f"has a signature: {kind}"
    return SAYING.get(kind, known)


def reasons(edge: Edge, disk: Disk, paths: list[str]) -> list[str]:
    """Return why Ceph must not have the disk; none if it is empty and free. paths: other disks with its WWID."""
    why = [f"has partitions: {', '.join(partitions(edge, disk))}"] if partitions(edge, disk) else []
    why += [f"is mounted at {place}" for place in mounts(edge, disk)]
    why += [f"swap is on it: {path}" for path in swaps(edge, disk)]
    why += [f"is held by {holder}" for holder in holders(edge, disk)]
    why += ["is read-only"] if disk.read_only else []
    why += ["is removable"] if disk.removable else []
    udev = read(edge.run_folder, "udev/data", f"b{disk.number}")
    if "E:DM_MULTIPATH_DEVICE_PATH=1" in udev.splitlines():
        why.append("is a path of a multipath device")
    why += [f"is the same disk as {other} by another path" for other in paths]
    kinds = signatures(edge, disk.path)
    why += list(dict.fromkeys(saying(kind) for kind in kinds))
    try:
        first, last = edge.ends(disk.path, disk.size)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise Unknown(f"{disk.path} can't be read: {error.strerror}") from None
        known = partitions(edge, disk) or mounts(edge, disk) or swaps(edge, disk) or holders(edge, disk)
        return why + ([] if known else ["is in use by something not visible here, perhaps a container's mount"])
    if not kinds and (any(first) or any(last)):
        why.append("holds data of no known kind in its first or last MiB")
    return why


def meant(disk: Disk, rules: dict[str, dict[str, Any]]) -> list[str]:
    """Return the rules that match the disk."""
    return [
        name
        for name, rule in rules.items()
        if any(fnmatch.fnmatchcase(each, rule["by_id"]) for each in disk.by_id)
        and rule["min_size"] <= disk.size <= (rule["max_size"] or disk.size)
        and rule["rotational"] == disk.rotational
    ]


def judged(edge: Edge, disk: Disk, every: list[Disk], rules: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a disk's report."""
    by = meant(disk, rules)
    paths = [each.name for each in every if disk.wwid and each.wwid == disk.wwid and each.name != disk.name]
    try:
        why, fsid = reasons(edge, disk, paths), owner(edge.label(disk.path))
    except (Unknown, OSError) as error:
        why, fsid = [f"can't be read: {error}"], None
    # A label on a disk that also has a mount, a holder or partitions is the rest of a former OSD.
    if fsid is not None and not any(mounts(edge, disk) + holders(edge, disk) + partitions(edge, disk)):
        why = [each for each in why if each not in (SAYING["ceph_bluestore"],) and not each.startswith("is in use")]
        state = OSD if not why else REFUSED
    else:
        fsid, state = None, REFUSED if why else EMPTY
    if len(by) > 1:
        why, state = [*why, f"matches {' and '.join(by)}"], REFUSED
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


def wrong(host: str, reports: list[dict[str, Any]], rules: dict[str, dict[str, Any]]) -> list[str]:
    """Return how the disks differ from the spec's."""
    problems = []
    for name, rule in rules.items():
        own = [disk for disk in reports if disk["disks"] == name]
        usable = [disk for disk in own if disk["device"]]
        if len(usable) == rule["count"]:
            continue
        problems.append(
            f"{host}: {len(usable)} empty disks match ceph.disks.{name} ({rule['by_id']}), not {rule['count']}"
        )
        problems += [
            f"{host}:/dev/{disk['name']} {'; '.join(disk['why'])}. Rook takes only empty devices. "
            "Wipe it, or remove it from ceph.disks"
            for disk in own
            if not disk["device"] and len(usable) < rule["count"]
        ]
    return problems


def unreached(host: str, networks: dict[str, list[str]], own: list[str]) -> list[str]:
    """Return Ceph's networks in which the host has no address."""
    return [
        f"{host} has no address in networks.{name} ({', '.join(ranges)}); its daemons would not start"
        for name, ranges in networks.items()
        if ranges and not any(ipaddress.ip_address(one) in ipaddress.ip_network(net) for one in own for net in ranges)
    ]
