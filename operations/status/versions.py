"""Versions that run, beside the spec's and beside each other.

Source: kubernetes.io, "Version Skew Policy": a kubelet may not be newer than the API servers, and up to three minor versions older.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from kubernetes import client

from clients.nodes import programs
from cluster.releases import NodePrograms
from cluster.spec import Cluster
from operations.status.model import Item

OLDER = 3
"""Minor versions that a kubelet may be behind."""


def versions(cluster: Cluster, api: str, nodes: Sequence[client.V1Node]) -> Iterator[Item]:
    """api: ``v1.36.4``; "" where the API server does not say."""
    spec, upgrade = f"v{cluster.spec.kubernetes.version}", f"./menagerie upgrade {cluster.name}"
    same = api == spec
    differs = f"{api or 'unknown'}; the spec says {spec}"
    yield Item("versions", "API servers", same, api if same else differs, "" if same else upgrade)
    found = Counter(node.status.node_info.kubelet_version for node in nodes)
    if not found:
        return
    counted = ", ".join(f"{count} of {version}" for version, count in sorted(found.items()))
    if wrong := sorted(filter(None, (skew(api, version) for version in found))):
        yield Item("versions", "kubelets", False, f"{counted}; {'; '.join(wrong)}", upgrade)
    elif set(found) == {spec}:
        yield Item("versions", "kubelets", True, counted)
    else:
        yield Item("versions", "kubelets", False, f"{counted}; the spec says {spec}", upgrade)
    yield _containerds(cluster, nodes, upgrade)


def _containerds(cluster: Cluster, nodes: Sequence[client.V1Node], upgrade: str) -> Item:
    wanted = NodePrograms.beside(cluster.spec.kubernetes.version)
    found = [programs(node) for node in nodes]
    counts = sorted(Counter(each.containerd or "unknown" for each in found).items())
    counted = ", ".join(f"{count} of {version}" for version, count in counts)
    if any("containerd" in each.others(wanted) for each in found):
        return Item("versions", "containerd", False, f"{counted}; this release places {wanted.containerd}", upgrade)
    return Item("versions", "containerd", True, counted)


def skew(api: str, kubelet: str) -> str:
    """Why a kubelet doesn't go with the API servers; "" where it does, or where a version can't be read."""
    ours, theirs = minor(api), minor(kubelet)
    if ours is None or theirs is None:
        return ""
    if theirs > ours:
        return f"kubelets of {kubelet} are newer than the API servers, which is not supported"
    if theirs[0] == ours[0] and ours[1] - theirs[1] > OLDER:
        return f"kubelets of {kubelet} are more than {OLDER} minor versions behind, which is not supported"
    return ""


def minor(version: str) -> tuple[int, int] | None:
    """``v1.36.4`` -> (1, 36)."""
    found = re.match(r"v?(\d+)\.(\d+)\.", version)
    return (int(found[1]), int(found[2])) if found else None
