"""Which run holds the lock, and which locks of the engine belong to dead runs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from stacks import run_lock
from stacks.run_lock import BusyError, stale_locks, turn

# 2^22 is Linux's largest process ID, and 64-bit machines never reach it.
NOBODY = 2**22 + 1


def lock(folder: Path, **holder: object) -> None:
    (folder / "organization").mkdir(exist_ok=True)
    defaults = {"pid": NOBODY, "username": "mia", "hostname": socket.gethostname()}
    (folder / "organization" / f"{len(list(folder.rglob('*')))}.json").write_text(json.dumps(defaults | holder))


def test_a_second_run_learns_who_holds_the_lock(tmp_path: Path) -> None:
    with (
        turn(tmp_path / "turn"),
        pytest.raises(BusyError, match=f"process {os.getpid()}, since "),
        turn(tmp_path / "turn"),
    ):
        pass


def test_a_finished_run_leaves_nothing_to_repair_even_if_it_failed(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), turn(tmp_path / "turn") as cut_short:
        assert not cut_short
        raise RuntimeError
    with turn(tmp_path / "turn") as cut_short:
        assert not cut_short


def test_an_interrupted_run_is_detected(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), turn(tmp_path / "turn"):
        raise KeyboardInterrupt
    with turn(tmp_path / "turn") as cut_short:
        assert cut_short
    with turn(tmp_path / "turn") as cut_short:
        assert not cut_short


def test_a_killed_run_is_detected_and_holds_no_lock(tmp_path: Path) -> None:
    program = "import sys, time, pathlib; from stacks.run_lock import turn\nwith turn(pathlib.Path(sys.argv[1])):\n"
    program += " print('in', flush=True); time.sleep(60)"
    with subprocess.Popen(
        [sys.executable, "-c", program, tmp_path / "turn"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout and process.stdout.readline() == "in\n"
        process.send_signal(signal.SIGKILL)
    with turn(tmp_path / "turn") as cut_short:
        assert cut_short


def test_a_lock_of_a_dead_process_is_stale(tmp_path: Path) -> None:
    assert not stale_locks(tmp_path, any_machine=False)
    lock(tmp_path)
    assert stale_locks(tmp_path, any_machine=False)


def test_a_reused_process_id_counts_as_dead(tmp_path: Path) -> None:
    lock(tmp_path, pid=os.getpid())
    assert stale_locks(tmp_path, any_machine=False)


def test_a_lock_is_stale_when_its_engine_has_ended_even_if_it_was_not_reaped(tmp_path: Path) -> None:
    engine = tmp_path / "pulumi"
    shutil.copy("/bin/sleep", engine)
    with subprocess.Popen([engine, "60"]) as running:
        (tmp_path / "locks").mkdir()
        lock(tmp_path / "locks", pid=running.pid)
        assert not stale_locks(tmp_path / "locks", any_machine=True)
        running.kill()
        os.waitid(os.P_PID, running.pid, os.WEXITED | os.WNOWAIT)
        assert stale_locks(tmp_path / "locks", any_machine=True)


def test_a_lock_of_a_running_engine_is_not_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_lock, "_is_engine", lambda pid: pid == 7)
    lock(tmp_path)
    lock(tmp_path, pid=7)
    assert not stale_locks(tmp_path, any_machine=True)


def test_a_lock_of_another_machine_is_respected_if_the_folder_may_be_shared(tmp_path: Path) -> None:
    lock(tmp_path, hostname="ops-2")
    assert not stale_locks(tmp_path, any_machine=False)
    assert stale_locks(tmp_path, any_machine=True)
