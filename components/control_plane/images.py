"""Image references, through the cluster's registry if it has one. Pure."""

from __future__ import annotations

from cluster.images import by_digest
from cluster.spec import Cluster

_MIRRORED = ("registry.k8s.io/", "docker.io/")


def image(cluster: Cluster, name: str) -> str:
    """Return the reference of an image, by digest.

    For the registries that `artefacts.registry` mirrors, containerd redirects pulls there. Images of other registries name
    `artefacts.registry` itself, so that containerd need not redirect those registries for users' pods.
    """
    registry = cluster.spec.artefacts.registry
    reference = by_digest(cluster.spec, name)
    return f"{registry}/{reference.partition('/')[2]}" if registry and not name.startswith(_MIRRORED) else reference
