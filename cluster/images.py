"""Container images that a cluster's nodes pull, and the digest of each.

Anybody who may push can move a tag, and a mirror without TLS may answer with anything; containerd verifies a digest
against every byte. Published digests are in images.yaml, others in the lock that `bundle` writes or the spec's
`artefacts.sha256`, with the checksums of programs, as ``crane digest IMAGE`` prints them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from cluster import hardware, versions
from cluster.artefacts import Artefact
from cluster.document import parse
from cluster.pools import Pool
from cluster.spec import Cloud, ClusterSpec
from cluster.storage import has_block, has_file

_FILE = Path(__file__).with_name("images.yaml")
PAUSE = f"registry.k8s.io/pause:{versions.PAUSE}"
AGENT = f"registry.k8s.io/kas-network-proxy/proxy-agent:v{versions.KONNECTIVITY}"
COREDNS = f"registry.k8s.io/coredns/coredns:v{versions.COREDNS}"
METRICS_SERVER = f"registry.k8s.io/metrics-server/metrics-server:v{versions.METRICS_SERVER}"
BUSYBOX = f"docker.io/library/busybox:{versions.BUSYBOX}"
DEVICE_PLUGIN = f"nvcr.io/nvidia/k8s-device-plugin:v{versions.NVIDIA_DEVICE_PLUGIN}"
EXPORTER = f"nvcr.io/nvidia/k8s/dcgm-exporter:{versions.DCGM_EXPORTER}"
CEPH = f"quay.io/ceph/ceph:v{versions.CEPH}"
EBS = f"public.ecr.aws/ebs-csi-driver/aws-ebs-csi-driver:v{versions.AWS_EBS_CSI}"
EFS = f"public.ecr.aws/efs-csi-driver/amazon/aws-efs-csi-driver:v{versions.AWS_EFS_CSI}"
AZURE_DISK = f"mcr.microsoft.com/oss/v2/kubernetes-csi/azuredisk-csi:v{versions.AZURE_DISK_CSI}"
AZURE_FILE = f"mcr.microsoft.com/oss/v2/kubernetes-csi/azurefile-csi:v{versions.AZURE_FILE_CSI}"
_GCP = "registry.k8s.io/cloud-provider-gcp"
PERSISTENT_DISK = f"{_GCP}/gcp-compute-persistent-disk-csi-driver:v{versions.GCP_PD_CSI}"
FILESTORE = f"{_GCP}/gcp-filestore-csi-driver:v{versions.GCP_FILESTORE_CSI}"
_DRIVERS = {
    Cloud.AWS: (EBS, EFS),
    Cloud.AZURE: (AZURE_DISK, AZURE_FILE),
    Cloud.GCP: (PERSISTENT_DISK, FILESTORE),
}
"""Cloud -> drivers for its disks and for its shared file systems."""


def sidecar(name: str, version: str) -> str:
    """Return the image of a sidecar container for a driver of volumes."""
    return f"registry.k8s.io/sig-storage/{name}:v{version}"


_SIDECARS = (
    sidecar("csi-provisioner", versions.CSI_PROVISIONER),
    sidecar("csi-attacher", versions.CSI_ATTACHER),
    sidecar("csi-resizer", versions.CSI_RESIZER),
    sidecar("csi-node-driver-registrar", versions.CSI_REGISTRAR),
    sidecar("livenessprobe", versions.CSI_LIVENESS),
)


def kube_proxy(version: str) -> str:
    """Return kube-proxy's image for a release of Kubernetes, as kubeadm names it."""
    return f"registry.k8s.io/kube-proxy:v{version}"


@cache
def published() -> dict[str, str]:
    """Return a mapping: image with its tag -> SHA-256 of its index."""
    return dict(parse(_FILE.read_text(encoding="utf-8"), _FILE.name).data)


def pulled(spec: ClusterSpec) -> tuple[Artefact, ...]:
    """Return all images that nodes pull for Menagerie itself. Empty in a lab, whose registry has images built here."""
    cloud = spec.control_plane.cloud
    if cloud is Cloud.LAB:
        return ()
    names = [PAUSE, AGENT, COREDNS, METRICS_SERVER, kube_proxy(spec.kubernetes.version), BUSYBOX]
    if any(_runs_gpus(cloud, pool) for pool in spec.pools.values()):
        names += [DEVICE_PLUGIN, EXPORTER]
    block, file = _DRIVERS[cloud]
    drivers = [*([block] if has_block(spec) else ()), *([file] if has_file(spec) else ())]
    names += [*drivers, *(_SIDECARS if drivers else ())]
    names += [CEPH] if any(site.ceph for site in spec.sites.values()) else []
    return tuple(artefact(name) for name in names)


def artefact(name: str) -> Artefact:
    """Return an image, by its name with the tag."""
    repository, _, tag = name.rpartition(":")
    return Artefact(repository.rpartition("/")[2], tag, name)


def _runs_gpus(cloud: Cloud, pool: Pool) -> bool:
    """Return whether a pool runs GPUs. False for an unknown kind of machine, which INV-011 reports."""
    try:
        return hardware.runs_gpus(cloud, pool)
    except KeyError:
        return False


def is_image(artefact: Artefact) -> bool:
    """Return whether an artefact is pulled as an image rather than downloaded: its name ends in a tag."""
    return ":" in artefact.source.rpartition("/")[2]


def by_digest(spec: ClusterSpec, name: str) -> str:
    """Return ``repository:tag@sha256:...``; in a lab just the name. Raises KeyError if the digest isn't known."""
    if spec.control_plane.cloud is Cloud.LAB:
        return name
    digests = {**published(), **spec.artefacts.sha256, **spec.artefacts.own_builds}
    if name not in digests:
        raise KeyError(
            f"the digest of {name} isn't known, and nodes don't pull by tag; `bundle` writes it next to the spec"
        )
    return f"{name}@sha256:{digests[name]}"
