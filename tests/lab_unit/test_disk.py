from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from sandbox.lab import disk, state
from sandbox.lab.errors import LabError

FULL = Path("/dev/full")


def test_a_new_version_replaces_the_old_one_atomically(tmp_path: Path) -> None:
    target = tmp_path / "new" / "target"
    for text in ("one", "two"):
        with disk.whole(target) as fresh:
            fresh.write_text(text)
            assert not target.exists() or target.read_text() == "one"
        assert target.read_text() == text
    assert list(target.parent.iterdir()) == [target]


def test_a_failure_leaves_only_the_old_version(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("before")
    with pytest.raises(KeyboardInterrupt), disk.whole(target) as fresh:
        (fresh / "tree").mkdir(parents=True)
        raise KeyboardInterrupt
    assert target.read_text() == "before"
    assert list(tmp_path.iterdir()) == [target]


def test_leftovers_of_a_killed_process_are_not_part_of_the_next_attempt(tmp_path: Path) -> None:
    killed = disk.whole(tmp_path / "target")
    (killed.__enter__() / "half").mkdir(parents=True)
    with disk.whole(tmp_path / "target") as fresh:
        assert not fresh.exists()
        fresh.touch()
    assert list(tmp_path.iterdir()) == [tmp_path / "target"]


def test_removing_a_link_leaves_its_target(tmp_path: Path) -> None:
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    disk.remove(tmp_path / "link")
    assert (tmp_path / "folder" / "inner").is_dir()
    disk.remove(tmp_path / "folder")
    disk.remove(tmp_path / "folder")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not FULL.exists(), reason="the machine has no /dev/full")
def test_a_full_disk_is_reported_with_its_folder_and_the_way_out(tmp_path: Path) -> None:
    raises = pytest.raises(LabError, match=f"no space is left on the disk of {tmp_path}.*remove the old ones")
    with raises, disk.space(tmp_path, "You may remove the old ones."), FULL.open("wb") as file:
        file.write(bytes(2**20))


def test_another_error_is_not_reported_as_a_full_disk(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), disk.space(tmp_path, ""):
        (tmp_path / "missing").read_text()


def test_a_disk_that_fills_while_writing_state_is_reported_with_the_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MENAGERIE_LAB_STATE", str(tmp_path / "state"))

    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(LabError, match=f"disk of {tmp_path / 'state'}.*make lab-down"):
        state.write(state.folder("datacentre.json"), {})
