"""A job that can't run on any existing host, and the progress of its host and its pod."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kubernetes import client

from clients.access import API_TIMEOUT_S
from clients.kube import Kube
from clients.paging import models
from clients.waiting import is_ready
from cluster.pools import POOL_LABEL, Taint

NAME = "growth"
_HOSTNAME = "kubernetes.io/hostname"


@dataclass
class Probe:
    """A growth test. taints: those of the pool, which the pod tolerates. nodes_before: nodes when the job was submitted.

    Methods raise the API's errors.
    """

    api: client.ApiClient
    namespace: str
    pool: str
    taints: tuple[Taint, ...] = ()
    nodes_before: frozenset[str] = frozenset()

    @property
    def core(self) -> client.CoreV1Api:
        return client.CoreV1Api(self.api)

    @property
    def _kube(self) -> Kube:
        return Kube(self.api)

    @property
    def batch(self) -> client.BatchV1Api:
        return client.BatchV1Api(self.api)

    def submit(self, container: dict[str, Any]) -> None:
        """Submit the job. container: what runs; its name and its requests are set here."""
        self.nodes_before = frozenset(node["metadata"]["name"] for node in self._kube.list("Node"))
        self.batch.create_namespaced_job(
            self.namespace, job(self.pool, self.taints, self.nodes_before, container), _request_timeout=API_TIMEOUT_S
        )

    def nodes(self) -> list[client.V1Node]:
        """Return the nodes of the pool."""
        return list(models(self.core.list_node, label_selector=f"{POOL_LABEL}={self.pool}"))

    def node(self) -> client.V1Node | None:
        """Return the new node, None if there is none yet."""
        return next((node for node in self.nodes() if node.metadata.name not in self.nodes_before), None)

    def pod(self) -> client.V1Pod | None:
        return next(models(self.core.list_namespaced_pod, self.namespace, label_selector=f"job-name={NAME}"), None)

    def has_node(self) -> bool:
        return self.node() is not None

    def has_ready_node(self) -> bool:
        node = self.node()
        return node is not None and is_ready(node)

    def is_bound(self) -> bool:
        pod = self.pod()
        return pod is not None and pod.spec.node_name is not None

    def has_image(self) -> bool:
        """Return whether the kubelet has reported the image as pulled; it does so when the pod has its network."""
        pod = self.pod()
        if pod is None:
            return False
        selector = f"involvedObject.uid={pod.metadata.uid},reason=Pulled"
        return any(self._kube.list("Event", self.namespace, fields=selector))

    def runs(self) -> bool:
        pod = self.pod()
        return pod is not None and pod.status.phase in ("Running", "Succeeded")

    def is_done(self) -> bool:
        current = self.batch.read_namespaced_job(NAME, self.namespace, _request_timeout=API_TIMEOUT_S)
        return bool(current.status.succeeded)

    def delete(self) -> None:
        """Delete the job and its pod, which its kubelet ends at once."""
        self.batch.delete_namespaced_job(
            NAME, self.namespace, propagation_policy="Background", _request_timeout=API_TIMEOUT_S
        )


def job(pool: str, taints: tuple[Taint, ...], there: frozenset[str], container: dict[str, Any]) -> dict[str, Any]:
    """Return a Job with one pod that runs on a host of the pool, but on none of the nodes `there`."""
    elsewhere = {"key": _HOSTNAME, "operator": "NotIn", "values": sorted(there)}
    required = {"nodeSelectorTerms": [{"matchExpressions": [elsewhere]}]}
    pod = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "nodeSelector": {POOL_LABEL: pool},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
        "tolerations": [
            {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect.value}
            for taint in taints
        ],
        "containers": [{"name": "job", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}, **container}],
    }
    return {"metadata": {"name": NAME}, "spec": {"backoffLimit": 0, "template": {"spec": pod}}}
