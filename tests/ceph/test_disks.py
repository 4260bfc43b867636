"""menagerie-disks on real loop devices: which disks are empty, and why it refuses all others."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from menagerie_disks import __main__ as program

from tests.ceph.loops import MIB, SIZE, Loops, made

FSID = "3f5c4f0a-2d0e-4f55-9d5e-0c6f7f7d3a11"
LVM = b"LABELONE" + struct.pack("<QII8s", 1, 0, 32, b"LVM2 001")
NOWHERE: dict[str, list[str]] = {"public": [], "cluster": []}


@pytest.fixture
def loops(tmp_path: Path) -> Iterator[Loops]:
    with made(tmp_path) as ready:
        yield ready


def edge(loops: Loops, **folders: str) -> Any:
    return program.Edge(by_id=str(loops.by_id), **folders)


def report(loops: Loops, name: str, **folders: str) -> dict[str, Any]:
    """Return the report on one device."""
    here = edge(loops, **folders)
    every = program.disks(here)
    (disk,) = (disk for disk in every if disk.path == loops.paths[name])
    return dict(program.judged(here, disk, every, {"nvme": loops.rule()}))


def gpt() -> bytes:
    """Return a protective MBR, a header and one entry (UEFI 2.10, chapter 5), as a partitioning tool writes them."""
    mbr = (
        bytes(446)
        + struct.pack("<B3sB3sII", 0, b"\0\2\0", 0xEE, b"\xff" * 3, 1, SIZE // 512 - 1)
        + bytes(48)
        + b"\x55\xaa"
    )
    entry = struct.pack("<16s16sQQQ72s", b"\1" * 16, b"\2" * 16, 2048, 4095, 0, "data".encode("utf-16-le"))
    entries = entry + bytes(128 * 127)
    last = SIZE // 512 - 1

    def header(crc: int) -> bytes:
        fields = (
            b"EFI PART",
            0x10000,
            92,
            crc,
            0,
            1,
            last,
            34,
            last - 33,
            b"\3" * 16,
            2,
            128,
            128,
            zlib.crc32(entries),
        )
        return struct.pack("<8sIIIIQQQQ16sQIII", *fields)

    return mbr + header(zlib.crc32(header(0))) + bytes(512 - 92) + entries


def xfs() -> bytes:
    """Return the superblock fields that blkid reads (xfs_sb in the kernel), for a file system of this size.

    Of version 4, which has no checksum.
    """
    fields = struct.pack(">4sIQQQ16sQQQQIIIIIHHHH", b"XFSB", 4096, SIZE // 4096, 0, 0, b"\4" * 16, 4100, 64, 65, 66,
                         1, SIZE // 4096 // 4, 4, 0, 855, 0xB4A4, 512, 512, 8)  # fmt: skip
    return (
        fields
        + bytes(12)
        + struct.pack(">BBBBBBBB", 12, 9, 9, 3, 12, 0, 0, 25)
        + struct.pack(">QQQQ", 64, 1, SIZE // 4096 - 999, 0)
    )


def osd(fsid: str = FSID) -> bytes:
    key, value = b"ceph_fsid", fsid.encode()
    pair = struct.pack("<I", len(key)) + key + struct.pack("<I", len(value)) + value
    return b"bluestore block device\n6c6e9a3e-8b1a-4f3a-9f3f-0d6c1f7f1a2b\n" + bytes(80) + pair


def test_an_empty_disk_is_named_by_id(loops: Loops) -> None:
    disk = report(loops, "probe")
    assert (disk["state"], disk["why"]) == ("empty", [])
    assert disk["device"] == "/dev/disk/by-id/nvme-MODEL_probe"
    assert disk["size"] == SIZE


@pytest.mark.parametrize(
    ("content", "at", "reason"),
    [
        (xfs(), 0, "has a xfs file system"),
        (bytes(512) + LVM, 0, "is a physical volume of LVM"),
        (gpt(), 0, "has a partition table (GPT)"),
        (b"LUKS\xba\xbe" + struct.pack(">H", 1) + bytes(160) + b"3f5c4f0a-2d0e-4f55-9d5e-0c6f7f7d3a11\0\0\0\0", 0, "is encrypted (LUKS)"),
        (b"\1\2\3 a database of its own", 4096, "holds data of no known kind in its first or last MiB"),
        (b"\1\2\3 at the end", -512, "holds data of no known kind in its first or last MiB"),
    ],
    ids=["xfs", "LVM", "GPT", "LUKS", "raw data", "raw data at the end"],
)  # fmt: skip
def test_a_disk_with_content_is_refused(loops: Loops, content: bytes, at: int, reason: str) -> None:
    loops.add("full", content, at)
    disk = report(loops, "full")
    assert (disk["state"], disk["why"], disk["device"]) == ("refused", [reason], None)


@pytest.mark.parametrize(
    ("command", "reason"),
    [(["mkfs.ext4", "-q"], "has an ext4 file system"), (["mkswap"], "has swap space")],
    ids=["ext4", "swap"],
)
def test_a_disk_formatted_by_this_machines_tools_is_refused(loops: Loops, command: list[str], reason: str) -> None:
    path = loops.add("made")
    subprocess.run([*command, path], check=True, capture_output=True)
    disk = report(loops, "made")
    assert (disk["state"], disk["why"]) == ("refused", [reason])


def test_a_wiped_disk_is_empty_again(loops: Loops) -> None:
    path = loops.add("used", xfs())
    assert report(loops, "used")["state"] == "refused"
    with open(path, "r+b") as handle:
        handle.write(bytes(MIB))
    assert report(loops, "used")["state"] == "empty"


def test_a_mounted_disk_is_refused_with_its_mount_point(loops: Loops, tmp_path: Path) -> None:
    path, place = loops.add("mounted"), tmp_path / "mounted"
    subprocess.run(["mkfs.ext4", "-q", path], check=True)
    place.mkdir()
    if subprocess.run(["mount", path, place], check=False).returncode:
        pytest.skip("nothing may be mounted here")
    try:
        disk = report(loops, "mounted")
    finally:
        subprocess.run(["umount", place], check=True)
    assert disk["why"] == [f"is mounted at {place}", "has an ext4 file system"]


def test_a_disk_in_use_by_another_mount_namespace_is_refused(loops: Loops, tmp_path: Path) -> None:
    """Nothing in this process's /proc shows it; the only sign is that the kernel refuses exclusive access to the disk."""
    path, place = loops.add("elsewhere"), tmp_path / "elsewhere"
    subprocess.run(["mkfs.ext4", "-q", path], check=True)
    place.mkdir()
    script = f"mount {path} {place} && echo there && read -r _"
    with subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout and other.stdin
        if other.stdout.readline().strip() != "there":
            pytest.skip("no other mount namespace can be made here")
        disk = report(loops, "elsewhere")
        other.stdin.close()
    assert disk["why"][0] == "has an ext4 file system"
    assert disk["why"][1].startswith("is in use by something not visible here")


def fake_sys(folder: Path, name: str, **files: str) -> str:
    """Copy the kernel's folder of a device and add to it, for example a holder that this kernel has no module for."""
    device = folder / "sys" / "block" / name
    device.mkdir(parents=True)
    for key in ("dev", "size", "ro", "removable"):
        (device / key).write_text(Path(f"/sys/block/{name}/{key}").read_text())
    (device / "queue").mkdir()
    (device / "queue" / "rotational").write_text(Path(f"/sys/block/{name}/queue/rotational").read_text())
    for path, text in files.items():
        place = folder / "sys" / "block" / path.replace("NAME", name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return str(folder / "sys")


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"NAME/holders/dm-0": "", "dm-0/dm/uuid": "LVM-abcdef\n"}, "is held by dm-0 (LVM)"),
        ({"NAME/holders/dm-0": "", "dm-0/dm/uuid": "mpath-3600\n"}, "is held by dm-0 (multipath)"),
        ({"NAME/holders/md127": ""}, "is held by md127"),
        ({"NAME/NAMEp1/partition": "1\n", "NAME/NAMEp1/dev": "259:9\n"}, "has partitions: NAMEp1"),
        ({"NAME/ro": "1\n"}, "is read-only"),
        ({"NAME/removable": "1\n"}, "is removable"),
        ({"NAME/wwid": "eui.1\n", "sdz/wwid": "eui.1\n", "sdz/size": "8\n"}, "is the same disk as sdz by another path"),
    ],
    ids=["LVM", "multipath", "md", "partition", "read-only", "removable", "two paths"],
)
def test_holders_of_a_disk_are_named(loops: Loops, tmp_path: Path, files: dict[str, str], reason: str) -> None:
    name = os.path.basename(loops.paths["probe"])
    sys_ = fake_sys(tmp_path, name, **{k.replace("NAMEp", f"{name}p"): v for k, v in files.items()})
    disk = report(loops, "probe", sys_=sys_)
    assert (disk["state"], disk["why"]) == ("refused", [reason.replace("NAME", name)])


def test_a_disk_with_swap_on_it_is_refused(loops: Loops, tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    head = "Filename Type Size Used Priority\n"
    (tmp_path / "proc" / "swaps").write_text(f"{head}{loops.paths['probe']} partition 65532 0 -2\n")
    disk = report(loops, "probe", proc=str(tmp_path / "proc"))
    assert disk["why"] == [f"swap is on it: {loops.paths['probe']}"]


def test_a_path_of_a_multipath_device_is_refused(loops: Loops, tmp_path: Path) -> None:
    number = Path(f"/sys/block/{os.path.basename(loops.paths['probe'])}/dev").read_text().strip()
    (tmp_path / "udev" / "data").mkdir(parents=True)
    (tmp_path / "udev" / "data" / f"b{number}").write_text("S:disk/by-id/x\nE:DM_MULTIPATH_DEVICE_PATH=1\n")
    assert report(loops, "probe", run=str(tmp_path))["why"] == ["is a path of a multipath device"]


def test_an_osd_is_reported_with_its_fsid(loops: Loops) -> None:
    """A second run must not demand that it be wiped."""
    loops.add("osd", osd())
    disk = report(loops, "osd")
    assert (disk["state"], disk["why"], disk["fsid"]) == ("osd", [], FSID)
    assert disk["device"] == "/dev/disk/by-id/nvme-MODEL_osd"


def test_a_disk_that_is_too_small_or_has_another_name_is_not_selected(loops: Loops) -> None:
    loops.add("small", size=32 * MIB)
    assert report(loops, "small")["disks"] is None
    other = loops.by_id / "ata-OTHER_1"
    loops.add("other")
    (loops.by_id / "nvme-MODEL_other").rename(other)
    disk = report(loops, "other")
    assert (disk["disks"], disk["state"], disk["device"]) == (None, "other", None)


def settings(tmp_path: Path, loops: Loops, networks: dict[str, list[str]] | None = None, **rule: Any) -> Path:
    path = tmp_path / "storage.json"
    path.write_text(json.dumps({"disks": {"nvme": loops.rule(**rule)}, "networks": networks or NOWHERE}))
    return path


def run_with_udev(tmp_path: Path) -> str:
    (tmp_path / "run" / "udev").mkdir(parents=True)
    (tmp_path / "run" / "udev" / "control").touch()
    return str(tmp_path / "run")


def test_the_number_of_disks_in_the_spec_is_accepted(loops: Loops, tmp_path: Path) -> None:
    """Another disk of the same model with partitions, such as the system disk, does not matter."""
    loops.add("second")
    loops.add("system", gpt())
    here = edge(loops, run=run_with_udev(tmp_path))
    assert program.main(["--json", "--settings", str(settings(tmp_path, loops, count=2))], here) == 0


def test_a_disk_that_is_missing_is_explained(loops: Loops, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = loops.add("full")
    subprocess.run(["mkfs.ext4", "-q", path], check=True)
    networks = {"public": [], "cluster": ["198.51.100.0/24"]}
    here = edge(loops, run=run_with_udev(tmp_path))
    assert program.main(["--settings", str(settings(tmp_path, loops, networks, count=2))], here) == 1
    host, output = os.uname().nodename, capsys.readouterr()
    assert output.err.splitlines() == [
        f"{host}: 1 empty disks match ceph.disks.nvme (nvme-MODEL_*), not 2",
        f"{host}:{path} has an ext4 file system. Rook takes only empty devices. Wipe it, or remove it from ceph.disks",
        f"{host} has no address in networks.cluster (198.51.100.0/24); its daemons would not start",
    ]
    assert (
        f"{path}  0.00 TB  nvme  refused: has an ext4 file system\n    /dev/disk/by-id/nvme-MODEL_full\n" in output.out
    )


def test_a_surplus_disk_is_reported(loops: Loops, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loops.add("second")
    here = edge(loops, run=run_with_udev(tmp_path))
    assert program.main(["--settings", str(settings(tmp_path, loops, count=1))], here) == 1
    assert "2 empty disks match ceph.disks.nvme (nvme-MODEL_*), not 1" in capsys.readouterr().err


def test_missing_settings_give_a_readable_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["--settings", "/nowhere/storage.json"], program.Edge()) == 1
    assert "No such file or directory: '/nowhere/storage.json'" in capsys.readouterr().err


def test_without_a_tool_no_disk_counts_as_empty(loops: Loops, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    disk = report(loops, "probe")
    assert (disk["state"], disk["device"]) == ("refused", None)
    assert disk["why"][0].startswith("can't be read: wipefs can't run")


def test_a_file_system_on_an_old_osd_is_not_an_osd(loops: Loops) -> None:
    path = loops.add("both", osd())
    subprocess.run(["mkfs.ext4", "-q", "-F", path], check=True)
    with open(path, "r+b") as handle:
        handle.write(osd())
    disk = report(loops, "both")
    assert (disk["state"], disk["device"]) == ("refused", None)
    assert disk["why"]


def test_nothing_is_written_to_any_disk(loops: Loops, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Compares all bytes and the kernel's count of writes before and after, and checks that every device was inspected."""
    loops.add("full", xfs())
    loops.add("osd", osd())
    path = settings(tmp_path, loops)

    def state() -> dict[str, str]:
        return {name: hashlib.sha256(Path(device).read_bytes()).hexdigest() for name, device in loops.paths.items()}

    def written() -> dict[str, str]:
        """Return the writes of each device: the fifth number in /sys/block/*/stat."""
        return {
            name: Path(f"/sys/block/{os.path.basename(p)}/stat").read_text().split()[4]
            for name, p in loops.paths.items()
        }

    before = state(), written()
    for option in ([], ["--json"]):
        program.main([*option, "--settings", str(path)], edge(loops))
        output = capsys.readouterr().out
        assert [name for name, device in loops.paths.items() if os.path.basename(device) not in output] == [], output
    assert (state(), written()) == before
