"""Restarts of an etcd by menagerie-apply under a lock in a real etcd. systemctl is a script that records its calls."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.control_plane.real_api import storing
from tests.ports import free_port
from tests.programs import program
from tests.userdata import placed

UNIT, LOCK = "etcd-main.service", "/menagerie/restart/etcd-main.service"


@dataclass
class Host:
    """A host with the program, and an etcd at a URL."""

    module: Any
    folder: Path
    url: str

    @property
    def etcdctl(self) -> list[str]:
        return [str(program("etcdctl")), f"--endpoints={self.url}"]

    def restart(self) -> None:
        self.module.restart(UNIT, [*self.etcdctl, "lock", "--ttl=60", LOCK], {"report": self.etcdctl, "etcd": "main"})

    def commands(self) -> str:
        log = self.folder / "asked"
        return log.read_text() if log.exists() else ""


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    systemctl = tmp_path / "bin/systemctl"
    systemctl.parent.mkdir()
    systemctl.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\ntest ! -e {tmp_path}/fails || {{ cat {tmp_path}/fails >&2; exit 1; }}\n'
    )
    systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{systemctl.parent}:{os.environ['PATH']}")
    with storing(program, tmp_path) as url:
        yield Host(placed.apply(), tmp_path, url)


def test_a_unit_is_restarted_under_the_lock_which_is_then_released(host: Host) -> None:
    host.restart()
    assert host.commands() == f"restart {UNIT}\n"
    assert subprocess.check_output([*host.etcdctl, "get", "--prefix", LOCK, "--keys-only"], text=True) == ""


def test_the_message_of_a_failed_systemctl_is_reported(host: Host) -> None:
    (host.folder / "fails").write_text("Job for etcd-main.service failed")
    with pytest.raises(host.module.Failure, match="the restart of etcd-main.service failed: Job for etcd-main.service"):
        host.restart()


def test_an_unreachable_etcd_is_reported_within_seconds_and_nothing_is_restarted(host: Host) -> None:
    host.url = f"http://127.0.0.1:{free_port()}"
    host.module.ANSWER_S = 1
    began = time.monotonic()
    with pytest.raises(host.module.Failure, match="etcd main is out of reach: .*connection refused"):
        host.restart()
    assert time.monotonic() - began < 3
    assert host.commands() == ""


def test_an_etcd_at_its_quota_grants_no_lock_and_the_unit_is_restarted_anyway(host: Host) -> None:
    armed = json.dumps({"action": "ACTIVATE", "memberID": "0", "alarm": "NOSPACE"})
    subprocess.run(["curl", "-sf", f"{host.url}/v3/maintenance/alarm", "-d", armed], check=True, capture_output=True)
    host.restart()
    assert host.commands() == f"restart {UNIT}\n"
