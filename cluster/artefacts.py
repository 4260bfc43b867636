"""Downloads by URL and checksum, in the layout of upstream sites or of a mirror.

A mirror keeps the upstream host name as the first folder: ``<mirror>/dl.k8s.io/release/...``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cluster import versions

ARCH = "amd64"
KUBERNETES_PROGRAMS = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kubeadm",
    "kubectl",
)
"""Programs whose version is that of Kubernetes."""


@dataclass(frozen=True, order=True)
class Artefact:
    """One file of an upstream download site. `source` is host/path, without a scheme."""

    name: str
    version: str
    source: str


def _kubernetes(program: str, version: str) -> Artefact:
    return Artefact(program, version, f"dl.k8s.io/release/v{version}/bin/linux/{ARCH}/{program}")


def _github(name: str, version: str, repository: str, file: str) -> Artefact:
    return Artefact(name, version, f"github.com/{repository}/releases/download/v{version}/{file}")


def catalogue(kubernetes: str = versions.KUBERNETES) -> dict[str, Artefact]:
    """Return the artefact of each program as upstream publishes it.

    etcd, containerd, cni-plugins, crictl and node-exporter are .tar.gz archives, restic is a binary in bzip2; the others
    are plain binaries.
    """
    v = versions
    return {program: _kubernetes(program, kubernetes) for program in KUBERNETES_PROGRAMS} | {
        "etcd": _github("etcd", v.ETCD, "etcd-io/etcd", f"etcd-v{v.ETCD}-linux-{ARCH}.tar.gz"),
        "containerd": _github(
            "containerd", v.CONTAINERD, "containerd/containerd", f"containerd-{v.CONTAINERD}-linux-{ARCH}.tar.gz"
        ),
        "runc": _github("runc", v.RUNC, "opencontainers/runc", f"runc.{ARCH}"),
        "cni-plugins": _github(
            "cni-plugins",
            v.CNI_PLUGINS,
            "containernetworking/plugins",
            f"cni-plugins-linux-{ARCH}-v{v.CNI_PLUGINS}.tgz",
        ),
        "crictl": _github("crictl", v.CRICTL, "kubernetes-sigs/cri-tools", f"crictl-v{v.CRICTL}-linux-{ARCH}.tar.gz"),
        "flanneld": _github("flanneld", v.FLANNEL, "flannel-io/flannel", f"flanneld-{ARCH}"),
        "konnectivity-server": _github(
            "konnectivity-server",
            v.KONNECTIVITY,
            "kubernetes-sigs/apiserver-network-proxy",
            f"proxy-server-linux-{ARCH}",
        ),
        "node-exporter": _github(
            "node-exporter",
            v.NODE_EXPORTER,
            "prometheus/node_exporter",
            f"node_exporter-{v.NODE_EXPORTER}.linux-{ARCH}.tar.gz",
        ),
        "restic": _github("restic", v.RESTIC, "restic/restic", f"restic_{v.RESTIC}_linux_{ARCH}.bz2"),
    }


@dataclass(frozen=True)
class ArtefactSource:
    """Where hosts download from, and the checksum of each file.

    mirror: base URL, or None for the upstream sites over https.
    sha256: `Artefact.source` -> hex digest.
    registry: host:port of a mirror of the image registries, or None for the upstream ones.
    """

    mirror: str | None
    sha256: Mapping[str, str]
    registry: str | None = None

    def url(self, artefact: Artefact) -> str:
        return f"{self.mirror}/{artefact.source}" if self.mirror else f"https://{artefact.source}"

    def checksum(self, artefact: Artefact) -> str:
        """Return the SHA-256 of the file, in hex. Raises KeyError with the file's name if it isn't known."""
        try:
            return self.sha256[artefact.source]
        except KeyError:
            raise KeyError(
                f"the provider has no checksum for {artefact.source}, without which no host accepts it"
            ) from None
