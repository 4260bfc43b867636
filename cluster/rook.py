"""Rook's release, for clusters with Ceph: manifests that an operator applies once, and the images that these start.

Nothing here is downloaded by a host: `bundle` carries it to sites without internet.
"""

from __future__ import annotations

from types import MappingProxyType

from cluster import images, versions
from cluster.artefacts import Artefact
from cluster.spec import ClusterSpec

_AT = f"raw.githubusercontent.com/rook/rook/v{versions.ROOK}/deploy/examples"
_MANIFESTS = MappingProxyType(
    {
        "crds.yaml": "7fa7462d44b35d636703a03a88120030692a06a05ac91ec253200cb4ae8c37cf",
        "common.yaml": "2d59b3093446dcf7dd69c73ebaef2d41e8cdfd14af564c2e885d49ab8d190457",
        "csi-operator.yaml": "de0bf9160c8370220353d7140a4b60ee6d4b8eda5e260f395fd00cbdc1059ffb",
        "operator.yaml": "c69bb7309b6dfc34a1eeab658a1f9c825c7d156fb26dc1a6a824f6a9735761a4",
    }
)
"""In the order of "Quickstart" of Rook. SHA-256 of the files in the Go module of that version, which go.sum pins."""
_IMAGES = (
    f"docker.io/rook/ceph:v{versions.ROOK}",
    "quay.io/cephcsi/ceph-csi-operator:v1.0.4",
    "quay.io/cephcsi/cephcsi:v3.17.0",
    "quay.io/csiaddons/k8s-sidecar:v0.14.0",
    images.sidecar("csi-attacher", "4.12.0"),
    images.sidecar("csi-node-driver-registrar", "2.17.0"),
    images.sidecar("csi-provisioner", "6.2.0"),
    images.sidecar("csi-resizer", "2.1.0"),
    images.sidecar("csi-snapshotter", "8.5.0"),
)
"""deploy/examples/images.txt of that version, without Ceph's own image (`cluster.images`) and without those for COSI."""


def published() -> dict[str, str]:
    """Return host/path of each manifest -> its SHA-256."""
    return {f"{_AT}/{name}": sha256 for name, sha256 in _MANIFESTS.items()}


def manifests(spec: ClusterSpec) -> tuple[Artefact, ...]:
    """Return the manifests that the cluster needs."""
    return tuple(Artefact(f"rook {name}", versions.ROOK, f"{_AT}/{name}") for name in _MANIFESTS if _has_ceph(spec))


def pulled(spec: ClusterSpec) -> tuple[Artefact, ...]:
    """Return the images that the manifests start, by the operator's own configuration."""
    return tuple(images.artefact(name) for name in _IMAGES if _has_ceph(spec))


def _has_ceph(spec: ClusterSpec) -> bool:
    return any(site.ceph for site in spec.sites.values())
