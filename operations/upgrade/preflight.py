"""What stands in the way of an upgrade, all at once, before anything is touched. Reads only."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kubernetes import client

from clients.access import API_TIMEOUT_S, Access
from cluster.releases import ADDED, is_back, minor, numbers
from cluster.spec import Cluster
from operations.backups import stale
from operations.drain import Rules, mark_of, pods_on, refused
from operations.reboot_needs import all_nodes
from operations.status import REGION, running
from operations.upgrade import plan as plans
from operations.upgrade import versions
from operations.upgrade.nodes import BY
from operations.upgrade.plan import Plan

METRIC = "apiserver_requested_deprecated_apis"
_SHOWN = 5
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

BackupAge = Callable[[], float | None]
"""Seconds since the newest backup of etcd main, None where there is none."""


@dataclass(frozen=True)
class Look:
    """What the findings are about. backup_age: None where nothing here keeps backups."""

    cluster: Cluster
    access: Access
    plan: Plan
    rules: Rules
    backup_age: BackupAge | None = None


def findings(look: Look) -> list[str]:
    """Each with a way out; none where the upgrade may begin."""
    api = look.access.api()
    found = [*plans.wrong(look.plan)]
    # Once begun, what died meanwhile is no reason to stay between two releases.
    if not look.plan.is_begun and (items := unwell(look)):
        listed = "; ".join(f"{name}: {detail}" for name, detail in items.items())
        found.append(f"not all is well: {listed}; see ./menagerie status {look.cluster.name}")
    found += _nodes(api, look)
    found += _budgets(api, look)
    found += _removed(look.access, look.plan)
    if look.plan.is_back and look.plan.servers:
        found += _lost(api, look.plan)
    found += _backup(look)
    return found


def unwell(look: Look) -> dict[str, str]:
    """Item of `status` -> why it is not well, but for what an earlier run left so: going on is how that is mended."""
    plan = look.plan
    ours = {node.metadata.name for node in all_nodes(look.access.api()) if (mark := mark_of(node)) and mark.by == BY}
    if plan.is_begun:
        ours |= {name for name in plan.servers if not plan.running.hosts.get(name)}
    items = [item for item in running(look.cluster, look.access) if not item.ok and item.name not in ours]
    if ours:
        # They count pods and nodes that are out of service with the hosts.
        items = [item for item in items if item.group != "add-ons" and item.name != REGION]
    return {item.name: item.detail for item in items}


def _nodes(api: client.ApiClient, look: Look) -> Iterator[str]:
    """Marks of others, and pods that no rule lets go."""
    concerned = {*look.plan.workers, *look.plan.region}
    for node in all_nodes(api):
        name, mark = node.metadata.name, mark_of(node)
        if mark and mark.by != BY:
            yield f"node {name} is out of service by {mark.by} since {mark.since}: {mark.why}; let that end first"
        if name in concerned:
            for line in refused(pods_on(api, name), look.rules):
                yield f"node {name}: pod {line}; move or delete it, or say --evict-unmanaged"


def _budgets(api: client.ApiClient, look: Look) -> Iterator[str]:
    """Budgets of pods on the nodes that let none go although all are well: a drain would wait for ever."""
    concerned = {*look.plan.workers, *look.plan.region}
    if not concerned:
        return
    listed = client.PolicyV1Api(api).list_pod_disruption_budget_for_all_namespaces(_request_timeout=API_TIMEOUT_S)
    for budget in listed.items:
        status, meta = budget.status, budget.metadata
        known = status and status.expected_pods and status.observed_generation == meta.generation
        if known and status.desired_healthy >= status.expected_pods and _nodes_of(api, budget) & concerned:
            yield (
                f"budget {meta.namespace}/{meta.name} lets none of its {status.expected_pods} pods go, ever: it wants "
                f"{status.desired_healthy}; lower minAvailable, raise maxUnavailable, or run one pod more"
            )


def _nodes_of(api: client.ApiClient, budget: client.V1PodDisruptionBudget) -> set[str]:
    """Where its pods are."""
    own = budget.spec.selector
    words = [f"{key}={value}" for key, value in (own.match_labels or {}).items()]
    for each in own.match_expressions or ():
        listed = f" ({','.join(each.values)})" if each.values else ""
        words.append(
            {"Exists": each.key, "DoesNotExist": f"!{each.key}"}.get(
                each.operator, f"{each.key} {each.operator.lower()}{listed}"
            )
        )
    found = client.CoreV1Api(api).list_namespaced_pod(
        budget.metadata.namespace, label_selector=",".join(words), _request_timeout=API_TIMEOUT_S
    )
    return {pod.spec.node_name for pod in found.items}


def _removed(access: Access, plan: Plan) -> Iterator[str]:
    """APIs that clients have asked for since the API servers started, and that the wanted version has no more."""
    for group, version, resource, removed in sorted(set().union(*map(deprecated, versions.metrics(access)))):
        if removed and numbers(f"{removed}.0")[:2] <= numbers(plan.wanted)[:2]:
            named = f"{resource}.{version}.{group}" if group else f"{resource}.{version}"
            yield (
                f"clients ask for {named}, which Kubernetes {removed} removes; find who in the audit log "
                '("k8s.io/deprecated": "true") and move them to a newer version of it'
            )


def _lost(api: client.ApiClient, plan: Plan) -> Iterator[str]:
    """Objects that only the newer release knows."""
    newer = {minor(each) for each in plan.running.servers if is_back(each, plan.wanted)} - {minor(plan.wanted)}
    for group, version, resource in (each for release in sorted(newer) for each in ADDED.get(release, ())):
        listed = client.CustomObjectsApi(api).list_cluster_custom_object(
            group, version, resource, limit=_SHOWN, _request_timeout=API_TIMEOUT_S
        )
        if names := [item["metadata"]["name"] for item in listed["items"]]:
            yield (
                f"Kubernetes {minor(plan.wanted)} does not know {resource}.{version}.{group}, and there are some: "
                f"{', '.join(names)}; they would stay in etcd and do nothing. Keep them elsewhere and delete them"
            )


def deprecated(metrics: str) -> set[tuple[str, str, str, str]]:
    """(group, version, resource, release that removes it, or "") of what was asked for since the server started.

    metrics: Prometheus' text, of which the metric's values are 1 where it was asked for.
    """
    found = set()
    for line in metrics.splitlines():
        if line.startswith(f"{METRIC}{{") and line.rpartition(" ")[2] not in ("0", "0.0"):
            labels = dict(_LABEL.findall(line))
            found.add(tuple(labels.get(name, "") for name in ("group", "version", "resource", "removed_release")))
    return found


def _backup(look: Look) -> Iterator[str]:
    if look.plan.servers and (why := stale(look.cluster.name, look.backup_age)):
        yield why
