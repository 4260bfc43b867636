"""How the boot program finds, formats and mounts disks, on loop devices if the machine has them."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import struct
import subprocess
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.userdata.placed import boot
from tests.waiting import until

MIB = 1 << 20
Attach = Callable[..., str]


def sh(*command: str, given: str = "") -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, input=given).stdout.strip()


@pytest.fixture
def attach(tmp_path: Path) -> Iterator[Attach]:
    """Yield attach("link", mib), which makes a blank disk with a link to it and returns the path of its device."""
    if os.getuid() != 0 or not Path("/dev/loop-control").exists():
        pytest.skip("loop devices need root and /dev/loop-control")
    devices: list[str] = []
    (tmp_path / "links").mkdir()

    def attached(link: str, mib: int = 16) -> str:
        image = tmp_path / f"{link}.img"
        with image.open("wb") as out:
            out.truncate(mib * MIB)
        try:
            device = sh("losetup", "--find", "--show", str(image))
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no loop device can be had here: {error.stderr.strip()}")
        devices.append(device)
        (tmp_path / "links" / link).symlink_to(device)
        return device

    yield attached
    for device in devices:
        for place in reversed(mounts(device)):
            unmount(place)
        sh("losetup", "--detach", device)


def unmount(place: str) -> None:
    """Unmount a disk, and wait until it is free.

    A host of the lab that starts meanwhile begins with a copy of all mounts, which keeps the disk in use for a moment.
    """
    device = next(line.split()[0] for line in Path("/proc/mounts").read_text().splitlines() if line.split()[1] == place)
    sh("umount", place)
    until(lambda: is_free(device))


def is_free(device: str) -> bool:
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL))
    except OSError as error:
        assert error.errno == errno.EBUSY
        return False
    return True


def mounts(device: str) -> list[str]:
    return [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if line.split()[0] == device]


@pytest.fixture
def disk(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Return disk("etcd-main", "pattern", ...), which returns a disk as in a payload."""

    def made(label: str = "etcd-main", *patterns: str, size: int = 0) -> dict[str, Any]:
        devices = [str(tmp_path / "links" / pattern) for pattern in patterns or ("data*",)]
        return {
            "mount": str(tmp_path / "mnt" / label),
            "label": label,
            "devices": devices,
            "options": ["noatime"],
            "size": size,
        }

    return made


def digest(tmp_path: Path, link: str) -> str:
    return hashlib.sha256((tmp_path / f"{link}.img").read_bytes()).hexdigest()


def test_a_blank_disk_is_formatted_once_and_keeps_its_data_after_a_reboot(attach, disk, capsys):
    device, spec = attach("data"), disk()
    boot.mount_disks([spec])
    line = next(line for line in Path("/proc/mounts").read_text().splitlines() if line.startswith(device + " "))
    assert line.split()[1:3] == [spec["mount"], "ext4"]
    assert "noatime" in line
    Path(spec["mount"], "kept").write_text("data")
    boot.mount_disks([spec])
    assert mounts(device) == [spec["mount"]]
    unmount(spec["mount"])
    boot.mount_disks([spec])
    assert Path(spec["mount"], "kept").read_text() == "data"
    assert capsys.readouterr().out.count(" formatted for ") == 1


def gpt(device: str, at_its_head: bool = True) -> None:
    """Write an empty partition table to both ends of the disk, or only the copy at the end, as on an overwritten disk."""
    sectors = int(sh("blockdev", "--getsz", device))
    entries = bytes(128 * 128)
    first, last = 1, sectors - 1
    with open(device, "r+b") as out:
        if at_its_head:
            out.seek(446)
            out.write(struct.pack("<8sII", b"\0\0\2\0\xee\xff\xff\xff", 1, last) + bytes(48) + b"\x55\xaa")
        for own, other, table in ((first, last, 2), (last, first, last - 32))[0 if at_its_head else 1 :]:
            fields = (own, other, 34, last - 33, bytes(range(16)), table, 128, 128, zlib.crc32(entries))
            head = struct.pack("<8sIIIIQQQQ16sQIII", b"EFI PART", 0x10000, 92, 0, 0, *fields)
            head = head[:16] + struct.pack("<I", zlib.crc32(head)) + head[20:]
            out.seek(own * 512)
            out.write(head)
        out.flush()
        os.fsync(out.fileno())


def dos(device: str) -> None:
    with open(device, "r+b") as out:
        out.seek(446)
        out.write(struct.pack("<8sII", b"\0\0\2\0\x83\0\0\0", 1, 1024) + bytes(48) + b"\x55\xaa")
        out.flush()
        os.fsync(out.fileno())


def two(device: str) -> None:
    sh("mkfs.ext4", "-q", "-L", "etcd-main", device)
    gpt(device, at_its_head=False)


FOREIGN: dict[str, tuple[Callable[[str], object], str]] = {
    "another etcd's": (lambda device: sh("mkfs.ext4", "-q", "-L", "etcd-events", device), "ext4 etcd-events"),
    "no label": (lambda device: sh("mkfs.ext4", "-q", device), "ext4"),
    "swap with our label": (lambda device: sh("mkswap", "--label", "etcd-main", device), "swap etcd-main"),
    "partition table": (gpt, "gpt, gpt, PMBR"),
    "DOS partition table": (dos, "dos"),
    "two signatures": (two, "ext4 etcd-main, gpt"),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_disk_with_other_content_is_reported_and_never_touched(attach, disk, tmp_path, kind):
    device = attach("data")
    make, content = FOREIGN[kind]
    make(device)
    sh("sync", device)
    before = digest(tmp_path, "data")
    with pytest.raises(boot.Failure) as failure:
        boot.mount_disks([disk()])
    assert f"{device} holds {content}" in str(failure.value)
    assert disk()["mount"] in str(failure.value)
    sh("sync", device)
    assert (digest(tmp_path, "data"), mounts(device)) == (before, [])


def test_a_blank_disk_is_used_next_to_one_with_other_content(attach, disk, tmp_path):
    foreign, blank = attach("data-1"), attach("data-2")
    sh("mkfs.ext4", "-q", foreign)
    sh("sync", foreign)
    before = digest(tmp_path, "data-1")
    boot.mount_disks([disk()])
    assert mounts(blank) == [disk()["mount"]]
    assert (digest(tmp_path, "data-1"), mounts(foreign)) == (before, [])


def test_a_disk_with_the_label_is_preferred_to_a_blank_one(attach, disk):
    blank, ours = attach("data-1"), attach("data-2")
    sh("mkfs.ext4", "-q", "-L", "etcd-main", ours)
    boot.mount_disks([disk()])
    assert (mounts(ours), mounts(blank)) == ([disk()["mount"]], [])
    assert boot.signatures(blank) == []


def test_two_disks_with_the_label_need_a_human_decision(attach, disk):
    for link in ("data-1", "data-2"):
        sh("mkfs.ext4", "-q", "-L", "etcd-main", attach(link))
    with pytest.raises(boot.Failure, match="2 disks are labelled etcd-main"):
        boot.mount_disks([disk()])


def test_two_etcds_on_one_host_share_patterns_and_never_a_disk(attach, disk):
    """Main gets the larger disk, whatever the order of the links; after a reboot both are found in any order."""
    small, large = attach("data-1", 16), attach("data-2", 32)
    main, events = disk("etcd-main", size=32 * MIB), disk("etcd-events", size=16 * MIB)
    for order in ([main, events], [events, main]):
        boot.mount_disks(order)
        assert (mounts(large), mounts(small)) == ([main["mount"]], [events["mount"]])
        for spec in order:
            unmount(spec["mount"])
    boot.mount_disks([events])
    assert mounts(small) == [events["mount"]]


def test_a_disk_that_is_too_small_is_reported_and_left_blank(attach, disk):
    device = attach("data", 16)
    with pytest.raises(boot.Failure, match=rf"{device} has {16 * MIB} of {17 * MIB} bytes"):
        boot.mount_disks([disk(size=17 * MIB)])
    assert boot.signatures(device) == []


def test_a_disk_that_is_in_use_elsewhere_is_reported_with_its_mount_point(attach, disk, tmp_path):
    device = attach("data")
    sh("mkfs.ext4", "-q", "-L", "etcd-main", device)
    (tmp_path / "elsewhere").mkdir()
    sh("mount", device, str(tmp_path / "elsewhere"))
    with pytest.raises(boot.Failure, match=f"{device} mounted at {tmp_path}/elsewhere"):
        boot.mount_disks([disk()])


def test_the_boot_program_waits_for_a_disk_that_is_attached_later(attach, disk, capsys):
    other = attach("other")
    spec, delays = disk(), []

    def attach_later(seconds: float) -> None:
        delays.append(seconds)
        attach("data")

    boot.until_done("disks", lambda: boot.mount_disks([spec]), attach_later)
    assert os.path.ismount(spec["mount"])
    assert len(delays) == 1
    output = capsys.readouterr().out
    assert "FAILED at disks" in output
    assert f"{other} ({16 * MIB} bytes)" in output
    assert boot.signatures(other) == []


def test_links_of_one_disk_count_once_and_links_of_partitions_are_ignored(attach, disk, tmp_path):
    device = attach("data")
    (tmp_path / "links" / "lun0").symlink_to(device)
    (tmp_path / "links" / "data-part1").symlink_to(device + "p1")
    boot.mount_disks([disk("etcd-main", "data*", "lun0", "nothing-there")])
    assert mounts(device) == [disk()["mount"]]


TREE = [
    {
        "name": "sda",
        "path": "/dev/sda",
        "size": 10,
        "mountpoints": [None],
        "children": [{"name": "sda1", "path": "/dev/sda1", "size": 9, "mountpoints": ["/", None]}],
    },
    {
        "name": "sdb",
        "path": "/dev/sdb",
        "size": 20,
        "mountpoints": [None],
        "children": [{"name": "vg-lv", "path": "/dev/dm-0", "size": 9, "mountpoints": [None]}],
    },
    {"name": "sdc", "path": "/dev/sdc", "size": 30, "mountpoints": [None]},
]


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Return the commands that were run on a machine with the disks of TREE, each with a link, none with a signature."""
    ran: list[tuple[str, ...]] = []

    def run(*command: str) -> str:
        ran.append(command)
        return json.dumps({"blockdevices": TREE}) if command[0] == "lsblk" else ""

    monkeypatch.setattr(boot, "run", run)
    monkeypatch.setattr(boot.glob, "glob", lambda pattern: ["/dev/sda", "/dev/sda1", "/dev/sdb", "/dev/sdc"])
    return ran


def test_the_root_disk_and_disks_with_holders_are_never_candidates(commands, disk):
    boot.mount_disks([disk()])
    formatted = [command[-1] for command in commands if command[0] == "mkfs.ext4"]
    assert formatted == ["/dev/sdc"]
    assert [command[-1] for command in commands if command[0] == "wipefs"] == ["/dev/sdb", "/dev/sdc"]


def test_every_matching_disk_is_reported_with_the_reason_against_it(commands, disk):
    with pytest.raises(boot.Failure) as failure:
        boot.mount_disks([disk(size=31)])
    message = str(failure.value)
    for reason in ("/dev/sda mounted at /;", "/dev/sdb part of /dev/dm-0;", "/dev/sdc has 30 of 31 bytes;"):
        assert reason in message
    assert "other disks: none" in message
    assert [command[0] for command in commands if command[0] in ("mkfs.ext4", "mount")] == []


def test_a_failed_command_is_reported_and_nothing_is_mounted(commands, disk, monkeypatch):
    failing = boot.run

    def run(*command: str) -> str:
        if command[0] == "mkfs.ext4":
            raise boot.Failure("mkfs.ext4 failed with 1: /dev/sdc is apparently in use by the system")
        return failing(*command)

    monkeypatch.setattr(boot, "run", run)
    with pytest.raises(boot.Failure, match="apparently in use"):
        boot.mount_disks([disk()])
    assert "mount" not in [command[0] for command in commands]
