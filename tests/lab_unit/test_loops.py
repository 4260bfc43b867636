"""Empty disks of hosts: real loop devices, found again by the paths of their files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.lab import loops
from sandbox.lab.errors import LabError

SIZE = 64 << 20


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists():
        pytest.skip("loop devices need root and a kernel that supports them")
    place = tmp_path / "host" / "disks"
    yield place
    loops.remove(place)


@pytest.fixture
def disks(folder: Path) -> dict[str, Path]:
    try:
        return loops.plug_in(folder, {"lab-EMPTY_a-1": SIZE, "lab-EMPTY_a-2": SIZE})
    except LabError as error:
        pytest.skip(f"no loop device can be created here: {error}")


def test_disks_are_empty_have_their_size_and_are_not_rotational(disks: dict[str, Path], folder: Path) -> None:
    assert list(disks) == ["lab-EMPTY_a-1", "lab-EMPTY_a-2"]
    for name, device in disks.items():
        block = Path("/sys/block", device.name)
        assert int((block / "size").read_text()) * 512 == SIZE
        assert (block / "queue" / "rotational").read_text() == "0\n"
        assert (folder / name).stat().st_blocks == 0


def test_they_are_found_and_removed_by_a_parent_folder_even_without_their_files(
    disks: dict[str, Path], folder: Path
) -> None:
    (folder / "lab-EMPTY_a-1").unlink()
    assert set(loops.below(folder.parent)) == set(disks.values())
    assert loops.below(folder.parent / "another") == {}
    loops.remove(folder.parent)
    assert loops.below(folder.parent) == {}
    assert not folder.parent.exists()
