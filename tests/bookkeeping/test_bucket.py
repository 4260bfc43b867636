"""The files with the ledger's bucket and key, as `controllers apply` delivers them and a pod reads them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from clients.access import Access
from cluster.errors import FailedError, RefusedError
from cluster.outputs import BucketOutput
from cluster.spec import Cluster
from controllers.bookkeeping import bucket
from controllers.program.work import Metering
from tests.operations.conftest import outputs

S3 = json.dumps({"access_key_id": "a", "secret_access_key": "b-secret"})
AZURE = json.dumps({"ARM_CLIENT_ID": "a", "ARM_TENANT_ID": "b", "ARM_CLIENT_SECRET": "c-secret"})
GOOGLE = json.dumps({"GOOGLE_CREDENTIALS": "{}"})


def access(kind: str = "s3", own: str = "") -> Access:
    records = BucketOutput(kind=kind, name="records", account="account", region="us-east-1")  # type: ignore[arg-type]
    return Access(outputs().model_copy(update={"buckets": {"records": records}}), "", "", "", "", "", bucket_key=own)


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(("kind", "key"), [("s3", S3), ("azure", AZURE)])
def test_a_pod_opens_the_bucket_with_the_key_of_the_spec(tmp_path: Path, kind: str, key: str) -> None:
    files = dict(bucket.delivered(access(kind), key))
    assert set(files) == {"bucket", "key", "ca"}
    assert bucket.read(written(tmp_path, files)) == files
    assert bucket.opened(files, lambda: None)


def test_a_lab_delivers_the_stacks_own_key(tmp_path: Path) -> None:
    assert bucket.delivered(access(own=S3), "")["key"] == S3


def test_without_a_key_or_a_bucket_nothing_is_delivered() -> None:
    with pytest.raises(RefusedError, match=r"metering\.key of the spec must name the secret"):
        bucket.delivered(access(), "")
    bare = Access(outputs().model_copy(update={"buckets": {}}), "", "", "", "", "", bucket_key=S3)
    with pytest.raises(FailedError, match="has no bucket for its ledger yet; run: ./menagerie up"):
        bucket.delivered(bare, "")


@pytest.mark.parametrize(
    ("kind", "key"), [("s3", "b-secret"), ("s3", AZURE), ("azure", S3), ("gcs", "[]"), ("s3", '{"access_key_id": 1}')]
)
def test_a_key_in_another_form_is_refused_and_never_shown(kind: str, key: str) -> None:
    with pytest.raises(RefusedError, match="not JSON of the form") as refused:
        bucket.delivered(access(kind), key)
    assert 'secret"' not in str(refused.value).replace('secret_access_key"', "").replace('SECRET"', "")
    assert "b-secret" not in str(refused.value)
    assert "c-secret" not in str(refused.value)


def test_files_that_are_missing_or_spoiled_say_what_delivers_them(tmp_path: Path) -> None:
    with pytest.raises(FailedError, match="`menagerie controllers apply` delivers it"):
        bucket.read(tmp_path)
    with pytest.raises(FailedError, match="`menagerie controllers apply` delivers it"):
        bucket.opened({"bucket": "{", "key": S3, "ca": ""}, lambda: None)


def test_a_replaced_key_is_used_and_what_waits_is_kept(tmp_path: Path, build: Callable[..., Cluster]) -> None:
    settings = build({"tenancy": {"directory": {"file": "people.yaml"}}}).spec.tenancy
    work = Metering(tmp_path / "cluster.yaml", tmp_path, SimpleNamespace(api=lambda: None))  # type: ignore[arg-type]
    files = dict(bucket.delivered(access(), S3))
    first = work._keep(settings, files)
    store = first.store
    assert work._keep(settings, files).store is store
    again = work._keep(settings, {**files, "key": S3.replace("b-secret", "c-secret")})
    assert again is first
    assert again.store is not store
