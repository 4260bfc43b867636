"""What menagerie-refresh does when, told by a host that is stood in for; the whole of it runs in tests/operations/keys."""

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
    """The program as hosts have it."""
    return placed.refresh()


@pytest.fixture
def host(refresh, tmp_path, monkeypatch):
    """One unit, started after its file came to be. well: what its commands end with."""
    file = tmp_path / "ca.crt"
    file.write_text("old")
    seen = SimpleNamespace(file=file, started=file.stat().st_ctime + 1, restarts=[], why={}, slept=0.0)

    def run(*command):
        assert command == ("systemctl", "restart", UNIT)
        seen.restarts.append(time.time())
        seen.started = time.time() + 1
        return ""

    def sleep(seconds):
        seen.slept += seconds

    monkeypatch.setattr(refresh, "started_at", lambda unit: seen.started)
    monkeypatch.setattr(refresh, "run", run)
    monkeypatch.setattr(
        refresh, "succeeds", lambda command, timeout_s=60: seen.why.get(command[0], "") if command else ""
    )
    seen.sleep = sleep
    return seen


def consumer(host, **more):
    told = {"unit": UNIT, "paths": [str(host.file)], "loaded": [], "lock": [], "before": [], "ready": [], "settle_s": 0}
    return told | more


def change(host):
    host.started = host.file.stat().st_ctime - 1


def test_a_program_that_started_after_its_files_is_left_alone(refresh, host):
    refresh.catch_up(consumer(host), ETCD)
    assert host.restarts == []


def test_one_that_started_before_is_restarted_also_by_a_run_that_placed_nothing(refresh, host):
    change(host)
    refresh.catch_up(consumer(host), ETCD)
    assert len(host.restarts) == 1
    refresh.catch_up(consumer(host), ETCD)
    assert len(host.restarts) == 1


def test_it_is_restarted_only_if_the_others_are_well(refresh, host):
    change(host)
    host.why = {"others": "etcd-main-2 is unhealthy"}
    with pytest.raises(refresh.Failure, match=r"is not restarted.*etcd-main-2 is unhealthy"):
        refresh.restart(consumer(host, before=["others"]))
    assert host.restarts == []


def test_its_turn_lasts_until_it_serves_and_has_settled(refresh, host, monkeypatch):
    change(host)
    answers = ["no", "no", ""]
    monkeypatch.setattr(
        refresh, "succeeds", lambda command, timeout_s=60: answers.pop(0) if command == ["ready"] else ""
    )
    refresh.restart(consumer(host, ready=["ready"], settle_s=30), host.sleep)
    assert (answers, host.slept) == ([], 2 * refresh.PAUSE_S + 30)


def test_with_a_lock_the_restart_is_what_the_lock_runs(refresh, host, monkeypatch):
    change(host)
    ran = []
    monkeypatch.setattr(refresh, "in_turn", lambda command, etcd: ran.append((command, etcd)) or "")
    refresh.catch_up(consumer(host, lock=["etcdctl", "lock", "name"]), ETCD)
    assert (ran, host.restarts) == ([(["etcdctl", "lock", "name", refresh.SELF, "restart", UNIT], ETCD)], [])


def test_what_somebody_stopped_stays_stopped_and_is_told(refresh, host):
    host.started = 0.0
    refresh.catch_up(consumer(host), ETCD)
    refresh.restart(consumer(host))
    assert host.restarts == []
    assert refresh.lags(consumer(host)) == "is not running"


def test_what_reads_its_file_again_by_itself_is_never_restarted_and_lags_until_it_has(refresh, host):
    change(host)
    host.why = {"loaded": "works with other keys"}
    refresh.catch_up(consumer(host, loaded=["loaded"]), ETCD)
    assert host.restarts == []
    assert refresh.lags(consumer(host, loaded=["loaded"])) == "works with other keys"


def test_a_missing_file_is_named_rather_than_a_restart_tried(refresh, host):
    host.file.unlink()
    with pytest.raises(refresh.Failure, match=r"there is no .*ca\.crt"):
        refresh.catch_up(consumer(host), ETCD)


def test_the_program_is_one_file_of_the_standard_library(tmp_path):
    path = tmp_path / "refresh.py"
    path.write_text(next(file.text for file in refreshing.files() if file.path.endswith("refresh")))
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F", "--target-version", "py37", path]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    assert Path(path).read_text().startswith("#!/usr/bin/python3\n")


def test_a_host_that_reaches_no_etcd_reports_nothing_and_is_refreshed_all_the_same(refresh, host, monkeypatch):
    change(host)
    monkeypatch.setattr(refresh, "place_secrets", lambda secrets: {"kubernetes-ca.crt": "text"})
    refresh.refresh_all(
        {"secrets": [], "refresh": {"consumers": [consumer(host)], "report": [], "renew": [], "reader": ""}}
    )
    assert len(host.restarts) == 1
