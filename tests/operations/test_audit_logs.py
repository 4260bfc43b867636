"""From a real API server's audit log to an operator's view of it in a locked bucket on a real S3 server (moto)."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import boto3
import pytest
from kubernetes import client
from moto.server import ThreadedMotoServer

from clients.access import Access
from cluster.outputs import BucketOutput
from cluster.spec import Cluster
from components.control_plane import audit_log, kube_apiserver
from components.control_plane.host import bucket
from components.control_plane.host.audit_log import Shipper
from operations.audit_logs import BucketSilentError, Newest, RunningServer, newest, servers, shipped
from operations.status import work
from tests import programs
from tests.control_plane.real_api import TOKEN, RealApi, running
from tests.operations.conftest import FakeAccess, outputs
from tests.ports import free_port
from tests.stacks.fake_stores import moto

KEY = {"access_key_id": "test", "secret_access_key": "test"}
POLICY = Path(kube_apiserver.__file__).with_name("files") / "audit-policy.yaml"
NOW = datetime.now(UTC)
ANY: Any = None

pytestmark = pytest.mark.filterwarnings("ignore:Unverified HTTPS request")


@pytest.fixture(scope="module")
def s3() -> Iterator[ThreadedMotoServer]:
    server = moto()
    yield server
    server.stop()


def url_of(server: ThreadedMotoServer) -> str:
    return "http://{}:{}".format(*server.get_host_and_port())


@pytest.fixture
def kept(s3: ThreadedMotoServer, request: pytest.FixtureRequest) -> BucketOutput:
    name = f"logs-{abs(hash(request.node.name))}"
    made = boto3.client(
        "s3", "us-east-1", endpoint_url=url_of(s3), aws_access_key_id="test", aws_secret_access_key="test"
    )
    made.create_bucket(Bucket=name, ObjectLockEnabledForBucket=True)
    rule = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 30}}
    lock = {"ObjectLockEnabled": "Enabled", "Rule": rule}
    made.put_object_lock_configuration(Bucket=name, ObjectLockConfiguration=lock)
    return BucketOutput(kind="s3", name=name, region="us-east-1", endpoint=url_of(s3), locked_days=30)


def access_to(kept: BucketOutput | None, url: str = "") -> Access:
    buckets = {audit_log.USE: kept} if kept else {}
    access: Any = FakeAccess(outputs().model_copy(update={"buckets": buckets}), url, bucket_key=json.dumps(KEY))
    return access


def shipper(
    kept: BucketOutput, folder: Path, host: str, boot: str = "c0ffee00", ahead_s: float = 0, log: Path | None = None
) -> Shipper:
    known = json.loads(audit_log.settings(kept, "lab", {"key": KEY}))
    put = partial(bucket.put, known)
    (folder / "audit").mkdir(parents=True, exist_ok=True)
    at = datetime.now(UTC).timestamp() + ahead_s
    return Shipper(f"lab/{host}", put, log or folder / "audit" / "audit.log", folder / f"{boot}.json", boot, lambda: at)


class Logging(NamedTuple):
    """A real API server that logs like ours, except for the size at which it rotates."""

    api: RealApi
    log: Path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Logging]:
    folder = tmp_path_factory.mktemp("api")
    log = folder / "audit" / "audit.log"
    flags = {
        **kube_apiserver._audit(),
        "audit-policy-file": str(POLICY),
        "audit-log-path": str(log),
        "audit-log-maxsize": "1",
    }
    with running(programs.program, folder, *(f"--{name}={value}" for name, value in flags.items())) as api:
        yield Logging(api, log)


def test_what_a_real_api_server_logs_and_rotates_is_in_the_bucket_after_its_host_is_gone(
    server: Logging, kept: BucketOutput, tmp_path: Path
) -> None:
    """The attack: root on the host erases the log and the state of the shipping program."""
    own = shipper(kept, tmp_path, "api-1", log=server.log)
    for number in range(8):
        assert written(server.api, number) == 201
        own.step()
    ids = {line["auditID"] + line["stage"] for line in map(json.loads, on_disk(server.log.parent))}
    own.step()
    assert len(list(server.log.parent.glob("audit-*"))) >= 2
    (tmp_path / "c0ffee00.json").unlink()
    for path in server.log.parent.glob("audit*"):
        path.write_bytes(b"")
    lines = in_bucket(kept)
    shipped_ids = [line["auditID"] + line["stage"] for line in lines]
    assert ids <= set(shipped_ids)
    assert len(set(shipped_ids)) == len(shipped_ids)
    made = [line["objectRef"]["name"] for line in lines if line["verb"] == "create" and "roles" in line["requestURI"]]
    assert {f"role-{number}" for number in range(8)} <= set(made)
    assert newest(access_to(kept), "lab")["api-1"].gaps == 0


def written(api: RealApi, number: int) -> int:
    """Make a change whose body of half a MiB is logged, like changes of permissions."""
    rules = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": [f"{'x' * 200}-{n}"]}
        for n in range(1800)
    ]
    role = {"metadata": {"name": f"role-{number}"}, "rules": rules}
    return api.call("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", role)[0]


def on_disk(folder: Path) -> list[str]:
    plain = {path.name for path in folder.glob("audit-*.log")}
    texts = [path.read_bytes() for path in folder.glob("audit*.log")]
    texts += [gzip.decompress(path.read_bytes()) for path in folder.glob("*.gz") if path.name[:-3] not in plain]
    return b"".join(texts).decode().splitlines()


def in_bucket(kept: BucketOutput) -> list[Mapping[str, Any]]:
    made = boto3.client(
        "s3", "us-east-1", endpoint_url=kept.endpoint, aws_access_key_id="test", aws_secret_access_key="test"
    )
    keys = sorted(each["Key"] for each in made.list_objects_v2(Bucket=kept.name)["Contents"])
    packed = b"".join(made.get_object(Bucket=kept.name, Key=key)["Body"].read() for key in keys)
    return [json.loads(line) for line in gzip.decompress(packed).splitlines()]


def test_the_newest_object_is_found_over_boots_and_folders_although_a_clock_was_wrong(
    kept: BucketOutput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("components.control_plane.host.audit_log.BLOCK", 2)
    monkeypatch.setattr("components.control_plane.host.audit_log.QUIET_S", 0.0)
    ahead = shipper(kept, tmp_path / "a", "api-1", "aaaaaaaa", ahead_s=86_400 * 365)
    ahead.step()
    last = shipper(kept, tmp_path / "a", "api-1", "bbbbbbbb")
    for _ in range(5):
        last.step()
    shipper(kept, tmp_path / "b", "api-2").step()
    objects = newest(access_to(kept), "lab")
    assert set(objects) == {"api-1", "api-2"}
    assert all(abs((each.at - datetime.now(UTC)).total_seconds()) < 60 for each in objects.values())
    assert newest(access_to(kept), "another") == {}


def as_client(api: RealApi) -> client.ApiClient:
    configuration = client.Configuration(
        host=f"https://127.0.0.1:{api.port}", api_key={"authorization": f"Bearer {TOKEN}"}
    )
    configuration.verify_ssl = False
    return client.ApiClient(configuration)


def test_a_running_real_api_server_is_known_by_its_host_and_a_removed_one_is_not(server: Logging) -> None:
    (running_server,) = servers(as_client(server.api), datetime.now(UTC))
    assert running_server.host == socket.gethostname()
    assert servers(as_client(server.api), datetime.now(UTC) + timedelta(minutes=5)) == ()


@pytest.mark.parametrize(
    ("age_s", "runs_s", "ok", "says"),
    [
        (120, 9000, True, "audit log shipped 2 min ago"),
        (40, 9000, True, "audit log shipped 40 s ago"),
        (599, 9000, True, "audit log shipped 10 min ago"),
        (601, 9000, False, "audit log shipped 10 min ago"),
        (7200, 60, False, "audit log shipped 120 min ago"),
        (None, 9000, False, "audit log was never shipped"),
        (None, 60, True, "audit log not shipped yet; the API server started a few minutes ago"),
    ],
)
def test_a_host_is_healthy_while_its_newest_object_or_the_host_itself_is_recent(
    age_s: float | None, runs_s: float, ok: bool, says: str
) -> None:
    objects = {} if age_s is None else {"api-1": Newest(NOW - timedelta(seconds=age_s), 0)}
    assert shipped(objects, RunningServer("api-1", NOW - timedelta(seconds=runs_s)), NOW) == (ok, says)


def test_gaps_are_reported() -> None:
    objects = {"api-1": Newest(NOW, 2)}
    assert (
        shipped(objects, RunningServer("api-1", NOW), NOW)[1]
        == "audit log shipped 0 s ago; 2 gaps, where lines were lost"
    )


def test_status_has_a_line_for_each_api_server(
    kept: BucketOutput, lab: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("components.control_plane.host.audit_log.QUIET_S", 0.0)
    shipper(kept, tmp_path, "api-1").step()
    both = (RunningServer("api-1", NOW), RunningServer("api-2", NOW - timedelta(hours=1)))
    monkeypatch.setattr(work, "servers", lambda *_: both)
    items = {item.name: item for item in work.audit_logs(lab, access_to(kept), ANY)}
    assert [(name, item.ok) for name, item in items.items()] == [("api-1", True), ("api-2", False)]
    assert "docs/explanation/audit-logs.md" in items["api-2"].help


def test_a_missing_or_silent_bucket_is_reported_in_one_line(kept: BucketOutput, lab: Cluster) -> None:
    with pytest.raises(BucketSilentError, match=r"no bucket for audit logs yet; run: ./menagerie up lab"):
        newest(access_to(None), "lab")
    dead = kept.model_copy(update={"endpoint": f"http://127.0.0.1:{free_port()}"})
    (item,) = work.audit_logs(lab, access_to(dead), ANY)
    assert (item.name, item.ok) == ("bucket", False)
    assert f"can't read bucket {kept.name}" in item.detail
