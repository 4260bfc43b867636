"""Releases of Kubernetes: which this one of Menagerie builds, what belongs to each, and which parts run together.

Sources: kubernetes.io, "Version Skew Policy"; kubeadm's constants of each minor; the CHANGELOGs of 1.35 and 1.36; the
kubelet's `nodestatus.VersionInfo`, for what a Node says.
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
    """A minor version that hosts may run. tested: the patch whose programs are built and tried here."""

    minor: str
    tested: str


SUPPORTED: Mapping[str, Release] = {
    release.minor: release
    for release in (Release("1.35", versions.KUBERNETES_BEFORE), Release("1.36", versions.KUBERNETES))
}
"""Oldest first. etcd, containerd, CoreDNS and the sandbox image are the same beside all of them (cluster/versions.py), and
so is every flag but `EARLY`: what 1.36 made a default, or may no longer be left out, is written out for 1.35 as well."""


_BETA_POLICIES = {"runtime-config": "admissionregistration.k8s.io/v1beta1=true"}
EARLY: Mapping[str, Mapping[str, str]] = {
    "1.35": {"feature-gates": "MutatingAdmissionPolicy=true", **_BETA_POLICIES},
    "1.36": _BETA_POLICIES,
}
"""Minor -> flags of its API servers for what we use and not all releases serve by default. MutatingAdmissionPolicy is beta and off
in 1.35, v1 and on in 1.36 (apiserver, pkg/features/kube_features.go), which stores it as v1beta1 (kubernetes,
default_storage_factory_builder.go): each reads what the other wrote. 1.36 serves v1beta1, too: an API server that starts deletes
the APIService of a version that it does not serve itself (kube-aggregator, autoregister_controller.go), and on the way that
would be the older one's."""


ADDED: Mapping[str, tuple[tuple[str, str, str], ...]] = {"1.36": ()}
"""Minor -> (group, version, resource) that it serves and the one before, with `EARLY`, serves in no version; a test compares them.
On the way back such objects stay in etcd, where nobody sees them or acts on them. All others the one before reads: a storage
version changes only once the release before knows it ("Kubernetes Deprecation Policy", rule 4b)."""


POD_GROUPS: Mapping[str, str] = {"1.36": "scheduling.k8s.io/v1alpha2", "1.37": "scheduling.k8s.io/v1beta1"}
"""Minor -> group and version of the PodGroups that its scheduler places as a whole. Each release serves no older one, so objects of
the one before must be gone before an upgrade. 1.35 places such pods one by one, and two groups can hold each other's hosts."""


class Part(StrEnum):
    """What is bound to the version of the API servers."""

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
"""Minors that a part may be older than the newest API server. But for API servers none may be newer than the oldest."""


_CONTAINERD = "containerd://"


@dataclass(frozen=True, order=True)
class NodePrograms:
    """What a node runs that only a drained node gets another release of. Versions without the v, "" for what it does not say.

    Each has the name of the role that brings it.
    """

    kubelet: str = ""
    containerd: str = ""

    def __str__(self) -> str:
        return f"{self.kubelet or 'unknown'} and containerd {self.containerd or 'unknown'}"

    @classmethod
    def beside(cls, kubernetes: str) -> NodePrograms:
        """Those that this release of Menagerie places beside a version of Kubernetes."""
        return cls(kubernetes, versions.CONTAINERD)

    @classmethod
    def said(cls, kubelet: str, runtime: str) -> NodePrograms:
        """As a Node's `nodeInfo` has them: ``v1.36.4``, ``containerd://2.3.4``.

        While containerd answers no kubelet, that says ``containerd://Unknown``, and before it said anything a table has
        ``<unknown>``.
        """
        known = "://" in runtime and not runtime.endswith("://Unknown")
        return cls(kubelet.removeprefix("v"), runtime.removeprefix(_CONTAINERD).removeprefix("v") if known else "")

    def others(self, wanted: NodePrograms) -> frozenset[str]:
        """The names of those of another release than wanted. One that is not said is none: it may have to be mended first."""
        ours, theirs = asdict(self), asdict(wanted)
        return frozenset(name for name, version in ours.items() if version and version != theirs[name])


def numbers(version: str) -> tuple[int, int, int]:
    """``v1.36.4`` or ``1.36.4`` -> (1, 36, 4). ValueError for what isn't a release."""
    found = _VERSION.fullmatch(version)
    if not found:
        raise ValueError(f'"{version}" isn\'t major.minor.patch')
    major, minor, patch = map(int, found.groups())
    return major, minor, patch


def is_version(version: str) -> bool:
    """Whether it is written as specs write it: all three numbers, without the v."""
    return bool(_VERSION.fullmatch(version)) and not version.startswith("v")


def minor(version: str) -> str:
    """``1.36.4`` -> ``1.36``."""
    major, middle, _ = numbers(version)
    return f"{major}.{middle}"


def wrong_skew(part: Part, version: str, api_servers: Collection[str]) -> str:
    """Why a part of this version may not run beside these API servers, "" where it may.

    Patches don't count: the policy is about minors.
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
        f"{part} {version} is {apart} minors from kube-apiserver {_dotted(other)}; at most {most}"
        if apart > most
        else ""
    )


def _dotted(found: tuple[int, ...]) -> str:
    return ".".join(map(str, found))


def wrong_step(now: str, wanted: str) -> str:
    """Why a cluster may not go from one version to another in one go, "" where it may. The same version may."""
    before, after = numbers(now), numbers(wanted)
    if before[0] != after[0] or abs(before[1] - after[1]) > 1:
        between = before[1] + (1 if after > before else -1)
        return (
            f"from {now} to {wanted} is more than one minor; each must be passed, and the next is {before[0]}.{between}"
        )
    return ""


def is_back(now: str, wanted: str) -> bool:
    """Whether `wanted` is the older one."""
    return numbers(wanted) < numbers(now)
