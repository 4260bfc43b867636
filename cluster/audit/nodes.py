"""Where pods with powerful tokens may run, and who goes before all others: labels of Nodes, and pods that go by them."""

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
"""The namespace of volumes' drivers, and how accounts of their controllers end."""
_MOST = 1_000_000_000
"""The highest priority of a class that anybody can make."""


@by_lists("nodes")
def node_labels_agree(evidence: Evidence, nodes: Iterable[Object]) -> Iterator[Finding]:
    """Of machines at sites with the spec; of workers in the region, that their pool is the one that they were seen with first."""
    for node in nodes:
        name, labels = node["metadata"]["name"], _labels(node)
        given = evidence.labels.get(name)
        wrong = _of_region(labels) if given is None else _of_site(labels, given)
        if wrong:
            yield Finding(f"node {name}", False, "; ".join(wrong))


@by_lists("pods", "nodes")
def controllers_on_their_pool(evidence: Evidence, pods: Iterable[Object], nodes: Iterable[Object]) -> Iterator[Finding]:
    """By the label that no kubelet may set."""
    pools = {node["metadata"]["name"]: _labels(node).get(TRUSTED_POOL, "") for node in nodes}
    for pod in pods:
        metadata, node = pod["metadata"], pod["spec"].get("nodeName")
        if _is_powerful(pod) and node and (pool := pools.get(node, "")) not in evidence.controllers:
            where = f"on {node}, which is of {f'pool {pool}' if pool else 'no pool that the API servers know'}"
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


def _of_site(labels: Mapping[str, str], given: Mapping[str, str]) -> list[str]:
    lacking = [
        f"{key} is {labels.get(key, 'not there')}, not {value}"
        for key, value in sorted(given.items())
        if labels.get(key) != value
    ]
    return lacking + [
        f"{key} is not the spec's" for key in sorted(labels) if key.startswith(_OURS) and key not in given
    ]


def _of_region(labels: Mapping[str, str]) -> list[str]:
    wrong = [f"{key} is only for machines at sites" for key in sorted(_OF_SITES & labels.keys())]
    said, known = labels.get(POOL_LABEL, ""), labels.get(TRUSTED_POOL, "")
    return (
        wrong if said == known else [*wrong, f"it says pool {said or 'none'}, and was seen first as {known or 'none'}"]
    )


def _is_powerful(pod: Object) -> bool:
    account, namespace = str(pod["spec"].get("serviceAccountName", "")), pod["metadata"]["namespace"]
    return namespace == CONTROLLERS_NAMESPACE or (namespace == _CSI and account.endswith(_CONTROLLER))
