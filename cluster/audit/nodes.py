"""Where pods with powerful tokens run, and which pods have system priority: labels of Nodes, and pods that depend on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from cluster import places
from cluster.allocations import CONTROLLERS_NAMESPACE, SYSTEM_LABEL, SYSTEM_NAMESPACES
from cluster.audit.evidence import Evidence
from cluster.audit.lists import Object, by_lists
from cluster.audit.model import Finding
from cluster.pools import POOL_LABEL, TRUSTED_POOL

_OURS = ("menagerie.dev/", "menagerie/", TRUSTED_POOL)
_OF_SITES = {places.SITE, places.RACK, places.RAILS, places.STORAGE_HOST, places.STORAGE_RACK}
_CSI, _CONTROLLER = "csi", "-controller"
"""Namespace of drivers for volumes, and suffix of their controllers' service accounts."""
_MOST = 1_000_000_000
"""The highest priority that a user-defined PriorityClass can have."""


@by_lists("nodes")
def node_labels_agree(evidence: Evidence, nodes: Iterable[Object]) -> Iterator[Finding]:
    """Compare labels of machines at sites with the spec, and pools of workers in the region with those first seen."""
    for node in nodes:
        name, labels = node["metadata"]["name"], _labels(node)
        expected = evidence.labels.get(name)
        wrong = _of_region(labels) if expected is None else _of_site(labels, expected)
        if wrong:
            yield Finding(f"node {name}", False, "; ".join(wrong))


@by_lists("pods", "nodes")
def controllers_on_their_pool(evidence: Evidence, pods: Iterable[Object], nodes: Iterable[Object]) -> Iterator[Finding]:
    """Check by the label that no kubelet may set."""
    pools = {node["metadata"]["name"]: _labels(node).get(TRUSTED_POOL, "") for node in nodes}
    for pod in pods:
        metadata, node = pod["metadata"], pod["spec"].get("nodeName")
        if _is_powerful(pod) and node and (pool := pools.get(node, "")) not in evidence.controllers:
            where = f"on {node}, which is in {f'pool {pool}' if pool else 'no pool known to the API servers'}"
            yield Finding(f"pod {metadata['namespace']}/{metadata['name']}", False, where)


@by_lists("pods", "namespaces")
def no_foreign_system_priority(
    evidence: Evidence, pods: Iterable[Object], namespaces: Iterable[Object]
) -> Iterator[Finding]:
    free = {each["metadata"]["name"] for each in namespaces if _labels(each).get(SYSTEM_LABEL) == "true"}
    for pod in pods:
        metadata, spec = pod["metadata"], pod["spec"]
        own = str(spec.get("priorityClassName") or "")
        above = own.startswith("system-") or (spec.get("priority") or 0) > _MOST
        if above and metadata["namespace"] not in {*SYSTEM_NAMESPACES, *free}:
            yield Finding(
                f"pod {metadata['namespace']}/{metadata['name']}", False, own or f"priority {spec['priority']}"
            )


def _labels(thing: Object) -> Mapping[str, str]:
    return thing["metadata"].get("labels") or {}


def _of_site(labels: Mapping[str, str], expected: Mapping[str, str]) -> list[str]:
    lacking = [
        f"{key} is {labels.get(key, 'missing')}, not {value}"
        for key, value in sorted(expected.items())
        if labels.get(key) != value
    ]
    return lacking + [
        f"{key} isn't in the spec" for key in sorted(labels) if key.startswith(_OURS) and key not in expected
    ]


def _of_region(labels: Mapping[str, str]) -> list[str]:
    wrong = [f"{key} is only for machines at sites" for key in sorted(_OF_SITES & labels.keys())]
    reported, trusted = labels.get(POOL_LABEL, ""), labels.get(TRUSTED_POOL, "")
    return (
        wrong
        if reported == trusted
        else [*wrong, f"it reports pool {reported or 'none'}, but was first seen in {trusted or 'none'}"]
    )


def _is_powerful(pod: Object) -> bool:
    account, namespace = str(pod["spec"].get("serviceAccountName", "")), pod["metadata"]["namespace"]
    return namespace == CONTROLLERS_NAMESPACE or (namespace == _CSI and account.endswith(_CONTROLLER))
