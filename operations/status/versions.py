"""Running versions, compared with the spec and with each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kubernetes import client

from clients.nodes import programs
from cluster.releases import NodePrograms, Part, wrong_skew
from cluster.spec import Cluster
from operations.status.model import StatusItem


def versions(cluster: Cluster, api: str, nodes: Sequence[client.V1Node]) -> Iterator[StatusItem]:
    """Yield the items. api: ``v1.36.4``; "" if the API server does not report it."""
    spec, upgrade = f"v{cluster.spec.kubernetes.version}", f"./menagerie upgrade {cluster.name}"
    same = api == spec
    differs = f"{api or 'unknown'}; the spec has {spec}"
    yield StatusItem("versions", "API servers", same, api if same else differs, "" if same else upgrade)
    kubelets = Counter(node.status.node_info.kubelet_version for node in nodes)
    if not kubelets:
        return
    counted = ", ".join(f"{count} of {version}" for version, count in sorted(kubelets.items()))
    if skews := sorted(filter(None, (skew(api, version) for version in kubelets))):
        yield StatusItem("versions", "kubelets", False, f"{counted}; {'; '.join(skews)}", upgrade)
    elif set(kubelets) == {spec}:
        yield StatusItem("versions", "kubelets", True, counted)
    else:
        yield StatusItem("versions", "kubelets", False, f"{counted}; the spec has {spec}", upgrade)
    yield _containerds(cluster, nodes, upgrade)


def _containerds(cluster: Cluster, nodes: Sequence[client.V1Node], upgrade: str) -> StatusItem:
    expected = NodePrograms.beside(cluster.spec.kubernetes.version)
    on_nodes = [programs(node) for node in nodes]
    counts = sorted(Counter(node_programs.containerd or "unknown" for node_programs in on_nodes).items())
    counted = ", ".join(f"{count} of {version}" for version, count in counts)
    if any("containerd" in node_programs.others(expected) for node_programs in on_nodes):
        return StatusItem(
            "versions", "containerd", False, f"{counted}; this release installs {expected.containerd}", upgrade
        )
    return StatusItem("versions", "containerd", True, counted)


def skew(api: str, kubelet: str) -> str:
    """Return why a kubelet violates the version skew policy; "" if it does not, or if a version can't be parsed."""
    try:
        return wrong_skew(Part.KUBELET, kubelet, [api])
    except ValueError:
        return ""
