"""The lab's bucket server, started as in the lab, but on loopback and without its namespace."""

from __future__ import annotations

import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from cluster.outputs import BucketOutput
from etcd import backups as place
from etcd.host.menagerie_etcd.repository import Repository
from sandbox.lab import buckets, mounts, plan, processes, state
from sandbox.lab.plan import LabSpec
from tests.ports import free_port
from tests.programs import PROGRAMS, needs
from tests.waiting import until

KEY = {"access_key_id": "menagerie", "secret_access_key": "ab" * 32}


pytestmark = needs(("restic", "versitygw"))


@pytest.fixture
def lab() -> LabSpec:
    return LabSpec("lab", "10.77.0.0/24", {}, "10.77.0.10", (), "", "", "", "", versitygw=str(PROGRAMS["versitygw"]))


@pytest.fixture
def daemons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[processes.Daemon]]:
    """The started daemons; the last of them runs."""
    monkeypatch.setattr(plan, "BUCKETS_PORT", free_port())
    monkeypatch.setattr(plan, "SERVICES_ADDRESS", IPv4Address("127.0.0.1"))
    monkeypatch.setenv("MENAGERIE_LAB_STATE", str(tmp_path))
    monkeypatch.setattr(mounts, "private_memory", lambda folder: folder.mkdir(parents=True, exist_ok=True))
    started: list[processes.Daemon] = []
    running: list[subprocess.Popen[bytes]] = []

    def ensure(daemon: processes.Daemon, ready: object) -> bool:
        started.append(daemon)
        running.append(subprocess.Popen(list(daemon.argv), env={"PATH": os.environ["PATH"]}))
        until(buckets.answers, seconds=30)
        return True

    monkeypatch.setattr(processes, "ensure", ensure)
    yield started
    for process in running:
        process.kill()
        process.wait()


def test_the_server_has_the_clusters_buckets_and_requires_its_key(
    lab: LabSpec, daemons: list[processes.Daemon], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    buckets.ensure(lab)
    assert daemons == []
    buckets.put(KEY, lab)
    (daemon,) = daemons
    assert KEY["secret_access_key"] not in " ".join(daemon.argv)
    assert not daemon.environment
    key_file = state.folder("secrets", "buckets.env")
    assert key_file.stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("PATH", os.pathsep.join([str(PROGRAMS["restic"].parent), os.environ["PATH"]]))
    url = f"http://127.0.0.1:{plan.BUCKETS_PORT}"
    for use in plan.BUCKETS:
        bucket = BucketOutput(kind="s3", name=use, region="us-east-1", endpoint=url)
        own = {
            "AWS_ACCESS_KEY_ID": KEY["access_key_id"],
            "AWS_SECRET_ACCESS_KEY": KEY["secret_access_key"],
            **place.environment(bucket),
        }
        repository = Repository(place.url(bucket, "lab", "main"), "p", own)
        repository.ensure()
        assert repository.snapshots() == ()
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"{url}/backups", timeout=10)
    assert {path.name for path in state.folder("buckets", "data").glob("[!.]*")} == set(plan.BUCKETS)


def test_a_new_key_starts_a_new_daemon_and_the_same_key_does_not(lab: LabSpec, daemons: list[processes.Daemon]) -> None:
    buckets.put(KEY, lab)
    buckets.ensure(lab)
    buckets.put({**KEY, "secret_access_key": "cd" * 32}, lab)
    first, again, other = daemons
    assert first == again
    assert first.watched != other.watched


def test_a_lab_without_a_newer_bucket_gets_it_with_the_next_up(
    lab: LabSpec, daemons: list[processes.Daemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "is_running", lambda _: True)
    buckets.put(KEY, lab)
    assert buckets.read() == buckets.fingerprint(KEY)
    missing = state.folder("buckets", "data") / "audit-logs"
    missing.rmdir()
    assert buckets.read() is None
    buckets.put(KEY, lab)
    assert missing.is_dir()
    assert buckets.read() == buckets.fingerprint(KEY)
