"""Stores of all kinds: in memory, in a folder, on S3 servers on loopback, and on an emulator of Cloud Storage."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import threading
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.session import Session
from obstore.store import MemoryStore

from clients.access import Access
from cluster.outputs import BucketOutput
from operations.record.holder import Holder
from operations.record.model import Record, now
from operations.record.store import FolderStore, RecordStore, bucket_store
from tests.operations import real_cluster
from tests.operations.conftest import outputs
from tests.operations.google_buckets import VARIABLE, GoogleBuckets
from tests.ports import free_port
from tests.programs import program
from tests.waiting import until

KEY = '{"access_key_id": "operator", "secret_access_key": "a-secret-of-this-test"}'
ELSEWHERE = Holder(who="mia@ops-2", pid=4711, started=1, machine="another-boot/pid:[1]")


def record(verb: str = "etcd restore", about: str = "main", *, holder: Holder | None = None, **more: object) -> Record:
    """Return the record of a run of this process that starts now."""
    given = {"holder": holder or Holder.this(), "since": now(), "heartbeat": now(), "repeatable": False, **more}
    names = {"id": uuid.uuid4().hex[:8], "run": uuid.uuid4().hex, "cluster": "lab"}
    return Record.model_validate({**names, "verb": verb, "about": about, **given})


def access_to(endpoint: str, bucket: str = "records") -> Access:
    """Return access to a cluster with a bucket on an S3 server."""
    records = BucketOutput(kind="s3", name=bucket, region="us-east-1", endpoint=endpoint)
    outputs_ = outputs().model_copy(update={"buckets": {"records": records}})
    return Access(outputs_, "", "", "", "", "", bucket_key=KEY)


@pytest.fixture(scope="session")
def versitygw(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a real S3 server."""
    server_program = real_cluster.program("versitygw")
    folder = tmp_path_factory.mktemp("s3")
    port = free_port()
    environment = {**os.environ, "ROOT_ACCESS_KEY": "operator", "ROOT_SECRET_KEY": "a-secret-of-this-test"}
    command = [server_program, "--port", f"127.0.0.1:{port}", "--quiet", "posix", str(folder)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            until(lambda: _answers(f"http://127.0.0.1:{port}"), "the S3 server never answered", 30, 0.05)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    """The URL of moto's S3. It handles one request at a time: between the check of If-Match and the write it holds no
    lock, so two concurrent replacements would both succeed, which never happens with S3."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(url)
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Access]:
    """Access to a cluster with a bucket of Google Cloud, on an emulator."""
    server = GoogleBuckets(program("fake-gcs-server"), tmp_path / "gcs")
    server.start("records")
    monkeypatch.setenv(VARIABLE, server.host)
    outputs_ = outputs().model_copy(update={"buckets": {"records": BucketOutput(kind="gcs", name="records")}})
    yield Access(outputs_, "", "", "", "", "")
    server.stop()


@pytest.fixture(params=["memory", "folder", "moto", "versitygw", "google"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], RecordStore]:
    """Opens the same store, empty at first, for several operators."""
    if request.param == "memory":
        objects = MemoryStore()
        return lambda: RecordStore(objects, "memory", shared=True)
    if request.param == "folder":
        return lambda: FolderStore(tmp_path / "records", "a folder")
    if request.param == "google":
        return in_bucket(request.getfixturevalue("google"))
    endpoint, name = request.getfixturevalue(request.param), f"records-{uuid.uuid4().hex[:8]}"
    make_bucket(endpoint, name)
    return in_bucket(access_to(endpoint, name))


def in_bucket(access: Access) -> Callable[[], RecordStore]:
    def bucket() -> RecordStore:
        store = bucket_store(access)
        assert store is not None
        return store

    return bucket


def make_bucket(endpoint: str, name: str) -> None:
    """Create a bucket, as an operator of the S3 server would."""
    _client(endpoint).create_bucket(Bucket=name)


@functools.cache
def _client(endpoint: str) -> Any:
    key = json.loads(KEY)
    session = Session()
    session.set_credentials(key["access_key_id"], key["secret_access_key"])
    return session.create_client("s3", "us-east-1", endpoint_url=endpoint)
