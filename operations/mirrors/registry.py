"""A registry that takes a bundle's images."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from cluster.bundles import Entry
from operations.bundles.crane import Crane, CraneError
from operations.bundles.opened import OpenBundle


class RegistryTarget:
    """host:port, perhaps with a path below which all repositories are. Methods raise CraneError."""

    def __init__(self, place: str, say: Callable[[str], None]) -> None:
        self._place = place
        self._crane = Crane(say)

    def _reference(self, entry: Entry) -> str:
        return f"{self._place}/{entry.source.partition('/')[2]}"

    def has(self, entry: Entry, bundle: OpenBundle) -> bool:
        """Return whether the tag leads to the bundle's image. A registry has a manifest only with all that it names."""
        del bundle
        try:
            return self._crane("digest", self._reference(entry)) == f"sha256:{entry.sha256}"
        except CraneError as error:
            if error.absent:
                return False
            raise

    def take(self, entry: Entry, bundle: OpenBundle, work: Path) -> None:
        """Push an image, each part verified before. crane uploads only parts that the registry lacks."""
        blobs = work / "blobs" / "sha256"
        blobs.mkdir(parents=True)
        for blob in entry.blobs:
            bundle.extract(blob, blobs / blob)
        size = bundle.index.sizes[entry.sha256]
        root = {"mediaType": entry.media, "digest": f"sha256:{entry.sha256}", "size": size}
        (work / "oci-layout").write_text(json.dumps({"imageLayoutVersion": "1.0.0"}))
        (work / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [root]}))
        self._crane("push", str(work), self._reference(entry))
