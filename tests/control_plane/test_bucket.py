"""Objects in buckets: real S3 servers (moto for locks and signatures, versitygw as the lab has it), Azure and Google as documented.

The attack: somebody with the identity of an API-server host overwrites or deletes shipped objects.
"""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import urllib.parse
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.auth import S3SigV4Auth
from botocore.exceptions import ClientError

from cluster.outputs import BucketOutput
from components.control_plane import audit_log
from components.control_plane.host import bucket
from components.control_plane.host.bucket import BucketError
from tests.ports import free_port
from tests.programs import program
from tests.stacks.fake_stores import Answer, Aws, Cloud, moto, reply, serve
from tests.waiting import until

KEY = {"access_key_id": "menagerie", "secret_access_key": "ab" * 32}
DAYS = 30


def locked_bucket(client: Any, name: str) -> None:
    """Create a bucket like that of stacks/aws/storage.py."""
    client.create_bucket(Bucket=name, ObjectLockEnabledForBucket=True)
    rule = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": DAYS}}
    lock = {"ObjectLockEnabled": "Enabled", "Rule": rule}
    client.put_object_lock_configuration(Bucket=name, ObjectLockConfiguration=lock)


class S3(Aws):
    """A bucket that, like the simulated secret store, compares each signature with botocore's."""

    signer = S3SigV4Auth

    def of_store(self, method: str, path: str, headers: Any, body: bytes) -> Answer:
        if headers.get("X-Amz-Security-Token") != self.role.token:
            return reply(403, Code="InvalidToken")
        proof = self._proof(method, path, headers, body)
        return (
            self._relayed(method, path, headers, body) if headers["Authorization"] == proof else reply(403, Code="No")
        )

    def client(self) -> Any:
        url = "http://{}:{}".format(*self.server.get_host_and_port())
        keys = (self.role.access_key, self.role.secret_key)
        return boto3.client("s3", "us-east-1", None, True, None, url, *keys)


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    S3.server = moto()
    cloud = S3()
    stop = serve(cloud)
    locked_bucket(cloud.client(), "logs")
    yield cloud
    stop()
    S3.server.stop()


def settings(cloud: Cloud) -> dict[str, Any]:
    return {
        "kind": "s3",
        "name": "logs",
        "region": "us-east-1",
        "endpoint": cloud.url,
        "metadata": cloud.metadata,
        "cluster": "jaguar",
    }


def test_a_host_adds_objects_with_its_role_and_overwrites_none(s3: S3) -> None:
    assert bucket.put(settings(s3), "jaguar/a b+c/1.gz", b"first")
    assert not bucket.put(settings(s3), "jaguar/a b+c/1.gz", b"second")
    assert s3.client().get_object(Bucket="logs", Key="jaguar/a b+c/1.gz")["Body"].read() == b"first"


def test_objects_in_a_locked_bucket_survive_deletes_and_overwrites_by_their_writer(s3: S3) -> None:
    """More than a host's policy allows: without a condition, and with the right to delete."""
    bucket.put(settings(s3), "jaguar/host/1.gz", b"the lines")
    client = s3.client()
    (version,) = client.list_object_versions(Bucket="logs", Prefix="jaguar/host/")["Versions"]
    client.put_object(Bucket="logs", Key="jaguar/host/1.gz", Body=b"forged")
    client.delete_object(Bucket="logs", Key="jaguar/host/1.gz")
    with pytest.raises(ClientError, match="AccessDenied"):
        client.delete_object(Bucket="logs", Key="jaguar/host/1.gz", VersionId=version["VersionId"])
    kept = client.get_object(Bucket="logs", Key="jaguar/host/1.gz", VersionId=version["VersionId"])
    assert kept["Body"].read() == b"the lines"
    assert kept["ObjectLockMode"] == "GOVERNANCE"


def test_a_refusal_of_a_bucket_names_the_missing_right(s3: S3) -> None:
    s3.store_fault = Answer(403, "<Code>AccessDenied</Code>")
    try:
        with pytest.raises(
            BucketError, match=r"bucket logs: HTTP 403 .* \(needed: s3:PutObject, kms:GenerateDataKey\)"
        ):
            bucket.put(settings(s3), "x", b"")
    finally:
        s3.store_fault = None


def test_a_time_out_is_reported_with_the_bucket(s3: S3) -> None:
    with pytest.raises(BucketError, match="bucket logs: ConnectionRefusedError"):
        bucket.put({**settings(s3), "endpoint": f"http://127.0.0.1:{free_port()}", "key": KEY}, "x", b"")


@pytest.fixture
def lab_server(tmp_path: Path) -> Iterator[str]:
    """Run versitygw like the lab."""
    gateway, port = program("versitygw"), free_port()
    for name in ("data", "about"):
        (tmp_path / name).mkdir()
    command = [gateway, "--quiet", f"--port=127.0.0.1:{port}", "posix", f"--sidecar={tmp_path / 'about'}"]
    keys = {"ROOT_ACCESS_KEY": KEY["access_key_id"], "ROOT_SECRET_KEY": KEY["secret_access_key"]}
    (tmp_path / "data" / "audit-logs").mkdir()
    running = subprocess.Popen([*command, tmp_path / "data"], env=keys)

    def answers() -> bool:
        with suppress(OSError):
            http.client.HTTPConnection("127.0.0.1", port).connect()
            return True
        return False

    until(answers, seconds=30, every_s=0.05)
    yield f"http://127.0.0.1:{port}"
    running.kill()
    running.wait()


def test_the_labs_server_accepts_each_name_once(lab_server: str) -> None:
    output = BucketOutput(kind="s3", name="audit-logs", region="us-east-1", endpoint=lab_server)
    bucket_settings = json.loads(audit_log.settings(output, "lab", {"key": KEY}))
    assert bucket.put(bucket_settings, "lab/api-1/b/00000/1.gz", b"first")
    assert not bucket.put(bucket_settings, "lab/api-1/b/00000/1.gz", b"second")
    client = boto3.client("s3", "us-east-1", None, True, None, lab_server, *KEY.values())
    assert client.get_object(Bucket="audit-logs", Key="lab/api-1/b/00000/1.gz")["Body"].read() == b"first"


@dataclass
class Documented(Cloud):
    """Objects by name, kept by each cloud's `of_store`."""

    objects: dict[str, bytes] = field(default_factory=dict)

    METADATA_PATH = "/metadata/"


class Blobs(Documented):
    """ "Put Blob" for an identity that may add blobs but not overwrite any."""

    def of_metadata(self, method: str, path: str, headers: Any) -> Answer:
        query = dict(urllib.parse.parse_qsl(path.partition("?")[2]))
        expected = {"api-version": "2018-02-01", "resource": "https://storage.azure.com/", "client_id": "0-1-2"}
        is_right = headers.get("Metadata") == "true" and query == expected
        return reply(200, access_token=self.TOKEN) if is_right else reply(400, error="invalid_request")

    def of_store(self, method: str, path: str, headers: Any, body: bytes) -> Answer:
        if headers.get("Authorization") != f"Bearer {self.TOKEN}" or "x-ms-version" not in headers:
            return Answer(401, "InvalidAuthenticationInfo")
        if method != "PUT" or headers.get("x-ms-blob-type") != "BlockBlob":
            return Answer(400, "MissingRequiredHeader")
        if path in self.objects:
            is_careful = headers.get("If-None-Match") == "*"
            return Answer(409, "BlobAlreadyExists") if is_careful else Answer(403, "AuthorizationPermissionMismatch")
        self.objects[path] = body
        return Answer(201, "")


class Objects(Documented):
    """ "Objects: insert" for roles/storage.objectCreator."""

    METADATA_PATH = "/computeMetadata/"

    def of_metadata(self, method: str, path: str, headers: Any) -> Answer:
        is_right = headers.get("Metadata-Flavor") == "Google" and path.endswith("/service-accounts/default/token")
        return reply(200, access_token=self.TOKEN) if is_right else Answer(403, "")

    def of_store(self, method: str, path: str, headers: Any, body: bytes) -> Answer:
        match = re.fullmatch(r"/upload/storage/v1/b/logs/o\?(.*)", path)
        if method != "POST" or not match or headers.get("Authorization") != f"Bearer {self.TOKEN}":
            return reply(401, error={"code": 401})
        query = dict(urllib.parse.parse_qsl(match[1]))
        if query["name"] in self.objects:
            return reply(
                412 if query.get("ifGenerationMatch") == "0" else 403, error={"message": "storage.objects.delete"}
            )
        self.objects[query["name"]] = body
        return reply(200, name=query["name"])


@pytest.mark.parametrize(("cloud", "kind"), [(Blobs(), "azure"), (Objects(), "gcs")])
def test_azure_and_google_accept_each_name_once(cloud: Documented, kind: str) -> None:
    stop = serve(cloud)
    bucket_settings = {"kind": kind, "name": "logs", "client_id": "0-1-2", "url": cloud.url, "metadata": cloud.metadata}
    try:
        assert bucket.put(bucket_settings, "jaguar/host/1.gz", b"first")
        assert not bucket.put(bucket_settings, "jaguar/host/1.gz", b"second")
        assert list(cloud.objects.values()) == [b"first"]
        cloud.store_fault = Answer(503, "later")
        with pytest.raises(BucketError, match="bucket logs: HTTP 503 later"):
            bucket.put(bucket_settings, "jaguar/host/2.gz", b"third")
    finally:
        stop()
