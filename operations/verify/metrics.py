"""The proof that metrics are right, that autoscalers use them, and that they outlive a pod of metrics-server.

Busy pods write what their own control group says, once a second. The use in metrics is that of a window with an end, so both are
compared over the same time: another load on the machine changes both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.access import API_TIMEOUT_S
from clients.api_errors import cause_of
from clients.paging import models
from clients.rest import Rest
from clients.waiting import is_ready, wait_until
from cluster.images import BUSYBOX, by_digest
from components.control_plane.host.metrics_keys import NAMESPACE
from components.control_plane.metrics import GROUP, NAME, VERSION
from operations.verify.everyday import no_route
from operations.verify.proof import Context, FailedProofError, Proof, demand
from operations.verify.usage import SCRIPT, Usage, own_usage, samples
from operations.verify.workload import CONTAINER_SECURITY

WITHIN = 0.1
BACK_S = 30.0
_ANSWERS_S, _WINDOW_S, _SCALED_S = 120.0, 120.0, 240.0
_WINDOWS = 3
"""So many windows are compared before the proof fails: ends have whole seconds, which matters when a load just changed."""
_METRICS = f"/apis/{GROUP}/{VERSION}"
_BUSY = {"app": "busy"}


def metrics_are_right_scale_and_come_back(context: Context) -> str:
    rest = Rest(context.api, API_TIMEOUT_S)
    wait_until(lambda: _silent(rest), _ANSWERS_S, context.report)
    way = _carried(context)
    with _running(context) as pods:
        compared = [f"{node}: {_compared(context, rest, name)}" for node, name in pods.items()]
        scaled_s = _scaled_s(context)
    answers_s, ready_s = _killed(context, rest)
    return (
        f"{'; '.join(compared)}; an HPA made two pods of one after {scaled_s:.0f} s; a pod of {NAME} was killed: metrics "
        f"after {answers_s:.0f} s, all of its pods Ready after {ready_s:.0f} s{way}"
    )


def _silent(rest: Rest) -> str:
    """Return why there are no metrics of nodes, "" if there are."""
    try:
        nodes = rest.get(f"{_METRICS}/nodes")["items"]
    except (ApiException, urllib3.exceptions.HTTPError) as error:
        return f"no metrics of nodes ({cause_of(error)})"
    return "" if nodes else "no node has metrics"


def _carried(context: Context) -> str:
    """Return that only tunnels lead to metrics-server, "" if this can't be tried."""
    if context.offered is None:
        return ""
    wait_until(lambda: _starting(context), 4 * BACK_S, context.report)
    servers = no_route(context, [pod.status.pod_ip for pod in _pods(context)])
    return f"; {', '.join(servers)} have no route to its pods"


def _pods(context: Context) -> list[Any]:
    core = client.CoreV1Api(context.api)
    return list(models(core.list_namespaced_pod, NAMESPACE, label_selector=f"k8s-app={NAME}"))


def _starting(context: Context) -> str:
    """Return which pods of metrics-server are not Ready, "" if all are."""
    names = [pod.metadata.name for pod in _pods(context) if not is_ready(pod)]
    return f"not Ready: {', '.join(names)}" if names else ""


def _places(context: Context) -> list[str]:
    """Return a node at a site and one in the region, as far as there are some."""
    at_sites = {host.name for _, host in context.cluster.host_list()}
    groups = [sorted(at_sites & set(context.nodes)), sorted(set(context.nodes) - at_sites)]
    return [group[0] for group in groups if group]


@contextmanager
def _running(context: Context) -> Iterator[dict[str, str]]:
    """Run a busy pod on each of `_places`, and one that an HPA may double, for the length of a block. Yield node -> pod."""
    api, namespace, core = context.api, context.workload.namespace, context.workload.core
    image = by_digest(context.cluster.spec, BUSYBOX)
    try:
        pods = {node: _create(core, namespace, node, image) for node in _places(context)}
        client.AppsV1Api(api).create_namespaced_deployment(namespace, _deployment(image))
        client.AutoscalingV2Api(api).create_namespaced_horizontal_pod_autoscaler(namespace, _autoscaler())
        yield pods
    finally:
        autoscaling, apps = client.AutoscalingV2Api(api), client.AppsV1Api(api)
        _quietly(lambda: autoscaling.delete_collection_namespaced_horizontal_pod_autoscaler(namespace))
        _quietly(lambda: apps.delete_collection_namespaced_deployment(namespace))
        _quietly(lambda: core.delete_collection_namespaced_pod(namespace, label_selector="app=busy"))


def _quietly(delete: Callable[[], object]) -> None:
    """Delete if the API answers. Otherwise the end of the namespace deletes it."""
    with suppress(ApiException, urllib3.exceptions.HTTPError):
        delete()


def _create(core: client.CoreV1Api, namespace: str, node: str, image: str) -> str:
    body = {
        "metadata": {"generateName": "busy-", "labels": _BUSY},
        "spec": {"nodeName": node, "tolerations": [{"operator": "Exists"}], **_pod(image)},
    }
    return str(core.create_namespaced_pod(namespace, body, _request_timeout=API_TIMEOUT_S).metadata.name)


def _pod(image: str) -> dict[str, Any]:
    container = {
        "name": "busy",
        "image": image,
        "command": ["sh", "-c", SCRIPT],
        "resources": {
            "requests": {"cpu": "100m", "memory": "64Mi"},
            "limits": {"cpu": "200m", "memory": "96Mi"},
        },
        "securityContext": CONTAINER_SECURITY,
        "volumeMounts": [{"name": "load", "mountPath": "/load"}],
    }
    return {
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "containers": [container],
        "volumes": [{"name": "load", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}}],
    }


def _deployment(image: str) -> dict[str, Any]:
    labels = {**_BUSY, "scaled": "true"}
    template = {"metadata": {"labels": labels}, "spec": _pod(image)}
    return {"metadata": {"name": "scaled"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}


def _autoscaler() -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": 50}
    return {
        "metadata": {"name": "scaled"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "scaled"},
            "minReplicas": 1,
            "maxReplicas": 2,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
    }


def _compared(context: Context, rest: Rest, name: str) -> str:
    """Return a pod's use by both. Raises FailedProofError if they differ in several windows in a row."""
    summaries: list[str] = []
    last = 0.0
    while len(summaries) < _WINDOWS:
        usage, cores, memory = _window(context, rest, name, last)
        last = usage.ends
        cpu_off, memory_off = (abs(said - own) / own for said, own in ((usage.cpu, cores), (usage.memory, memory)))
        summaries.append(
            f"{usage.cpu * 1000:.0f}m and {usage.memory / 2**20:.1f} MiB in metrics, {cores * 1000:.0f}m and "
            f"{memory / 2**20:.1f} MiB in its cgroup"
        )
        if cpu_off <= WITHIN and memory_off <= WITHIN:
            return summaries[-1]
    raise FailedProofError(f"{name} differs by more than {WITHIN:.0%} in {_WINDOWS} windows: {'; '.join(summaries)}")


def _window(context: Context, rest: Rest, name: str, after: float) -> tuple[Usage, float, float]:
    """Wait for a window that ends after `after` and that the pod's samples cover. Return (metrics, own cores, own bytes)."""
    namespace, answers = context.workload.namespace, list[tuple[Usage, float, float]]()

    def missing() -> str:
        try:
            usage = Usage.of(rest.get(f"{_METRICS}/namespaces/{namespace}/pods/{name}"))
            log = context.workload.core.read_namespaced_pod_log(
                name, namespace, tail_lines=300, _request_timeout=API_TIMEOUT_S
            )
        except (ApiException, urllib3.exceptions.HTTPError) as error:
            return f"no metrics or log of {name} ({cause_of(error)})"
        own = own_usage(samples(log), usage)
        if usage.ends <= after or own is None:
            return f"{name} has no metrics of a whole window yet"
        answers.append((usage, *own))
        return ""

    wait_until(missing, _WINDOW_S, context.report, every_s=1.0)
    return answers[0]


def _scaled_s(context: Context) -> float:
    """Wait until the HPA has doubled its Deployment. Return after how many seconds of waiting."""
    started, apps = time.monotonic(), client.AppsV1Api(context.api)

    def missing() -> str:
        scale = apps.read_namespaced_deployment("scaled", context.workload.namespace, _request_timeout=API_TIMEOUT_S)
        return "" if scale.spec.replicas == 2 else "the HPA has not scaled yet"

    wait_until(missing, _SCALED_S, context.report, every_s=1.0)
    return time.monotonic() - started


def _killed(context: Context, rest: Rest) -> tuple[float, float]:
    """Kill a pod of metrics-server. Return after how many seconds there are metrics, and all of its pods are Ready."""
    wait_until(lambda: _starting(context), 4 * BACK_S, context.report)
    before = _pods(context)
    victim = before[0].metadata
    core = client.CoreV1Api(context.api)
    core.delete_namespaced_pod(victim.name, NAMESPACE, grace_period_seconds=0, _request_timeout=API_TIMEOUT_S)
    killed_at = time.monotonic()

    def missing() -> str:
        ready = [pod for pod in _pods(context) if is_ready(pod) and pod.metadata.uid != victim.uid]
        return "" if len(ready) >= len(before) else f"{len(ready)} of {len(before)} pods of {NAME} are Ready"

    wait_until(lambda: _silent(rest), 2 * BACK_S, context.report)
    answers_s = time.monotonic() - killed_at
    wait_until(missing, 4 * BACK_S, context.report)
    ready_s = time.monotonic() - killed_at
    text = f"a pod of {NAME} was killed: metrics after {answers_s:.0f} s, its pods Ready after {ready_s:.0f} s"
    demand(answers_s <= BACK_S and ready_s <= BACK_S, f"{text}, {BACK_S:.0f} s are allowed")
    return answers_s, ready_s


PROOFS = (
    Proof(
        "metrics",
        "metrics of pods agree with their cgroups, an HPA scales by them, and a killed metrics-server is back within 30 s",
        metrics_are_right_scale_and_come_back,
        effect="runs busy pods for some minutes, and kills a pod of metrics-server",
    ),
)
