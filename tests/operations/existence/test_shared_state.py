"""State that a team shares: the login of the ordinary CLI, and moves from one backend to another."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from cluster.spec import Cluster
from operations import stack as operation
from stacks.backend import chosen
from stacks.errors import BackendError, StackError
from tests.cli.terminal import Menagerie
from tests.operations import real_cluster
from tests.operations.existence.conftest import HORUS, ROOT, THREE, declared, in_checkout, left
from tests.operations.google_buckets import VARIABLE, GoogleBuckets
from tests.ports import free_port
from tests.programs import program
from tests.waiting import until


@pytest.fixture
def old(shared: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The backend with the stack, which is no longer configured. No cluster is behind the stack."""
    monkeypatch.delenv("PULUMI_BACKEND_URL")
    monkeypatch.setenv("PULUMI_CREDENTIALS_PATH", str(shared.parent / ".pulumi"))
    return f"file://{shared}"


@pytest.fixture
def new(old: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The configured backend, without a stack."""
    folder = tmp_path / "new"
    folder.mkdir()
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{folder}")
    return folder


def log_in(home: Path, content: object) -> None:
    (home / ".pulumi").mkdir(exist_ok=True)
    (home / ".pulumi" / "credentials.json").write_text(json.dumps(content))


def test_a_login_of_the_ordinary_cli_is_used(old: str, menagerie: Menagerie, horus: Cluster, tmp_path: Path) -> None:
    assert not operation.has_stack(horus)
    log_in(tmp_path, {"current": old, "accounts": {old: {}}})
    assert operation.has_stack(horus)
    ran = menagerie("destroy", HORUS, "--yes")
    assert ran.code == 0, ran.err
    assert left(Path(old.removeprefix("file://"))) == 0


def test_a_stack_in_the_checkout_stays_there_after_a_login_elsewhere(
    old: str, menagerie: Menagerie, horus: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared(monkeypatch)
    operation.make_stack(horus, lambda _: None).up()
    log_in(tmp_path, {"current": f"file://{tmp_path}/of-another-project"})
    assert operation.has_stack(horus)
    assert not operation.backend_of(horus).configured_by


def test_the_login_is_in_the_home_of_the_user_database_as_for_the_engine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also where HOME is another's, as after `sudo -E`."""
    log_in(tmp_path, {"current": "s3://of-the-user"})
    monkeypatch.setattr("stacks.backend.pwd.getpwuid", lambda _: SimpleNamespace(pw_dir=str(tmp_path)))
    backend = chosen("horus", tmp_path / "state", tmp_path, {"HOME": "/nowhere"}, is_lab=False)
    assert (backend.url, backend.configured_by) == ("s3://of-the-user", "pulumi login")


@pytest.mark.parametrize("content", [{"$pulumiSecureStore": 1, "payload": "Zm9v"}, ["current"]])
def test_a_login_that_can_not_be_read_is_no_missing_cluster(
    old: str, horus: Cluster, tmp_path: Path, content: object
) -> None:
    log_in(tmp_path, content)
    with pytest.raises(BackendError, match=r"credentials\.json is encrypted.*set PULUMI_BACKEND_URL"):
        operation.has_stack(horus)


def test_a_stack_moves_to_the_configured_backend_with_its_secrets(
    old: str, new: Path, menagerie: Menagerie, horus: Cluster
) -> None:
    ran = menagerie("state", "move", HORUS, "--from", old, "--dry-run")
    assert ran.code == 0, ran.err
    assert f"would move the state of horus (3 resources) from {old} to file://{new}" in " ".join(ran.out.split())
    assert (left(Path(old.removeprefix("file://"))), left(new)) == (len(THREE), 0)
    ran = menagerie("state", "move", HORUS, "--from", old, "--yes", "--json")
    assert ran.code == 0, ran.err
    assert (ran.json["moved"], ran.json["resources"], ran.json["target"]) == (True, len(THREE), f"file://{new}")
    assert (left(Path(old.removeprefix("file://"))), left(new)) == (0, len(THREE))
    copy = Path(ran.json["copy"])
    assert copy.stat().st_mode & 0o777 == 0o600
    assert "of-an-etcd" not in copy.read_text()
    assert operation.make_stack(horus, lambda _: None).outputs() == {"key": "of-an-etcd"}


def test_a_move_without_from_takes_the_checkouts_own_folder(
    old: str, menagerie: Menagerie, horus: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared(monkeypatch)
    operation.make_stack(horus, lambda _: None).up()
    (tmp_path / "new").mkdir()
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path / 'new'}")
    ran = menagerie("status", HORUS)
    assert "./menagerie state move horus" in " ".join(ran.err.split())
    ran = menagerie("state", "move", HORUS, "--yes")
    assert ran.code == 0, ran.err
    assert left(tmp_path / "new") == len(THREE)
    assert operation.has_stack(horus)


def test_an_interrupted_move_continues_when_it_is_run_again(
    old: str, new: Path, menagerie: Menagerie, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_answer(_: object) -> None:
        raise StackError("no answer from the backend")

    with monkeypatch.context() as patch:
        patch.setattr("stacks.automation.ClusterStack.forget", no_answer)
        ran = menagerie("state", "move", HORUS, "--from", old, "--yes")
    assert ran.code == 1
    assert (left(Path(old.removeprefix("file://"))), left(new)) == (len(THREE), len(THREE))
    ran = menagerie("state", "move", HORUS, "--from", old, "--yes")
    assert ran.code == 0, ran.err
    assert (left(Path(old.removeprefix("file://"))), left(new)) == (0, len(THREE))
    ran = menagerie("state", "move", HORUS, "--from", old, "--yes")
    assert ran.code == 2
    assert f"file://{new} has it, so there is nothing to move" in " ".join(ran.err.split())


def test_a_stack_with_other_resources_is_never_overwritten(
    old: str, new: Path, menagerie: Menagerie, horus: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared(monkeypatch, "other")
    operation.make_stack(horus, lambda _: None).up()
    ran = menagerie("state", "move", HORUS, "--from", old, "--yes")
    assert ran.code == 2
    assert "already has a stack horus, with other resources; nothing was changed" in " ".join(ran.err.split())
    assert (left(Path(old.removeprefix("file://"))), left(new)) == (len(THREE), 1)


def test_a_state_is_not_moved_to_where_it_is_nor_a_labs_at_all(old: str, menagerie: Menagerie) -> None:
    for words, why in (((HORUS,), "set the new one first"), (("lab",), "can't be moved")):
        ran = menagerie("state", "move", *words, "--yes")
        assert ran.code == 2
        assert why in " ".join(ran.err.split())


@dataclass
class Bucket:
    """A bucket, whose objects are files. put, delete: an object, as somebody else does it."""

    folder: Path
    put: Callable[[str, bytes], None]
    delete: Callable[[str], None]


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Bucket]:
    folder, port = tmp_path / "s3", free_port()
    (folder / "state").mkdir(parents=True)
    keys = {"ROOT_ACCESS_KEY": "tests", "ROOT_SECRET_KEY": "tests"}
    command = [real_cluster.program("versitygw"), f"--port=127.0.0.1:{port}", "--quiet", "posix", str(folder)]

    def put(name: str, data: bytes) -> None:
        file = folder / "state" / name
        file.parent.mkdir(parents=True)
        file.write_bytes(data)

    with subprocess.Popen(command, env={**os.environ, **keys}) as server:
        until(lambda: is_open(port), seconds=30, every_s=0.05)
        place = f"endpoint=http://127.0.0.1:{port}&s3ForcePathStyle=true&region=us-east-1"
        monkeypatch.setenv("PULUMI_BACKEND_URL", f"s3://state?{place}")
        yield Bucket(folder / "state", put, lambda name: (folder / "state" / name).unlink())
        server.kill()


@pytest.fixture
def gs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Bucket]:
    server = GoogleBuckets(program("fake-gcs-server"), tmp_path / "gs")
    server.start("state")
    for name, value in {VARIABLE: server.host, "GOOGLE_OAUTH_ACCESS_TOKEN": "tests"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PULUMI_BACKEND_URL", "gs://state")
    yield Bucket(
        server.folder / "state",
        lambda name, data: server.put("state", name, data),
        lambda name: server.delete("state", name),
    )
    server.stop()


@pytest.fixture(params=["s3", "gs"])
def bucket(request: pytest.FixtureRequest, old: str) -> Bucket:
    """The configured backend: a bucket of a real S3 server, or of an emulator of Cloud Storage."""
    bucket_: Bucket = request.getfixturevalue(request.param)
    return bucket_


def is_open(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


def test_a_state_in_a_bucket_is_shared_by_all_checkouts_and_locked_for_one(
    old: str, bucket: Bucket, menagerie: Menagerie, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ran = menagerie("state", "move", HORUS, "--from", old, "--yes")
    assert ran.code == 0, ran.err
    assert left(bucket.folder) == len(THREE)
    in_checkout(monkeypatch, tmp_path / "second")
    lock = ".pulumi/locks/organization/menagerie/horus/of-mia.json"
    mia = {"pid": 4711, "username": "mia", "hostname": "ops-2", "timestamp": "2026-11-26T07:00:00Z"}
    bucket.put(lock, json.dumps(mia).encode())
    ran = menagerie("destroy", HORUS, "--yes")
    assert ran.code == 3, ran.err
    assert "mia@ops-2" in ran.err
    assert left(bucket.folder) == len(THREE)
    bucket.delete(lock)
    ran = menagerie("destroy", HORUS, "--yes")
    assert ran.code == 0, ran.err
    assert left(bucket.folder) == 0


def test_another_passphrase_by_the_ordinary_cli_opens_the_state_and_the_former_one_no_longer_does(
    shared: Path, menagerie: Menagerie, horus: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    operation.ROOT.mkdir()
    shutil.copy(ROOT / "Pulumi.yaml", operation.ROOT)
    word = tmp_path / "new"
    word.write_text("another one\n")
    command = [program("pulumi"), "stack", "change-secrets-provider", "passphrase", "-s", "horus"]
    environment = {**os.environ, "PULUMI_CONFIG_PASSPHRASE": "tests", "PULUMI_HOME": str(tmp_path / "home")}
    with word.open() as given:
        subprocess.run(command, cwd=operation.ROOT, env=environment, stdin=given, check=True)
    with pytest.raises(StackError, match="passphrase"):
        operation.make_stack(horus, lambda _: None).outputs()
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "another one")
    assert operation.make_stack(horus, lambda _: None).outputs() == {"key": "of-an-etcd"}
