"""Where hosts get images. Pure."""

from __future__ import annotations

from cluster.images import by_digest
from cluster.spec import Cluster

_MIRRORED = ("registry.k8s.io/", "docker.io/")


def image(cluster: Cluster, name: str) -> str:
    """By its digest. containerd sends what `artefacts.registry` mirrors there; the rest is asked of it by name, so that pods of users
    still reach those registries themselves."""
    registry = cluster.spec.artefacts.registry
    whole = by_digest(cluster.spec, name)
    return f"{registry}/{whole.partition('/')[2]}" if registry and not name.startswith(_MIRRORED) else whole
