"""The pods that proofs use: one small web server per node, and a Service for them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from kubernetes.stream import stream

from clients.access import API_TIMEOUT_S
from clients.paging import models
from clients.waiting import Report, is_ready, wait_until
from cluster.allocations import SYSTEM_LABEL
from cluster.images import BUSYBOX

IMAGE = BUSYBOX
PORT = 8080
EXEC_TIMEOUT_S = 30
PODS_TIMEOUT_S = 120
_LABELS = {"app": "probe"}
_OURS = {"app.kubernetes.io/managed-by": "menagerie-verify"}
# Required by the "restricted" Pod Security Standard.
CONTAINER_SECURITY = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 65534,
    "seccompProfile": {"type": "RuntimeDefault"},
}


@dataclass(frozen=True)
class Pod:
    name: str
    node: str
    address: str


class Workload:
    """The pods in their namespace. `word`: each web server responds with its own name and this word."""

    def __init__(
        self,
        api: client.ApiClient,
        namespace: str,
        word: str,
        nodes: frozenset[str],
        report: Report,
        image: str = IMAGE,
    ) -> None:
        self.core = client.CoreV1Api(api)
        self.namespace = namespace
        self.word = word
        self._image = image
        self._nodes = nodes
        self._report = report
        self._deadline = time.monotonic() + PODS_TIMEOUT_S

    def pods(self) -> dict[str, Pod]:
        """Return node name -> pod. Raises TimedOutError if a node has no ready pod in time, counted from the start."""
        wait_until(self._missing, max(0.0, self._deadline - time.monotonic()), self._report)
        return self._ready()

    def run(self, pod: Pod, *argv: str) -> str:
        """Run a command in a pod through the API (`kubectl exec`). Return its output."""
        answer: str = stream(
            self.core.connect_get_namespaced_pod_exec, pod.name, self.namespace, command=list(argv),
            stdout=True, stderr=True, stdin=False, tty=False, _request_timeout=EXEC_TIMEOUT_S,
        )  # fmt: skip
        return answer

    def fetch(self, pod: Pod, url: str) -> str:
        """Return the response to a web request from inside a pod, "" if it fails."""
        return self.run(pod, "timeout", "5", "wget", "-q", "-O", "-", url)

    def alone(self, node: str) -> Any:
        """Create a pod without a controller on a node, with the default tolerations, and return it when it is ready."""
        body = {
            "metadata": {"generateName": "alone-"},
            "spec": {
                "nodeName": node,
                "terminationGracePeriodSeconds": 1,
                "automountServiceAccountToken": False,
                "containers": [
                    {
                        "name": "web",
                        "image": self._image,
                        "command": ["sleep", "infinity"],
                        "securityContext": CONTAINER_SECURITY,
                    }
                ],
            },
        }
        pod = self.core.create_namespaced_pod(self.namespace, body, _request_timeout=API_TIMEOUT_S)
        name = pod.metadata.name
        wait_until(lambda: "" if is_ready(self._named(name)) else f"{name} isn't ready", PODS_TIMEOUT_S, self._report)
        return self._named(name)

    def _named(self, name: str) -> Any:
        return self.core.read_namespaced_pod(name, self.namespace, _request_timeout=API_TIMEOUT_S)

    def _ready(self) -> dict[str, Pod]:
        pods = models(self.core.list_namespaced_pod, self.namespace, label_selector="app=probe")
        ready = [pod for pod in pods if is_ready(pod)]
        return {pod.spec.node_name: Pod(pod.metadata.name, pod.spec.node_name, pod.status.pod_ip) for pod in ready}

    def _missing(self) -> str:
        waiting = sorted(self._nodes - set(self._ready()))
        return f"no ready pod on {', '.join(waiting[:5])}{' …' if len(waiting) > 5 else ''}" if waiting else ""


@contextmanager
def workload(api: client.ApiClient, nodes: frozenset[str], report: Report, image: str = IMAGE) -> Iterator[Workload]:
    """Run the pods on every node of `nodes` for the length of a block, then delete their namespace.

    image: of busybox, by digest if the cluster has one. The block starts before the pods are ready: see `Workload.pods`.
    """
    core = client.CoreV1Api(api)
    word = secrets.token_hex(4)
    _clean(core)
    try:
        metadata = {"generateName": "menagerie-verify-", "labels": {**_OURS, SYSTEM_LABEL: "true"}}
        namespace = core.create_namespace({"metadata": metadata}, _request_timeout=API_TIMEOUT_S).metadata.name
        client.AppsV1Api(api).create_namespaced_daemon_set(
            namespace, _daemon_set(word, image), _request_timeout=API_TIMEOUT_S
        )
        core.create_namespaced_service(namespace, _service(), _request_timeout=API_TIMEOUT_S)
        yield Workload(api, namespace, word, nodes, report, image)
    finally:
        with suppress(ApiException, urllib3.exceptions.HTTPError):
            _clean(core)


def _clean(core: client.CoreV1Api) -> None:
    """Delete our namespaces, also those of killed runs. Does not wait: pods on dead nodes delay the deletion."""
    selector = ",".join(f"{key}={value}" for key, value in _OURS.items())
    for namespace in models(core.list_namespace, label_selector=selector):
        if namespace.metadata.deletion_timestamp is None:
            core.delete_namespace(namespace.metadata.name, _request_timeout=API_TIMEOUT_S)


def _daemon_set(word: str, image: str) -> dict[str, Any]:
    serve = (
        f"mkdir -p /tmp/www && echo $(hostname) {word} > /tmp/www/index.html && exec httpd -f -v -p {PORT} -h /tmp/www"
    )
    container = {
        "name": "web",
        "image": image,
        "command": ["sh", "-c", f"echo started {word}; {serve}"],
        "ports": [{"containerPort": PORT}],
        "readinessProbe": {"httpGet": {"path": "/", "port": PORT}, "periodSeconds": 1},
        "securityContext": CONTAINER_SECURITY,
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    pod = {
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }
    return {
        "metadata": {"name": "probe"},
        "spec": {"selector": {"matchLabels": _LABELS}, "template": {"metadata": {"labels": _LABELS}, "spec": pod}},
    }


def _service() -> dict[str, Any]:
    return {"metadata": {"name": "probe"}, "spec": {"selector": _LABELS, "ports": [{"port": 80, "targetPort": PORT}]}}
