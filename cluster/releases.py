"""Releases of Kubernetes that this version of Menagerie supports, what belongs to each, and which parts run together.

Sources: kubernetes.io, "Version Skew Policy"; kubeadm's constants of each minor; the CHANGELOGs of 1.35 and 1.36; for
what a Node reports, the kubelet's `nodestatus.VersionInfo`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum

from cluster import versions

_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True)
class Release:
    """A minor version that hosts may run. tested: the patch version whose programs are built and tested here."""

    minor: str
    tested: str


SUPPORTED: Mapping[str, Release] = {
    release.minor: release
    for release in (Release("1.35", versions.KUBERNETES_BEFORE), Release("1.36", versions.KUBERNETES))
}
"""Oldest first. etcd, containerd, CoreDNS, metrics-server and the sandbox image are the same for all of them
(cluster/versions.py), and so is every flag except `EARLY`: flags that 1.36 sets by default, or requires, are also set for
1.35."""


_BETA_POLICIES = {"runtime-config": "admissionregistration.k8s.io/v1beta1=true"}
EARLY: Mapping[str, Mapping[str, str]] = {
    "1.35": {"feature-gates": "MutatingAdmissionPolicy=true", **_BETA_POLICIES},
    "1.36": _BETA_POLICIES,
}
"""Minor -> flags of its API servers for features that we use and that not all releases serve by default.

MutatingAdmissionPolicy is beta and off in 1.35, v1 and on in 1.36 (apiserver, pkg/features/kube_features.go), which stores it as
v1beta1 (kubernetes, default_storage_factory_builder.go): each can read what the other wrote. 1.36 serves v1beta1 too, because an
API server deletes at start the APIService of a version that it doesn't serve (kube-aggregator, autoregister_controller.go), which
during an upgrade would be the older server's."""


ADDED: Mapping[str, tuple[tuple[str, str, str], ...]] = {"1.36": ()}
"""Minor -> (group, version, resource) that it serves and that the minor before, with `EARLY`, serves in no version. A test
compares them. After a downgrade such objects stay in etcd without any effect. The minor before can read all others: a storage
version changes only after the release before knows it ("Kubernetes Deprecation Policy", rule 4b)."""


POD_GROUPS: Mapping[str, str] = {"1.36": "scheduling.k8s.io/v1alpha2", "1.37": "scheduling.k8s.io/v1beta1"}
"""Minor -> group and version of the PodGroups that its scheduler places as a whole. No release serves an older version, so the
objects must be deleted before an upgrade. 1.35 places such pods one by one, so two groups can block each other."""


class Part(StrEnum):
    """Parts whose version depends on that of the API servers."""

    API_SERVER = "kube-apiserver"
    CONTROLLER_MANAGER = "kube-controller-manager"
    SCHEDULER = "kube-scheduler"
    KUBELET = "kubelet"
    KUBE_PROXY = "kube-proxy"


MOST_BEHIND: Mapping[Part, int] = {
    Part.API_SERVER: 1,
    Part.CONTROLLER_MANAGER: 1,
    Part.SCHEDULER: 1,
    Part.KUBELET: 3,
    Part.KUBE_PROXY: 3,
}
"""How many minor versions a part may be behind the newest API server. Only API servers may be newer than the oldest one."""


_CONTAINERD = "containerd://"


@dataclass(frozen=True, order=True)
class NodePrograms:
    """Versions of programs that are only replaced on a drained node. Without the v; "" if the node doesn't report it.

    Each field has the name of the role that installs it.
    """

    kubelet: str = ""
    containerd: str = ""

    def __str__(self) -> str:
        return f"{self.kubelet or 'unknown'} and containerd {self.containerd or 'unknown'}"

    @classmethod
    def beside(cls, kubernetes: str) -> NodePrograms:
        """Return those that this release of Menagerie installs with a version of Kubernetes."""
        return cls(kubernetes, versions.CONTAINERD)

    @classmethod
    def said(cls, kubelet: str, runtime: str) -> NodePrograms:
        """Parse the form of a Node's `nodeInfo`: ``v1.36.4``, ``containerd://2.3.4``.

        If containerd doesn't answer, the kubelet reports ``containerd://Unknown``; before its first report, tables have
        ``<unknown>``.
        """
        known = "://" in runtime and not runtime.endswith("://Unknown")
        return cls(kubelet.removeprefix("v"), runtime.removeprefix(_CONTAINERD).removeprefix("v") if known else "")

    def others(self, target: NodePrograms) -> frozenset[str]:
        """Return the names of programs whose version differs from the target.

        One that isn't reported doesn't count: it may need a repair first.
        """
        ours, theirs = asdict(self), asdict(target)
        return frozenset(name for name, version in ours.items() if version and version != theirs[name])


def numbers(version: str) -> tuple[int, int, int]:
    """Parse ``v1.36.4`` or ``1.36.4`` -> (1, 36, 4). Raises ValueError for anything else."""
    match = _VERSION.fullmatch(version)
    if not match:
        raise ValueError(f'"{version}" isn\'t major.minor.patch')
    major, minor, patch = map(int, match.groups())
    return major, minor, patch


def is_version(version: str) -> bool:
    """Return whether a version has the form of specs: three numbers, without the v."""
    return bool(_VERSION.fullmatch(version)) and not version.startswith("v")


def minor(version: str) -> str:
    """Return the minor version: ``1.36.4`` -> ``1.36``."""
    major, middle, _ = numbers(version)
    return f"{major}.{middle}"


def wrong_skew(part: Part, version: str, api_servers: Collection[str]) -> str:
    """Return why a part of this version may not run with these API servers; "" if it may.

    Patch versions don't matter: the policy is about minor versions.
    """
    own, servers = numbers(version)[:2], sorted({numbers(each)[:2] for each in api_servers})
    if not servers:
        return ""
    oldest, newest = servers[0], servers[-1]
    if part is not Part.API_SERVER and own > oldest:
        return f"{part} {version} is newer than kube-apiserver {_dotted(oldest)}"
    other = oldest if own > newest or own[1] - oldest[1] > newest[1] - own[1] else newest
    if own[0] != other[0]:
        return f"{part} {version} and kube-apiserver {_dotted(other)} are of different major versions"
    apart, most = abs(other[1] - own[1]), MOST_BEHIND[part]
    return (
        f"{part} {version} is {apart} minor versions from kube-apiserver {_dotted(other)}; at most {most}"
        if apart > most
        else ""
    )


def _dotted(parts: tuple[int, ...]) -> str:
    return ".".join(map(str, parts))


def wrong_step(now: str, target: str) -> str:
    """Return why a cluster may not change versions in one step; "" if it may, as for the same version."""
    before, after = numbers(now), numbers(target)
    if before[0] != after[0] or abs(before[1] - after[1]) > 1:
        between = before[1] + (1 if after > before else -1)
        return f"from {now} to {target} skips minor versions; upgrade one at a time, next to {before[0]}.{between}"
    return ""


def is_back(now: str, target: str) -> bool:
    """Return whether `target` is the older version."""
    return numbers(target) < numbers(now)
