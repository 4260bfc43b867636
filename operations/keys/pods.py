"""Finds pods that may still trust the content that kube-root-ca.crt had when they started.

Programs with client-go 0.36 or newer reload the file of authorities every five minutes (feature ClientsAllowCARotation,
kubernetes/kubernetes pull request 132922). Programs with an older client-go, and most others, read it only at start. Among
the cluster's own pods, these are CoreDNS 1.14 (client-go 0.35), the konnectivity agents, and kube-proxy up to 1.35.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.access import API_TIMEOUT_S
from clients.paging import models
from cluster.errors import FailedError
from operations.keys.trusted import ROOT

SPREAD_S = 600.0
"""Until all pods have a changed ConfigMap: kubelets check for changes about every minute, client-go every five."""
_RESTARTED = {"Deployment", "DaemonSet", "StatefulSet"}
_READS_AGAIN = re.compile(r"(?:.*/)?kube-proxy:v1\.([0-9]+)\..*")
_SINCE_MINOR = 36


def behind(late: Iterable[LaggingPods], since: datetime, again: str) -> FailedError:
    """Return the error for pods that may have read the authorities only once, before the new one was added."""
    lines = "\n".join(f"  {each.command}" for each in late)
    return FailedError(
        f"these pods started before {since:%Y-%m-%d %H:%M} UTC and mount the cluster's authorities. Programs that read them "
        f"only at start lose the API when it presents a certificate of the new authority. Restart them when convenient:\n"
        f"{lines}\n"
        f"Then run: {again}. If you know that the remaining pods reload the file or don't use the API: --pods-follow",
        code="pods-behind",
    )


@dataclass(frozen=True)
class LaggingPods:
    """Pods of one controller. kind, name: of the controller, "" without one."""

    namespace: str
    kind: str
    name: str
    pods: tuple[str, ...]

    @property
    def command(self) -> str:
        """The command that recreates them."""
        if self.kind in _RESTARTED:
            return f"kubectl -n {self.namespace} rollout restart {self.kind.lower()}/{self.name}"
        after = f"{self.kind} {self.name} decides what follows" if self.kind else "nothing recreates them"
        return f"kubectl -n {self.namespace} delete pod {' '.join(self.pods)}   # {after}"


def pods(api: client.ApiClient) -> Iterator[client.V1Pod]:
    """Return all pods of the cluster."""
    return models(client.CoreV1Api(api).list_pod_for_all_namespaces)


def late(api: client.ApiClient, since: datetime) -> tuple[LaggingPods, ...]:
    """Return pods that may have read the authorities before `since` and may not reload them, by controller."""
    by_controller: dict[tuple[str, str, str], list[str]] = {}
    owners: dict[tuple[str, str], tuple[str, str]] = {}
    for pod in pods(api):
        if is_late(pod, since):
            controller = _controller(api, pod, owners)
            by_controller.setdefault((pod.metadata.namespace, *controller), []).append(pod.metadata.name)
    return tuple(LaggingPods(*key, tuple(sorted(names))) for key, names in sorted(by_controller.items()))


def is_late(pod: client.V1Pod, since: datetime) -> bool:
    """Return whether a program of the pod started before `since` and may have read the authorities only once."""
    started = [
        status.state.running.started_at
        for status in (*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ()))
        if status.state and status.state.running
    ]
    return any(status < since for status in started) and _mounts_root(pod) and not _reads_again(pod)


def _mounts_root(pod: client.V1Pod) -> bool:
    """Return whether a volume or a variable of the pod has the authorities."""
    volumes = pod.spec.volumes or ()
    names = {item.config_map.name for item in volumes if item.config_map}
    sources = [source for item in volumes if item.projected for source in item.projected.sources or ()]
    names |= {source.config_map.name for source in sources if source.config_map}
    for item in (*pod.spec.containers, *(pod.spec.init_containers or ())):
        names |= {source.config_map_ref.name for source in item.env_from or () if source.config_map_ref}
        origins = [variable.value_from for variable in item.env or () if variable.value_from]
        names |= {origin.config_map_key_ref.name for origin in origins if origin.config_map_key_ref}
    return ROOT in names


def _reads_again(pod: client.V1Pod) -> bool:
    if pod.metadata.namespace != "kube-system":
        return False
    matches = [_READS_AGAIN.fullmatch(container.image or "") for container in pod.spec.containers]
    return all(match is not None and int(match[1]) >= _SINCE_MINOR for match in matches)


def _controller(
    api: client.ApiClient, pod: client.V1Pod, cached: dict[tuple[str, str], tuple[str, str]]
) -> tuple[str, str]:
    """Return kind and name of what an operator would restart: for a ReplicaSet, its Deployment."""
    kind, name = _owner(pod.metadata)
    if kind != "ReplicaSet":
        return kind, name
    key = (pod.metadata.namespace, name)
    if key not in cached:
        try:
            replica_set = client.AppsV1Api(api).read_namespaced_replica_set(
                *reversed(key), _request_timeout=API_TIMEOUT_S
            )
            cached[key] = _owner(replica_set.metadata)
        except ApiException as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            cached[key] = ("", "")
    return cached[key] if cached[key][0] else (kind, name)


def _owner(metadata: client.V1ObjectMeta) -> tuple[str, str]:
    return next(
        ((reference.kind, reference.name) for reference in metadata.owner_references or () if reference.controller),
        ("", ""),
    )
