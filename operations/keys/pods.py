"""Pods of a cluster, and those that may still trust what kube-root-ca.crt held when they started.

Programs with client-go 0.36 or newer read the file of authorities again every five minutes (feature ClientsAllowCARotation,
kubernetes/kubernetes pull request 132922); what was made with an older one, and most others, read it once, at their start.
Of the cluster's own pods that is CoreDNS 1.14 (client-go 0.35) and the agents of konnectivity, and kube-proxy up to 1.35.
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
from cluster.errors import FailedError
from operations.keys.trusted import ROOT

SPREAD_S = 600.0
"""Until all have a ConfigMap that changed: kubelets look for changes every minute or so, client-go every five."""
_PAGE = 500
_RESTARTED = {"Deployment", "DaemonSet", "StatefulSet"}
_READS_AGAIN = re.compile(r"(?:.*/)?kube-proxy:v1\.([0-9]+)\..*")
_SINCE_MINOR = 36


def behind(late: Iterable[Late], since: datetime, again: str) -> FailedError:
    """Pods that may have read the authorities once, before the new one was among them."""
    lines = "\n".join(f"  {each.command}" for each in late)
    return FailedError(
        f"these pods started before {since:%Y-%m-%d %H:%M} UTC, and mount the cluster's authorities: who read them once, at "
        f"the start, loses the API once it shows a certificate of the new one. Make them anew, when it suits them:\n{lines}\n"
        f"Then: {again}. Or, if you know that all that is left reads them again, or asks the API for nothing: --pods-follow",
        code="pods-behind",
    )


@dataclass(frozen=True)
class Late:
    """Pods of one controller. kind, name: of the controller, "" without one."""

    namespace: str
    kind: str
    name: str
    pods: tuple[str, ...]

    @property
    def command(self) -> str:
        """What makes them anew."""
        if self.kind in _RESTARTED:
            return f"kubectl -n {self.namespace} rollout restart {self.kind.lower()}/{self.name}"
        after = f"{self.kind} {self.name} decides what follows" if self.kind else "nothing makes them anew"
        return f"kubectl -n {self.namespace} delete pod {' '.join(self.pods)}   # {after}"


def pods(api: client.ApiClient) -> Iterator[client.V1Pod]:
    """All of the cluster."""
    following: str | None = None
    while True:
        page = client.CoreV1Api(api).list_pod_for_all_namespaces(
            limit=_PAGE, _continue=following, _request_timeout=API_TIMEOUT_S
        )
        yield from page.items
        following = page.metadata._continue
        if not following:
            return


def late(api: client.ApiClient, since: datetime) -> tuple[Late, ...]:
    """Pods that read the authorities before `since`, perhaps, and are not known to read them again; by their controller."""
    found: dict[tuple[str, str, str], list[str]] = {}
    owners: dict[tuple[str, str], tuple[str, str]] = {}
    for pod in pods(api):
        if is_late(pod, since):
            controller = _controller(api, pod, owners)
            found.setdefault((pod.metadata.namespace, *controller), []).append(pod.metadata.name)
    return tuple(Late(*key, tuple(sorted(names))) for key, names in sorted(found.items()))


def is_late(pod: client.V1Pod, since: datetime) -> bool:
    """Whether a program of the pod runs since before, and may have read the authorities once."""
    started = [
        each.state.running.started_at
        for each in (*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ()))
        if each.state and each.state.running
    ]
    return any(each < since for each in started) and _mounts_root(pod) and not _reads_again(pod)


def _mounts_root(pod: client.V1Pod) -> bool:
    """Whether a volume or a variable of the pod has the authorities."""
    volumes = pod.spec.volumes or ()
    names = {each.config_map.name for each in volumes if each.config_map}
    sources = [source for each in volumes if each.projected for source in each.projected.sources or ()]
    names |= {source.config_map.name for source in sources if source.config_map}
    for each in (*pod.spec.containers, *(pod.spec.init_containers or ())):
        names |= {source.config_map_ref.name for source in each.env_from or () if source.config_map_ref}
        origins = [variable.value_from for variable in each.env or () if variable.value_from]
        names |= {origin.config_map_key_ref.name for origin in origins if origin.config_map_key_ref}
    return ROOT in names


def _reads_again(pod: client.V1Pod) -> bool:
    if pod.metadata.namespace != "kube-system":
        return False
    matches = [_READS_AGAIN.fullmatch(each.image or "") for each in pod.spec.containers]
    return all(match is not None and int(match[1]) >= _SINCE_MINOR for match in matches)


def _controller(
    api: client.ApiClient, pod: client.V1Pod, known: dict[tuple[str, str], tuple[str, str]]
) -> tuple[str, str]:
    """Kind and name of what an operator would restart: of a ReplicaSet its Deployment."""
    kind, name = _owner(pod.metadata)
    if kind != "ReplicaSet":
        return kind, name
    key = (pod.metadata.namespace, name)
    if key not in known:
        try:
            found = client.AppsV1Api(api).read_namespaced_replica_set(*reversed(key), _request_timeout=API_TIMEOUT_S)
            known[key] = _owner(found.metadata)
        except ApiException as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            known[key] = ("", "")
    return known[key] if known[key][0] else (kind, name)


def _owner(metadata: client.V1ObjectMeta) -> tuple[str, str]:
    return next(((each.kind, each.name) for each in metadata.owner_references or () if each.controller), ("", ""))
