"""Finds everything that blocks an upgrade before anything is changed. Reads only."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from kubernetes import client

from clients.access import Access
from clients.kube import Kube
from clients.objects import Place
from clients.paging import models
from clients.rest import Rest
from cluster.releases import ADDED, is_back, minor, numbers
from cluster.spec import Cluster
from operations.backups import stale
from operations.drain import Rules, mark_of, pods_on, refused
from operations.reboot_needs import all_nodes
from operations.status import REGION
from operations.status.read import running
from operations.upgrade import plan as plans
from operations.upgrade import versions
from operations.upgrade.nodes import BY
from operations.upgrade.plan import UpgradePlan

METRIC = "apiserver_requested_deprecated_apis"
_SHOWN = 5
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

BackupAge = Callable[[], float | None]
"""Returns the seconds since the newest backup of etcd main, None if there is none."""


@dataclass(frozen=True)
class PreflightInputs:
    """The inputs of the checks. backup_age: None if the cluster has no backups of main."""

    cluster: Cluster
    access: Access
    plan: UpgradePlan
    rules: Rules
    backup_age: BackupAge | None = None


def findings(look: PreflightInputs) -> list[str]:
    """Return what blocks the upgrade, each with a way out; [] if it may start."""
    api = look.access.api()
    problems = [*plans.wrong(look.plan)]
    # After the start, a failure is no reason to stay between two releases.
    if not look.plan.is_begun and (items := unhealthy(look)):
        listed = "; ".join(f"{name}: {detail}" for name, detail in items.items())
        problems.append(f"the cluster is unhealthy: {listed}; see ./menagerie status {look.cluster.name}")
    problems += _nodes(api, look)
    problems += _budgets(api, look)
    problems += _removed(look.access, look.plan)
    if look.plan.is_back and look.plan.servers:
        problems += _lost(api, look.plan)
    problems += _backup(look)
    return problems


def unhealthy(look: PreflightInputs) -> dict[str, str]:
    """Return item of `status` -> why it is unhealthy. Leaves out what an earlier run caused: continuing fixes that."""
    plan = look.plan
    ours = {node.metadata.name for node in all_nodes(look.access.api()) if (mark := mark_of(node)) and mark.by == BY}
    if plan.is_begun:
        ours |= {name for name in plan.servers if not plan.running.hosts.get(name)}
    items = [item for item in running(look.cluster, look.access) if not item.ok and item.name not in ours]
    if ours:
        # Their counts include pods and nodes on hosts that are out of service.
        items = [item for item in items if item.group != "add-ons" and item.name != REGION]
    return {item.name: item.detail for item in items}


def _nodes(api: client.ApiClient, look: PreflightInputs) -> Iterator[str]:
    """Yield marks of other verbs, and pods that the rules don't let go."""
    concerned = {*look.plan.workers, *look.plan.region}
    for node in all_nodes(api):
        name, mark = node.metadata.name, mark_of(node)
        if mark and mark.by != BY:
            yield f"node {name} has been out of service since {mark.since} ({mark.by}: {mark.why}); wait until that is finished"
        if name in concerned:
            for line in refused(pods_on(api, name), look.rules):
                yield f"node {name}: pod {line}; move or delete it, or use --evict-unmanaged"


def _budgets(api: client.ApiClient, look: PreflightInputs) -> Iterator[str]:
    """Yield budgets of pods on the nodes that allow no eviction even if all pods are healthy: a drain would never end."""
    concerned = {*look.plan.workers, *look.plan.region}
    if not concerned:
        return
    for budget in models(client.PolicyV1Api(api).list_pod_disruption_budget_for_all_namespaces):
        status, meta = budget.status, budget.metadata
        is_known = status and status.expected_pods and status.observed_generation == meta.generation
        if is_known and status.desired_healthy >= status.expected_pods and _nodes_of(api, budget) & concerned:
            yield (
                f"budget {meta.namespace}/{meta.name} never allows an eviction: it requires {status.desired_healthy} of its "
                f"{status.expected_pods} pods; lower minAvailable, raise maxUnavailable, or run one more pod"
            )


def _nodes_of(api: client.ApiClient, budget: client.V1PodDisruptionBudget) -> set[str]:
    """Return the nodes with its pods."""
    selector = budget.spec.selector
    words = [f"{key}={value}" for key, value in (selector.match_labels or {}).items()]
    for expression in selector.match_expressions or ():
        listed = f" ({','.join(expression.values)})" if expression.values else ""
        words.append(
            {"Exists": expression.key, "DoesNotExist": f"!{expression.key}"}.get(
                expression.operator, f"{expression.key} {expression.operator.lower()}{listed}"
            )
        )
    pods = Kube(api).list("Pod", budget.metadata.namespace, labels=",".join(words))
    return {pod["spec"].get("nodeName") for pod in pods}


def _removed(access: Access, plan: UpgradePlan) -> Iterator[str]:
    """Yield APIs that clients have used since the API servers started, and that the target version has removed."""
    for group, version, resource, removed in sorted(set().union(*map(deprecated, versions.metrics(access)))):
        if removed and numbers(f"{removed}.0")[:2] <= numbers(plan.target)[:2]:
            named = f"{resource}.{version}.{group}" if group else f"{resource}.{version}"
            yield (
                f"clients use {named}, which Kubernetes {removed} removes; find them in the audit log "
                '("k8s.io/deprecated": "true") and move them to a newer version of this API'
            )


def _lost(api: client.ApiClient, plan: UpgradePlan) -> Iterator[str]:
    """Yield objects that only the newer release knows."""
    newer = {minor(release_) for release_ in plan.running.servers if is_back(release_, plan.target)} - {
        minor(plan.target)
    }
    for group, version, resource in (release_ for release in sorted(newer) for release_ in ADDED.get(release, ())):
        listed = islice(Rest(api).list(Place(f"{group}/{version}", resource).path()), _SHOWN)
        if names := [item["metadata"]["name"] for item in listed]:
            yield (
                f"Kubernetes {minor(plan.target)} does not have {resource}.{version}.{group}, but there are some: "
                f"{', '.join(names)}; they would stay in etcd without effect. Save them elsewhere and delete them"
            )


def deprecated(metrics: str) -> set[tuple[str, str, str, str]]:
    """Return (group, version, resource, release that removes it or "") of deprecated APIs used since the server started.

    metrics: in Prometheus' text format; the metric's value is 1 if the API was used.
    """
    apis = set()
    for line in metrics.splitlines():
        if line.startswith(f"{METRIC}{{") and line.rpartition(" ")[2] not in ("0", "0.0"):
            labels = dict(_LABEL.findall(line))
            apis.add(tuple(labels.get(name, "") for name in ("group", "version", "resource", "removed_release")))
    return apis


def _backup(look: PreflightInputs) -> Iterator[str]:
    if look.plan.servers and (why := stale(look.cluster.name, look.backup_age)):
        yield why
