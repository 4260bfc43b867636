"""The bucket of the ledger, as `controllers apply` delivers it to the pods: a Secret with three files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from clients.access import Access
from clients.buckets import open_bucket
from cluster.errors import FailedError, RefusedError
from cluster.outputs import BucketOutput
from controllers.bookkeeping.store import LedgerStore
from operations.record.store import USE, RecordStore

BUCKET, KEY, CA = "bucket", "key", "ca"
"""Files: the bucket as in the stack's outputs, the key, and the CA of the bucket's own server."""
TIMEOUT_S = 30


def delivered(access: Access, key: str, field: str = "metering.key") -> Mapping[str, str]:
    """Return file -> its text. key: that the spec names, in `field`; "" for the stack's own. Errors: raises RefusedError."""
    bucket = access.outputs.buckets.get(USE)
    if bucket is None:
        name = access.outputs.cluster
        raise FailedError(f"{name} has no bucket for its ledger yet; run: ./menagerie up {name}", code="ledger")
    if not (key or access.bucket_key):
        raise RefusedError(
            f"pods have no login of the cloud, so {field} of the spec must name the secret with a key of the bucket: "
            "docs/how-to/bill.md",
            code="no-key",
        )
    if key:
        _checked(bucket, key)
    return {BUCKET: bucket.model_dump_json(), KEY: key or access.bucket_key, CA: access.outputs.ca_pem}


def read(folder: Path) -> Mapping[str, str]:
    """Return file -> its text, as delivered. Errors: raises FailedError."""
    try:
        return {name: (folder / name).read_text(encoding="utf-8") for name in (BUCKET, KEY, CA)}
    except OSError as error:
        raise _undelivered(str(error)) from None


def opened(files: Mapping[str, str], may_write: Callable[[], None]) -> LedgerStore:
    """Return the ledger in the bucket that the files name. may_write: see `LedgerStore`. Errors: raises FailedError and RefusedError."""
    try:
        place = BucketOutput.model_validate_json(files[BUCKET])
    except ValueError:
        raise _undelivered(f"{BUCKET} is no bucket") from None
    words = _checked(place, files[KEY])
    if place.kind == "s3":
        objects = open_bucket(place, files[KEY], files[CA], {}, TIMEOUT_S)
    else:
        objects = open_bucket(place, "", files[CA], words, TIMEOUT_S)
    return LedgerStore(RecordStore(objects, f"bucket {place.name}", shared=True), may_write)


def ledger_of(access: Access) -> LedgerStore | None:
    """Return a cluster's ledger for an operator, None if the cluster is older than its bucket."""
    bucket = access.outputs.buckets.get(USE)
    if bucket is None:
        return None
    objects = open_bucket(bucket, access.bucket_key, access.outputs.ca_pem, timeout_s=TIMEOUT_S)
    return LedgerStore(RecordStore(objects, f"bucket {bucket.name}", shared=True))


def _undelivered(why: str) -> FailedError:
    return FailedError(
        f"the ledger's bucket can't be read ({why}); `menagerie controllers apply` delivers it", code="ledger"
    )


def _checked(bucket: BucketOutput, key: str) -> dict[str, str]:
    """Return the key's words. Errors: raises RefusedError if it is not in the form that the kind of bucket needs; never shows it."""
    needed = {
        "s3": ("access_key_id", "secret_access_key"),
        "azure": ("ARM_CLIENT_ID", "ARM_TENANT_ID", "ARM_CLIENT_SECRET"),
        "gcs": ("GOOGLE_CREDENTIALS",),
    }[bucket.kind]
    try:
        words = json.loads(key)
        if isinstance(words, dict) and all(isinstance(words.get(name), str) for name in needed):
            return {name: words[name] for name in needed}
    except ValueError:
        pass
    example = ", ".join(f'"{name}": "…"' for name in needed)
    raise RefusedError(f"the key of the ledger's bucket is not JSON of the form {{{example}}}", code="no-key")
