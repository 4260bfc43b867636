"""Status of add-ons: name resolution, proxies, metrics, drivers for volumes and GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubernetes import client

from clients.paging import models
from cluster.spec import Cluster
from components.control_plane import csi, dns, gpu, konnectivity, metrics
from operations.status import model
from operations.status.model import StatusItem, kubectl

ADDONS = (dns.NAME, konnectivity.AGENT, "kube-proxy", metrics.NAME)
"""Add-ons in every cluster. The last name is kubeadm's."""


def addons(cluster: Cluster, api: client.ApiClient) -> Iterator[StatusItem]:
    drivers = csi.workloads(cluster)
    workloads = _workloads(api, "kube-system") | (_workloads(api, csi.NAMESPACE) if drivers else {})
    for name in sorted({*ADDONS, *drivers, *gpu.workloads(cluster), *workloads}):
        if name not in workloads:
            detail = "missing; an API-server host creates it again at boot"
            yield StatusItem("add-ons", name, False, detail, f"./menagerie up {cluster.name}")
            continue
        thing, desired, ready = workloads[name]
        # The counts are for this generation only if the controller has observed it.
        is_observed = (thing.status.observed_generation or 0) >= thing.metadata.generation
        ok = is_observed and (ready or 0) == (desired or 0) and bool(desired or name not in ADDONS)
        detail = f"{ready or 0} of {desired or 0} pods ready" + (
            "" if is_observed else ", not yet counted after a change"
        )
        pods = kubectl(cluster.name, f"-n {thing.metadata.namespace or 'kube-system'} get pods -o wide")
        yield StatusItem("add-ons", name, ok, detail, "" if ok else pods)


def _workloads(api: client.ApiClient, namespace: str) -> dict[str, tuple[Any, int | None, int | None]]:
    """Return name -> (object, desired pods, ready pods)."""
    apps = client.AppsV1Api(api)
    daemons = models(apps.list_namespaced_daemon_set, namespace, timeout_s=model.ANSWER_S)
    deployments = models(apps.list_namespaced_deployment, namespace, timeout_s=model.ANSWER_S)
    return {
        **{d.metadata.name: (d, d.status.desired_number_scheduled, d.status.number_ready) for d in daemons},
        **{d.metadata.name: (d, d.spec.replicas, d.status.ready_replicas) for d in deployments},
    }
