"""Which mirror an operator names: a folder, a bucket of each cloud, or a registry."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from obstore.store import LocalStore

from clients.buckets import open_bucket
from cluster.errors import RefusedError
from cluster.outputs import BucketOutput
from tools import cache

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_UPLOAD_TIMEOUT_S = 300.0
"""For one part of 5 MiB."""
_REGISTRY = re.compile(r"registry://([A-Za-z0-9.-]+(?::[0-9]{1,5})?(?:/[a-z0-9._/-]+)?)/?")
FORMS = "a folder, s3://BUCKET, gs://BUCKET, azblob://ACCOUNT/CONTAINER, each with a path if you like, registry://HOST:PORT, or cache:"
CACHE = "cache:"
"""This machine's own cache."""


class TargetKind(StrEnum):
    """What takes files in upstream's layout, images, or what a lab is made of."""

    FILES = "files"
    IMAGES = "images"
    CACHE = "the cache"


@dataclass(frozen=True)
class Target:
    """A mirror. place: the folder, URL or registry; prefix: folder of the files in a bucket."""

    kind: TargetKind
    place: str
    prefix: str = ""
    bucket: BucketOutput | None = None

    def open(self) -> ObjectStore:
        """Return the store of a mirror for files. Raises OSError for a folder that can't be created."""
        if self.bucket:
            return open_bucket(self.bucket, timeout_s=_UPLOAD_TIMEOUT_S)
        return LocalStore(self.place, mkdir=True)


def target_of(words: str, environment: Mapping[str, str] = os.environ) -> Target:
    """Parse a target. Raises RefusedError for a form that isn't known."""
    if words == CACHE:
        return Target(TargetKind.CACHE, str(cache.root()))
    scheme, separator, rest = words.partition("://")
    if not separator:
        return Target(TargetKind.FILES, str(Path(words).expanduser().absolute()))
    if match := _REGISTRY.fullmatch(words):
        return Target(TargetKind.IMAGES, match[1])
    parts = rest.strip("/").split("/")
    makers: dict[str, tuple[int, Callable[[], BucketOutput]]] = {
        "s3": (1, lambda: _s3(parts[0], environment)),
        "gs": (1, lambda: BucketOutput(kind="gcs", name=parts[0])),
        "azblob": (2, lambda: BucketOutput(kind="azure", account=parts[0], name=parts[1])),
    }
    needed, make = makers.get(scheme, (0, None))
    if make is None or len(parts) < needed or not all(parts[:needed]):
        raise RefusedError(f"{words!r} is no mirror; name {FORMS}", code="mirror-target")
    return Target(TargetKind.FILES, words.rstrip("/"), "/".join(parts[needed:]), make())


def _s3(name: str, environment: Mapping[str, str]) -> BucketOutput:
    """Return a bucket of AWS, or of the S3 server that AWS's own variables name."""
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or ""
    return BucketOutput(kind="s3", name=name, region=region, endpoint=endpoint or None)
