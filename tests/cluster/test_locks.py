"""Locks between processes: flock(2) treats two descriptors of one file as two processes do."""

from __future__ import annotations

import stat
import subprocess
import threading
from pathlib import Path

import pytest

from cluster.locks import locked


def refuse() -> None:
    raise BlockingIOError("held")


def test_a_held_lock_is_refused_and_a_released_one_is_taken(tmp_path: Path) -> None:
    lock = tmp_path / "new" / "lock"
    with locked(lock), pytest.raises(BlockingIOError, match="held"), locked(lock, busy=refuse):
        pass
    with locked(lock, busy=refuse):
        pass


def test_a_folder_can_be_locked_and_gets_no_file(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(BlockingIOError), locked(tmp_path, busy=refuse):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_second_holder_waits_for_the_first(tmp_path: Path) -> None:
    lock, waits, order = tmp_path / "lock", threading.Event(), list[str]()

    def second() -> None:
        with locked(lock, busy=waits.set):
            order.append("second")

    thread = threading.Thread(target=second)
    with locked(lock):
        thread.start()
        assert waits.wait(60)
        order.append("first")
    thread.join(60)
    assert order == ["first", "second"]


def test_a_lock_is_released_when_its_block_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(tmp_path / "lock"):
        raise ZeroDivisionError
    with locked(tmp_path / "lock", busy=refuse):
        pass


def test_a_child_that_inherits_the_descriptor_holds_the_lock(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with locked(lock) as descriptor:
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[descriptor])
    with pytest.raises(BlockingIOError), locked(lock, busy=refuse):
        pass
    child.communicate()
    with locked(lock, busy=refuse):
        pass


def test_a_new_file_has_the_mode_of_its_creator_and_keeps_its_content(tmp_path: Path) -> None:
    with locked(tmp_path / "lock", mode=0o600):
        assert stat.S_IMODE((tmp_path / "lock").stat().st_mode) == 0o600
    (tmp_path / "lock").write_text("kept")
    with locked(tmp_path / "lock"):
        assert (tmp_path / "lock").read_text() == "kept"
