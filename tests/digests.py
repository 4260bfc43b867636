"""Stand-ins for the digests that an operator gives: of images that nobody's published list has."""

from __future__ import annotations

import hashlib

from cluster import images
from cluster.spec import ClusterSpec


def with_digests(spec: ClusterSpec) -> ClusterSpec:
    """The spec with one for each image that lacks it."""
    known = {**images.published(), **spec.artefacts.sha256}
    missing = {
        each.source: hashlib.sha256(each.source.encode()).hexdigest()
        for each in images.pulled(spec)
        if each.source not in known
    }
    own = spec.artefacts.model_copy(update={"sha256": {**spec.artefacts.sha256, **missing}})
    return spec.model_copy(update={"artefacts": own})
