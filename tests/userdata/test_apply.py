"""What menagerie-apply does and when, on a simulated host. tests/operations runs it with real etcds."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from components.userdata import Payload, applying
from components.userdata.payload import packed, unpacked
from tests.userdata import placed
from tests.userdata.placed import boot

ETCD, TIMER = "etcd-main.service", "etcd-main-backup.timer"


@pytest.fixture
def program():
    """Return the program as hosts have it."""
    return placed.apply()


class Host:
    """A host on which menagerie-boot only runs `place_files`, and `systemctl` only records. cut: a step that fails once."""

    def __init__(self, program, folder, owner):
        self.program, self.folder, self.owner = program, folder, owner
        self.commands, self.why, self.running, self.cut = [], {}, {}, ""
        for name in ("units", "kept", "handed"):
            (folder / name).mkdir()
        program.PAYLOAD, program.UNITS = folder / "kept/payload.sha256", folder / "units"
        program.HANDED = folder / "handed"
        program.ask_store = lambda names: {name: self.expected for name in names}
        program.started_at = lambda unit: self.running.get(unit, 0.0)
        program.run = lambda *command: self._ask(command)
        program.succeeds = lambda command, timeout_s=60: self._ask(command)
        program.in_turn = lambda command, refresh: self._ask(command)
        whole = program.write
        program.write = lambda path, data, mode, owner_: whole(path, data, mode, owner)
        self.expected = ""

    def config(self, text="one", units=(ETCD,), locks=()):
        files = [
            {"path": str(self.folder / "units" / unit), "text": text, "mode": 0o600, "owner": self.owner}
            for unit in units
        ]
        binary = {"path": str(self.folder / "etcd"), "text": "binary", "mode": 0o755, "owner": self.owner}
        consumers = [{"unit": ETCD, "lock": list(locks)}]
        programs = [{"unit": ETCD, "paths": [binary["path"]]}]
        payload = {"files": [*files, binary], "secrets": [], "downloads": [], "start": list(units)}
        return json.dumps({**payload, "refresh": {"consumers": consumers, "programs": programs}})

    def hand(self, text):
        self.expected = Payload(text).sha256
        (self.folder / "handed" / Payload(text).name).write_text(packed(text))
        return self.expected

    def payloads(self):
        return sorted(path.name for path in (self.folder / "kept").glob("payload-*"))

    def _ask(self, command):
        words = " ".join(command)
        self.commands.append(words)
        if self.cut and self.cut in words:
            self.cut = ""
            raise self.program.Failure(f"cut at {words}")
        if words == "systemctl restart menagerie-boot.service":
            name = (self.folder / "kept/payload.sha256").read_text().split()[1]
            config = json.loads((self.folder / "kept" / name).read_text())
            for file in config["files"]:
                boot.write(Path(file["path"]), file["text"].encode(), file["mode"], file["owner"])
            for unit in config["start"]:
                self.running.setdefault(unit, time.time() + 1)
        if words.endswith(f"systemctl restart {ETCD}") and not self.why:
            self.running[ETCD] = time.time() + 1
        return self.why.get(command[0], "")


@pytest.fixture
def host(program, tmp_path, owner):
    """Return a host that has had payload `one` since its machine was created."""
    simulated = Host(program, tmp_path / "host" if (tmp_path / "host").mkdir() is None else tmp_path, owner)
    program.apply(simulated.hand(simulated.config()))
    simulated.commands.clear()
    return simulated


def older(host):
    host.running = dict.fromkeys(host.running, 1.0)


def restarts(host):
    return [line for line in host.commands if line.endswith(f"systemctl restart {ETCD}")]


def turns(host):
    return [line for line in host.commands if line.startswith("etcdctl lock name -- ")]


def test_a_unit_whose_file_changed_is_restarted_and_the_old_payload_is_removed(program, host):
    sha256 = host.hand(host.config("two"))
    program.apply(sha256)
    assert restarts(host) == []  # it started after its new file was written
    older(host)
    program.apply(sha256)
    assert restarts(host) == [f"systemctl restart {ETCD}"]
    assert host.payloads() == [f"payload-{sha256[:16]}"]
    host.commands.clear()
    program.apply(sha256)
    assert restarts(host) == []


def test_a_running_unit_whose_program_changed_is_restarted_and_a_stopped_one_is_not(program, host):
    config = json.loads(host.config())
    config["files"][-1]["text"] = "newer binary"
    older(host)
    (host.folder / "units" / ETCD).touch()
    del host.running[ETCD]
    host.running[ETCD] = 0.0
    program.apply(host.hand(json.dumps(config)))
    assert restarts(host) == []
    host.running[ETCD] = 1.0
    program.apply(host.expected)
    assert len(restarts(host)) == 1


def test_a_payload_that_the_store_does_not_name_for_this_host_is_refused(program, host):
    sha256 = host.hand(host.config("two"))
    host.expected = "0" * 64
    with pytest.raises(program.Failure, match=f"the store assigns payload 0000000000000000 .* not {sha256[:16]}"):
        program.apply(sha256)
    assert host.commands == []


def test_a_payload_that_was_damaged_on_the_way_is_refused(program, host):
    sha256 = host.hand(host.config("two"))
    (host.folder / "handed" / f"payload-{sha256[:16]}").write_text(packed("another"))
    with pytest.raises(program.Failure, match="sha256 is .*, expected"):
        program.apply(sha256)
    assert host.commands == []


@pytest.mark.parametrize("cut", ["restart menagerie-boot", "stop", f"restart {ETCD}", "daemon-reload"])
def test_an_interrupted_run_leaves_the_host_half_way_and_the_next_run_does_the_rest(program, host, cut):
    program.apply(host.hand(host.config(units=(ETCD, TIMER))))
    older(host)
    host.cut = cut
    sha256 = host.hand(host.config("two"))
    with pytest.raises(program.Failure, match="cut at"):
        program.apply(sha256)
    assert len(host.payloads()) == 2
    program.apply(sha256)
    assert host.payloads() == [f"payload-{sha256[:16]}"]
    assert f"systemctl stop {TIMER}" in host.commands
    assert len(restarts(host)) == (2 if cut == f"restart {ETCD}" else 1)
    assert not (host.folder / "units" / TIMER).exists()
    assert (host.folder / "units" / ETCD).read_text() == "two"


def test_a_half_way_host_rolls_back_with_the_old_payload(program, host):
    former = host.expected
    older(host)
    host.cut = f"restart {ETCD}"
    with pytest.raises(program.Failure):
        program.apply(host.hand(host.config("two", units=(ETCD, TIMER))))
    host.expected = former
    program.apply(former)
    assert host.payloads() == [f"payload-{former[:16]}"]
    assert (host.folder / "units" / ETCD).read_text() == "one"
    assert not (host.folder / "units" / TIMER).exists()


def test_an_etcd_is_restarted_under_its_lock_and_without_one_if_it_is_full(program, host):
    older(host)
    lock = ["etcdctl", "lock", "name"]
    program.apply(host.hand(host.config("two", locks=lock)))
    assert len(turns(host)) == 1 and restarts(host) == []
    host.commands.clear()
    older(host)
    host.why = {"etcdctl": "etcdserver: mvcc: database space exceeded"}
    program.apply(host.hand(host.config("three", locks=lock)))
    assert len(turns(host)) == 1 and restarts(host) == [f"systemctl restart {ETCD}"]


def test_an_etcd_that_does_not_come_back_is_reported_and_leaves_the_host_half_way(program, host, monkeypatch):
    older(host)
    host.why = {"etcdctl": "Job for etcd-main.service failed"}
    sha256 = host.hand(host.config("two", locks=["etcdctl", "lock"]))
    monkeypatch.setattr(sys, "argv", ["menagerie-apply", sha256])
    with pytest.raises(SystemExit, match="the restart of etcd-main.service failed: Job for"):
        program.main()
    assert "the restart of" in (host.folder / "kept/apply.failed").read_text()
    assert len(host.payloads()) == 2
    host.why = {}
    program.main()
    assert not (host.folder / "kept/apply.failed").exists()


def test_a_packed_payload_is_the_same_when_unpacked():
    assert unpacked(packed("a\nä" * 1000)) == "a\nä" * 1000


def test_the_program_is_one_file_that_needs_only_the_standard_library(tmp_path):
    path = tmp_path / "apply.py"
    path.write_text(next(file.text for file in applying.files() if file.path.endswith("apply")))
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F", "--target-version", "py37", path]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    assert path.read_text().startswith("#!/usr/bin/python3\n")
