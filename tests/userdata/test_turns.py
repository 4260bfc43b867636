"""Turns with a lock in a real etcd that is unreachable, stopped or back again. systemd is simulated."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.control_plane.real_api import storing
from tests.ports import free_port
from tests.programs import program
from tests.userdata import placed

UNIT, LOCK = "kube-apiserver.service", "/menagerie/restart/kube-apiserver.service"
GONE = "etcd main is out of reach: "
SILENT = "context deadline exceeded while waiting for connections to become ready"
SLACK_S = 2.0


@pytest.fixture
def refresh(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the program as hosts have it, with shorter times. In its turn it runs `turn`."""
    module = placed.refresh()
    for name, seconds in (("ANSWER_S", 1), ("LOOK_S", 1.0), ("GOES_S", 1.0)):
        monkeypatch.setattr(module, name, seconds)
    return module


@dataclass
class Host:
    """A host whose etcd is one process. began: start time of its unit."""

    refresh: Any
    folder: Path
    url: str
    pid: int
    restarts: list[str] = field(default_factory=list)
    began: float = 1.0

    @property
    def etcdctl(self) -> list[str]:
        return [str(program("etcdctl")), f"--endpoints={self.url}"]

    @property
    def turn_settings(self) -> dict[str, Any]:
        return {"report": self.etcdctl, "etcd": "main"}

    def stop(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def turn(self, text: str = "touch {done}") -> list[str]:
        """Return a command to run under the lock: it says that its turn has come and runs `text`."""
        script = self.folder / "turn"
        script.write_text(f"#!/bin/sh\necho the turn has come\n{text.format(done=self.done, pid=self.pid)}\n")
        script.chmod(0o755)
        return [*self.etcdctl, "lock", "--ttl=60", LOCK, str(script)]

    @property
    def done(self) -> Path:
        return self.folder / "done"

    def consumer(self, **more: Any) -> dict[str, Any]:
        file = self.folder / "ca.crt"
        file.touch()
        settings = {
            "unit": UNIT,
            "paths": [str(file)],
            "loaded": [],
            "lock": [],
            "before": [],
            "ready": [],
            "settle_s": 0,
        }
        return settings | more

    def round(self, *consumers: dict[str, Any]) -> None:
        renew: list[str] = []
        self.refresh.refresh_all(
            {
                "secrets": [],
                "refresh": {**self.turn_settings, "consumers": consumers, "renew": renew, "reader": "api-servers"},
            }
        )

    def reported(self) -> list[dict[str, Any]]:
        words = [*self.etcdctl, "get", "--prefix", "/menagerie/hosts/", "--print-value-only"]
        return [json.loads(line) for line in subprocess.check_output(words, text=True).splitlines() if line]


@pytest.fixture
def host(refresh: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    real = refresh.run

    def run(*command: str) -> str:
        if command[0] == "systemctl":
            simulated.restarts.append(command[-1])
            simulated.began = time.time() + 60
            return ""
        return str(real(*command))

    with storing(program, tmp_path) as url:
        (pid,) = subprocess.check_output(["pgrep", "-f", f"^{program('etcd')} .*{url}"], text=True).split()
        simulated = Host(refresh, tmp_path, url, int(pid))
        monkeypatch.setattr(refresh, "started_at", lambda unit: simulated.began)
        monkeypatch.setattr(refresh, "run", run)
        monkeypatch.setattr(refresh, "place_secrets", lambda _: {"etcd-main-ca.crt": "text"})
        try:
            yield simulated
        finally:
            simulated.go_on()


def within(seconds: float, work: Callable[[], str]) -> str:
    began = time.monotonic()
    result = work()
    assert time.monotonic() - began < seconds
    return result


@contextlib.contextmanager
def another_has_its_turn(host: Host, seconds: float) -> Iterator[None]:
    script = host.folder / "others"
    script.write_text(f"#!/bin/sh\necho mine\nexec sleep {seconds}\n")
    script.chmod(0o755)
    # In a separate session: etcdctl does not stop its command when it ends.
    words = [*host.etcdctl, "lock", "--ttl=60", LOCK, str(script)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True) as other:
        assert other.stdout and other.stdout.readline() == b"mine\n"
        yield
        with contextlib.suppress(ProcessLookupError):
            os.killpg(other.pid, signal.SIGKILL)


def test_an_etcd_that_answers_grants_a_turn_and_a_failed_commands_message_is_returned(host: Host) -> None:
    assert host.refresh.in_turn(host.turn(), host.turn_settings) == ""
    assert host.done.exists()
    failed = host.refresh.in_turn(host.turn("echo api-2 is not well >&2; exit 3"), host.turn_settings)
    assert failed.splitlines()[0] == "api-2 is not well"


def test_a_host_does_not_wait_for_an_etcd_whose_port_is_closed(host: Host) -> None:
    port = free_port()
    host.url = f"http://127.0.0.1:{port}"
    why = within(1 + SLACK_S, lambda: str(host.refresh.in_turn(host.turn(), host.turn_settings)))
    refused = f"transport: Error while dialing: dial tcp 127.0.0.1:{port}: connect: connection refused"
    assert why == GONE + refused
    assert not host.done.exists()


def test_a_host_does_not_wait_for_an_etcd_that_stopped_answering(host: Host) -> None:
    host.stop()
    why = within(1 + SLACK_S, lambda: str(host.refresh.in_turn(host.turn(), host.turn_settings)))
    assert why == GONE + SILENT
    assert not host.done.exists()


def test_while_the_etcd_answers_a_host_waits_for_the_turns_of_others(host: Host) -> None:
    began = time.monotonic()
    with another_has_its_turn(host, 4):
        assert host.refresh.in_turn(host.turn(), host.turn_settings) == ""
    assert time.monotonic() - began > 3
    assert host.done.exists()


def test_the_wait_ends_if_the_etcd_stops_during_the_turns_of_others(host: Host) -> None:
    with another_has_its_turn(host, 60):
        threading.Timer(1.5, host.stop).start()
        # Two checks, an answer that does not come, and an etcdctl that can't release its lock.
        why = within(1.5 + 1 + 1 + 1 + SLACK_S, lambda: str(host.refresh.in_turn(host.turn(), host.turn_settings)))
    assert why == GONE + SILENT
    assert not host.done.exists()


def test_a_host_gives_up_on_a_turn_that_does_not_come(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host.refresh, "TURN_S", 2.0)
    with another_has_its_turn(host, 60):
        assert host.refresh.in_turn(host.turn(), host.turn_settings) == "its turn did not come within 2 s"
        queued = subprocess.check_output([*host.etcdctl, "get", "--prefix", LOCK, "--keys-only"], text=True).split()
    assert len(queued) == 1, "its place in the queue was not given back"


def test_a_host_keeps_its_turn_while_the_etcd_is_away(host: Host) -> None:
    """An etcd with one member restarts itself in its turn."""
    away = "kill -STOP {pid}; sleep 4; kill -CONT {pid}; touch {done}"
    assert host.refresh.in_turn(host.turn(away), host.turn_settings) == ""
    assert host.done.exists()


def test_a_host_without_its_etcd_reports_it_twice_and_restarts_nothing(host: Host) -> None:
    host.stop()
    with pytest.raises(host.refresh.Failure) as raised:
        host.round(host.consumer(lock=host.turn()[:-1]))
    assert str(raised.value) == f"{UNIT}: {GONE}{SILENT}\n  no report: {GONE}{SILENT}"
    assert host.restarts == []


def test_a_returning_etcd_gets_the_report_of_the_failure_and_the_next_round_repairs_it(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = host.turn()
    monkeypatch.setattr(host.refresh, "SELF", turn[-1])
    locked = host.consumer(lock=turn[:-1])
    back = host.consumer(unit="kube-scheduler.service", before=["kill", "-CONT", str(host.pid)])
    host.stop()
    with pytest.raises(host.refresh.Failure, match="is out of reach"):
        host.round(locked, back)
    assert host.restarts == ["kube-scheduler.service"]
    (report,) = host.reported()
    assert report["failures"] == [f"{UNIT}: {GONE}{SILENT}"]
    host.began = 1.0
    assert not host.done.exists()
    host.round(locked)
    assert host.done.exists()
    (report,) = host.reported()
    assert report["failures"] == []
