"""What runs in every cluster: name resolution, proxies, drivers of volumes and of GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubernetes import client

from cluster.spec import Cluster
from components.control_plane import csi, dns, gpu, manifests
from operations.status import model
from operations.status.model import Item, kubectl

ADDONS = (dns.NAME, manifests.AGENT, "kube-proxy")
"""What runs in every cluster; kubeadm names the last."""


def addons(cluster: Cluster, api: client.ApiClient) -> Iterator[Item]:
    drivers = csi.workloads(cluster)
    found = _workloads(api, "kube-system") | (_workloads(api, csi.NAMESPACE) if drivers else {})
    for name in sorted({*ADDONS, *drivers, *gpu.workloads(cluster), *found}):
        if name not in found:
            detail = "missing; an API-server host makes it again when it boots"
            yield Item("add-ons", name, False, detail, f"./menagerie up {cluster.name}")
            continue
        thing, wanted, ready = found[name]
        # The counts are those of this generation only once the controller has seen it.
        seen = (thing.status.observed_generation or 0) >= thing.metadata.generation
        ok = seen and (ready or 0) == (wanted or 0) and bool(wanted or name not in ADDONS)
        detail = f"{ready or 0} of {wanted or 0} pods ready" + ("" if seen else ", not yet counted after a change")
        pods = kubectl(cluster.name, f"-n {thing.metadata.namespace or 'kube-system'} get pods -o wide")
        yield Item("add-ons", name, ok, detail, "" if ok else pods)


def _workloads(api: client.ApiClient, namespace: str) -> dict[str, tuple[Any, int | None, int | None]]:
    """Name -> (the object, pods wanted, pods ready)."""
    apps = client.AppsV1Api(api)
    daemons = apps.list_namespaced_daemon_set(namespace, _request_timeout=model.ANSWER_S).items
    deployments = apps.list_namespaced_deployment(namespace, _request_timeout=model.ANSWER_S).items
    return {
        **{d.metadata.name: (d, d.status.desired_number_scheduled, d.status.number_ready) for d in daemons},
        **{d.metadata.name: (d, d.spec.replicas, d.status.ready_replicas) for d in deployments},
    }
