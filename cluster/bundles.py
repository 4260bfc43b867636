"""The signed list of a bundle: everything that clusters download, with a checksum of each.

A bundle is a tar: `INDEX`, its signature, a bill of materials, and `BLOBS`, where each file is named by its SHA-256. Only
the list is signed; it names the checksum of everything else.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from cluster import shared
from cluster.errors import RefusedError
from cluster.project import FOLDER, ROOT
from cluster.quantities import Sha256

VERSION = 1
INDEX = "bundle.json"
SIGNATURE = "bundle.json.minisig"
MATERIALS = "sbom.cdx.json"
BLOBS = "blobs/sha256/"
PUBLIC_KEYS = "bundle.pub"
"""File in inventories/ with the public keys whose bundles the fleet accepts."""
_SOURCE = r"[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?(/(?!\.{1,2}(/|$))[A-Za-z0-9._~+:@-]+)+"


def collecting(cluster: str, public_keys: Path = ROOT / FOLDER / PUBLIC_KEYS) -> str:
    """Return the command that verifies every checksum of a cluster and writes it down. A fleet's first bundle needs a key."""
    first = "" if public_keys.exists() else " --new-key"
    return f"./menagerie bundle {cluster} --fetch{first} -o {cluster}.bundle"


class BundleError(RefusedError):
    """A bundle, its signature or a key isn't as it must be. Nothing was taken from it."""

    code = "bundle"


class Kind(StrEnum):
    """What an entry is."""

    PROGRAM = "program"
    PLUGIN = "plugin"
    """A provider plugin of Pulumi's engine, for operators' machines."""
    IMAGE = "image"
    """A container image, as OCI content: its manifest or index, and all that this refers to."""
    MANIFEST = "manifest"
    """Objects of Kubernetes that an operator applies: Rook's."""
    BUILT = "built"
    """A program that was built from sources pinned by the checkout, for labs."""
    SYSTEM = "system"
    """The root file system of a lab's hosts, a tar."""
    DEBIAN = "debian"
    """A file of Debian's archive, for machines at sites: a package, or a signed list."""


class Known(StrEnum):
    """What the checksum of an entry was compared with."""

    PUBLISHED = "published"
    """The lists of this checkout."""
    SPEC = "spec"
    """The spec, or the lock next to it."""
    UPSTREAM = "upstream"
    """The project's own list, or its registry, when the bundle was made."""
    PLACE = "place"
    """Nothing: it is that of the file where the bundle was made."""
    SIGNED = "signed"
    """Debian's own signed list, which hosts verify again."""
    BUILD = "build"
    """Nothing: it is a build of your own. A lab's programs are built where the bundle is made, from pinned sources."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Entry(_Part):
    """One program, plugin, image or file of Debian's archive."""

    kind: Kind
    name: str
    version: str
    source: str
    """host/path of a file, or an image with its tag."""
    sha256: Sha256
    """Of the file; of an image's manifest or index."""
    media: str = ""
    """Only of an image: the media type of its manifest or index."""
    needs: tuple[Sha256, ...] = ()
    """Only of an image: everything else that it consists of."""
    clusters: tuple[str, ...]
    """Which clusters need it."""
    known: Known

    @property
    def blobs(self) -> tuple[str, ...]:
        """Return the checksums of all that it consists of."""
        return (self.sha256, *self.needs)

    @property
    def title(self) -> str:
        return f"{self.name} {self.version} ({self.source})"


class Index(_Part):
    """The list."""

    version: int = VERSION
    entries: tuple[Entry, ...]
    sizes: dict[Sha256, int]
    """Checksum of a blob -> its size in bytes."""
    materials: Sha256
    """SHA-256 of the bill of materials."""

    def written(self) -> bytes:
        """Return the list as JSON; the same content gives the same bytes."""
        return (json.dumps(self.model_dump(mode="json"), indent=1, sort_keys=True) + "\n").encode()

    def of(self, cluster: str) -> tuple[Entry, ...]:
        """Return the entries that a cluster needs."""
        return tuple(entry for entry in self.entries if cluster in entry.clusters)

    def title_of(self, sha256: str) -> str:
        """Return the titles of the entries with this blob."""
        return ", ".join(entry.title for entry in self.entries if sha256 in entry.blobs) or sha256

    @property
    def size(self) -> int:
        return sum(self.sizes.values())


def parse(data: bytes, what: str) -> Index:
    """Parse a list whose signature was verified. what: its file. Raises BundleError, or NewerDataError."""
    try:
        document: Any = json.loads(data)
        shared.readable(what, document, VERSION)
        index = Index.model_validate(document)
    except (ValueError, ValidationError) as error:
        first = str(error).splitlines()[0]
        raise BundleError(f"{what} has a list that can't be read: {first}") from None
    _refuse_inconsistent(index, what)
    return index


def _refuse_inconsistent(index: Index, what: str) -> None:
    """Raise BundleError for names that could lead out of a mirror, and for blobs without a size."""
    wrong = [f"{entry.source!r} isn't host/path" for entry in index.entries if not re.fullmatch(_SOURCE, entry.source)]
    listed = {blob for entry in index.entries for blob in entry.blobs}
    wrong += [f"{index.title_of(blob)} has no size" for blob in sorted(listed - index.sizes.keys())]
    wrong += [f"{blob} belongs to no entry" for blob in sorted(index.sizes.keys() - listed)]
    if wrong:
        raise BundleError(f"{what} has a wrong list: " + "; ".join(wrong[:5]))
