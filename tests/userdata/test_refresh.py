"""What menagerie-refresh does and when, on a simulated host. tests/operations/keys runs all of it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from components.userdata import refreshing
from tests.userdata import placed

UNIT = "etcd-main.service"
ETCD = {"report": ["etcdctl"], "etcd": "main"}


@pytest.fixture
def refresh():
    """Return the program as hosts have it."""
    return placed.refresh()


@pytest.fixture
def host(refresh, tmp_path, monkeypatch):
    """Return a host with one unit that started after its file was written. why: command -> the reason that it fails."""
    file = tmp_path / "ca.crt"
    file.write_text("old")
    fake = SimpleNamespace(file=file, started=file.stat().st_ctime + 1, restarts=[], why={}, slept=0.0)

    def run(*command):
        assert command == ("systemctl", "restart", UNIT)
        fake.restarts.append(time.time())
        fake.started = time.time() + 1
        return ""

    def sleep(seconds):
        fake.slept += seconds

    monkeypatch.setattr(refresh, "started_at", lambda unit: fake.started)
    monkeypatch.setattr(refresh, "run", run)
    monkeypatch.setattr(
        refresh, "succeeds", lambda command, timeout_s=60: fake.why.get(command[0], "") if command else ""
    )
    fake.sleep = sleep
    return fake


def consumer(host, **more):
    settings = {
        "unit": UNIT,
        "paths": [str(host.file)],
        "loaded": [],
        "lock": [],
        "before": [],
        "ready": [],
        "settle_s": 0,
    }
    return settings | more


def change(host):
    host.started = host.file.stat().st_ctime - 1


def test_a_program_that_started_after_its_files_is_left_alone(refresh, host):
    refresh.catch_up(consumer(host), ETCD)
    assert host.restarts == []


def test_a_program_that_started_before_its_files_is_restarted_even_if_nothing_was_written(refresh, host):
    change(host)
    refresh.catch_up(consumer(host), ETCD)
    assert len(host.restarts) == 1
    refresh.catch_up(consumer(host), ETCD)
    assert len(host.restarts) == 1


def test_it_is_restarted_only_if_the_others_are_healthy(refresh, host):
    change(host)
    host.why = {"others": "etcd-main-2 is unhealthy"}
    with pytest.raises(refresh.Failure, match=r"is not restarted.*etcd-main-2 is unhealthy"):
        refresh.restart(consumer(host, before=["others"]))
    assert host.restarts == []


def test_its_turn_lasts_until_it_is_ready_and_has_settled(refresh, host, monkeypatch):
    change(host)
    answers = ["no", "no", ""]
    monkeypatch.setattr(
        refresh, "succeeds", lambda command, timeout_s=60: answers.pop(0) if command == ["ready"] else ""
    )
    refresh.restart(consumer(host, ready=["ready"], settle_s=30), host.sleep)
    assert (answers, host.slept) == ([], 2 * refresh.PAUSE_S + 30)


def test_with_a_lock_the_lock_runs_the_restart(refresh, host, monkeypatch):
    change(host)
    ran = []
    monkeypatch.setattr(refresh, "in_turn", lambda command, etcd: ran.append((command, etcd)) or "")
    refresh.catch_up(consumer(host, lock=["etcdctl", "lock", "name"]), ETCD)
    assert (ran, host.restarts) == ([(["etcdctl", "lock", "name", refresh.SELF, "restart", UNIT], ETCD)], [])


def test_a_stopped_unit_stays_stopped_and_is_reported(refresh, host):
    host.started = 0.0
    refresh.catch_up(consumer(host), ETCD)
    refresh.restart(consumer(host))
    assert host.restarts == []
    assert refresh.lags(consumer(host)) == "is not running"


def test_a_unit_that_reloads_its_file_is_never_restarted_and_lags_until_then(refresh, host):
    change(host)
    host.why = {"loaded": "works with other keys"}
    refresh.catch_up(consumer(host, loaded=["loaded"]), ETCD)
    assert host.restarts == []
    assert refresh.lags(consumer(host, loaded=["loaded"])) == "works with other keys"


def test_a_missing_file_is_named_and_no_restart_tried(refresh, host):
    host.file.unlink()
    with pytest.raises(refresh.Failure, match=r"there is no .*ca\.crt"):
        refresh.catch_up(consumer(host), ETCD)


def test_the_program_is_one_file_that_needs_only_the_standard_library(tmp_path):
    path = tmp_path / "refresh.py"
    path.write_text(next(file.text for file in refreshing.files() if file.path.endswith("refresh")))
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F", "--target-version", "py37", path]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    assert Path(path).read_text().startswith("#!/usr/bin/python3\n")


def test_a_host_without_a_reachable_etcd_reports_nothing_and_is_refreshed_anyway(refresh, host, monkeypatch):
    change(host)
    monkeypatch.setattr(refresh, "place_secrets", lambda secrets: {"kubernetes-ca.crt": "text"})
    refresh.refresh_all(
        {"secrets": [], "refresh": {"consumers": [consumer(host)], "report": [], "renew": [], "reader": ""}}
    )
    assert len(host.restarts) == 1
