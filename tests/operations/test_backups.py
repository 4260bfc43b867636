"""An operator's view of backups: which passed a drill, and how long ago."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.actions import backups as verb
from cli.main import app
from cluster.errors import FailedError
from cluster.outputs import BucketOutput
from cluster.spec import Backup, Cluster
from etcd import backups as place
from etcd.host.menagerie_etcd.repository import Repository, RepositoryError, Snapshot
from operations import backups
from operations.backups import BackupState, NoBackupsError
from tests.etcd.backup_support import KEY, Buckets
from tests.operations.conftest import outputs
from tests.programs import PROGRAMS, needs

HOUR = 3600.0
NOW = 1_000 * HOUR
BACKUP = Backup.model_validate({"every": "15m", "keep": "30d"})


def _made(id_: str, hours_ago: float) -> Snapshot:
    tags = {"kind": "backup", "size": "2097152", "revision": "7", "keys": "5", "member": "etcd-main-2"}
    return Snapshot(id_, NOW - hours_ago * HOUR, tags)


def _drilled(of: str, hours_ago: float, ok: str = "yes", why: str = "") -> Snapshot:
    return Snapshot(
        f"drill-{hours_ago}",
        NOW - hours_ago * HOUR,
        {"kind": "drill", "of": of, "ok": ok, **({"why": why} if why else {})},
    )


def test_only_the_newest_backup_that_passed_a_drill_counts() -> None:
    listed = [_made("new", 0.1), _made("mid", 5), _drilled("mid", 4), _made("old", 30), _drilled("old", 29)]
    assert backups.verified_age(listed, NOW) == 5 * HOUR
    state = backups.state("main", BACKUP, listed, NOW)
    assert state.ok
    assert state.summary == "3 backups; the newest that passed a drill is 5.0 h old"
    assert [(kept.id, kept.good, kept.tried is None) for kept in state.backups] == [
        ("new", False, True),
        ("mid", True, False),
        ("old", True, False),
    ]


def test_only_the_last_drill_of_a_backup_counts_and_its_result_is_shown() -> None:
    listed = [_made("new", 2), _drilled("new", 1, "no", "its hash is a"), _drilled("new", 1.5)]
    assert backups.verified_age(listed, NOW) is None
    state = backups.state("main", BACKUP, listed, NOW)
    assert not state.ok
    assert state.summary.endswith("the last drill of the newest failed: its hash is a")


@pytest.mark.parametrize(("age", "ok"), [(24.4, True), (24.6, False)])
def test_a_verified_backup_may_be_two_intervals_and_a_drill_old(age: float, ok: bool) -> None:
    state = backups.state("main", BACKUP, [_made("one", age), _drilled("one", 0.1)], NOW)
    assert state.ok is ok
    assert ("the limit is 24.5 h" in state.summary) is not ok


def test_no_backup_and_no_tested_backup_are_distinguished() -> None:
    assert backups.state("main", BACKUP, [], NOW).summary == "there has never been a backup"
    assert "none has ever passed a drill" in backups.state("main", BACKUP, [_made("one", 1)], NOW).summary


def test_an_etcd_without_backups_is_reported_with_the_setting_to_add(build: Callable[..., Cluster]) -> None:
    cluster = build({"etcd": {"main": {"backup": None}}})
    assert list(backups.with_backups(cluster)) == ["events"]
    with pytest.raises(NoBackupsError, match=r"etcd.main of lab has no backups; add etcd.main.backup: \{every"):
        backups.with_backups(cluster, "main")


@pytest.mark.parametrize(
    ("bucket", "url", "environment"),
    [
        (
            BucketOutput(kind="s3", name="b", region="eu-west-1"),
            "s3:https://s3.eu-west-1.amazonaws.com/b/apes/main",
            {"AWS_DEFAULT_REGION": "eu-west-1"},
        ),
        (
            BucketOutput(kind="s3", name="b", region="us-east-1", endpoint="http://10.79.1.10:7070"),
            "s3:http://10.79.1.10:7070/b/apes/main",
            {"AWS_DEFAULT_REGION": "us-east-1"},
        ),
        (
            BucketOutput(kind="azure", name="backups", account="apes1"),
            "azure:backups:/apes/main",
            {"AZURE_ACCOUNT_NAME": "apes1"},
        ),
        (BucketOutput(kind="gcs", name="b"), "gs:b:/apes/main", {}),
    ],
)
def test_every_cloud_s_bucket_has_an_address_that_restic_accepts(
    bucket: BucketOutput, url: str, environment: dict[str, str]
) -> None:
    assert place.url(bucket, "apes", "main") == url
    assert place.environment(bucket) == environment


REAL = needs(("restic", "versitygw"))


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    monkeypatch.setenv("PATH", os.pathsep.join([str(PROGRAMS["restic"].parent), os.environ["PATH"]]))
    server = Buckets(PROGRAMS["versitygw"], tmp_path)
    try:
        server.start("backups")
        yield server.repository("apes/main")
    finally:
        server.stop()


@REAL
def test_a_requested_backup_is_waited_for(repository: Repository, tmp_path: Path) -> None:
    file = tmp_path / "db"
    file.write_bytes(b"x" * 1000)

    def ask() -> None:
        repository.ensure()
        repository.put(file, "main.db", {"kind": "backup", "member": "etcd-main-1, or -2"})

    made = backups.back_up(repository, ask, look_s=0.1)
    assert made.tags["member"] == "etcd-main-1; or -2"
    assert [each.id for each in repository.snapshots()] == [made.id]
    with pytest.raises(FailedError, match="no new backup in s3:http://127.0.0.1"):
        backups.back_up(repository, lambda: None, patience_s=0.5, look_s=0.1)
    repository.take(made.id, "main.db", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == file.read_bytes()


@REAL
def test_an_operator_reads_the_bucket_with_the_stack_s_outputs(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Callable[..., Cluster]
) -> None:
    endpoint = repository.url.removeprefix("s3:").split("/backups/")[0]
    bucket = BucketOutput(kind="s3", name="backups", region="us-east-1", endpoint=endpoint)
    key = f'{{"access_key_id": "{KEY["AWS_ACCESS_KEY_ID"]}", "secret_access_key": "{KEY["AWS_SECRET_ACCESS_KEY"]}"}}'

    class Access:
        def __init__(self) -> None:
            self.outputs = outputs().model_copy(update={"buckets": {"backups": bucket}})
            self.backup_passwords = {"main": "p"}
            self.bucket_key = key

    monkeypatch.setattr(backups, "STATE", tmp_path / "state")
    access = Access()
    own = backups.repository(access, "main")  # type: ignore[arg-type]
    own.ensure()
    file = tmp_path / "db"
    file.write_bytes(b"x")
    kept = own.put(file, "main.db", {"kind": "backup", "size": "1"})
    main = backups.read_states(build(), access, "main")  # type: ignore[arg-type]
    assert [each.id for each in main[0].backups] == [kept]
    with pytest.raises(NoBackupsError, match="was built without backups of etcd events"):
        backups.read_states(build(), access, "events")  # type: ignore[arg-type]


def test_a_bucket_that_does_not_answer_is_given_up_in_time(tmp_path: Path) -> None:
    restic = tmp_path / "restic"
    restic.write_text("#!/bin/sh\nexec sleep 60\n")
    restic.chmod(0o755)
    silent = Repository("s3:https://s3.example.org/b", "p", program=str(restic))
    with pytest.raises(RepositoryError, match=r"^s3:https://s3.example.org/b does not answer within 0 s$"):
        backups.refuse_silent(silent, within_s=0.05)
    restic.write_text("#!/bin/sh\nexit 12\n")
    backups.refuse_silent(silent, within_s=30)


def test_the_verb_lists_the_newest_backups_and_its_exit_code_shows_whether_they_are_healthy(
    monkeypatch: pytest.MonkeyPatch, lab: Cluster
) -> None:
    listed = [_made(f"{number:08d}{'f' * 56}", number) for number in range(12)]
    listed.append(_drilled(listed[0].id, 0, "no", "bad pack"))
    states: list[BackupState] = [backups.state("main", BACKUP, listed, NOW)]
    monkeypatch.setattr("operations.stack.access_to", lambda cluster: None)
    monkeypatch.setattr("operations.backups.read_states", lambda *_: states)
    monkeypatch.setattr(verb.time, "time", lambda: NOW)
    done = CliRunner().invoke(app, ["status", "lab", "backups"])
    assert done.exit_code == 1
    assert "bad, 0 s ago" in done.stdout
    assert "and 2 more; --last 12 shows them" in done.stdout
    assert "more" not in CliRunner().invoke(app, ["status", "lab", "backups", "--last", "12"]).stdout
    states[0] = backups.state("main", BACKUP, [*listed[:-1], _drilled(listed[0].id, 0)], NOW)
    done = CliRunner().invoke(app, ["status", "lab", "backups", "--json"])
    assert done.exit_code == 0
    assert '"verified_s": 0.0' in done.stdout


def test_a_repository_without_backups_is_reported_with_the_verb_that_makes_one() -> None:
    def nothing_there() -> float | None:
        raise RepositoryError("there is no repository at s3:x: no backup was ever made there, or it is the wrong place")

    assert backups.stale("lab", nothing_there) == (
        "there is no repository at s3:x: no backup was ever made there, or it is the wrong place; "
        "make one first; run: ./menagerie etcd backup lab"
    )
    assert backups.stale("lab", lambda: 60.0) == backups.stale("lab", None) == ""
