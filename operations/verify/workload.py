"""The pods that the proofs use: one small web server a node, and a Service in front of them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException
from kubernetes.stream import stream

from operations.waiting import Report, wait_until

NAMESPACE = "menagerie-verify"
IMAGE = "docker.io/library/busybox:1.36"
PORT = 8080
EXEC_TIMEOUT_S = 30
_LABELS = {"app": "probe"}
# What the "restricted" Pod Security Standard asks for.
_CONTAINER_SECURITY = {
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
    """The running pods. `word` is what each web server answers after its own name."""

    def __init__(self, api: client.ApiClient, word: str) -> None:
        self.api = api
        self.core = client.CoreV1Api(api)
        self.word = word

    def pods(self) -> dict[str, Pod]:
        """Node name -> its pod."""
        items = self.core.list_namespaced_pod(NAMESPACE, label_selector="app=probe").items
        return {p.spec.node_name: Pod(p.metadata.name, p.spec.node_name, p.status.pod_ip) for p in items}

    def run(self, pod: Pod, *argv: str) -> str:
        """Run a command in a pod through the API (`kubectl exec`); returns what it prints."""
        answer: str = stream(
            self.core.connect_get_namespaced_pod_exec, pod.name, NAMESPACE, command=list(argv),
            stdout=True, stderr=True, stdin=False, tty=False, _request_timeout=EXEC_TIMEOUT_S,
        )  # fmt: skip
        return answer

    def fetch(self, pod: Pod, url: str) -> str:
        """What a web request from inside a pod answers, "" when it fails."""
        return self.run(pod, "timeout", "5", "wget", "-q", "-O", "-", url)


@contextmanager
def workload(api: client.ApiClient, nodes: frozenset[str], report: Report) -> Iterator[Workload]:
    """Run the pods on every node of `nodes` until the block ends, then delete their namespace."""
    core = client.CoreV1Api(api)
    delete_namespace(core, report)
    word = secrets.token_hex(4)
    core.create_namespace({"metadata": {"name": NAMESPACE}})
    client.AppsV1Api(api).create_namespaced_daemon_set(NAMESPACE, _daemon_set(word))
    core.create_namespaced_service(NAMESPACE, _service())
    try:
        running = Workload(api, word)
        wait_until(lambda: _missing(core, nodes), 120, report)
        yield running
    finally:
        core.delete_namespace(NAMESPACE)


def delete_namespace(core: client.CoreV1Api, report: Report) -> None:
    """Remove what an earlier run left, and wait until it is gone."""
    try:
        core.delete_namespace(NAMESPACE)
    except ApiException as error:
        if error.status != 404:
            raise
    wait_until(lambda: "the last run's namespace is being deleted" if _exists(core) else "", 120, report)


def _exists(core: client.CoreV1Api) -> bool:
    try:
        core.read_namespace(NAMESPACE)
    except ApiException as error:
        if error.status == 404:
            return False
        raise
    return True


def _missing(core: client.CoreV1Api, nodes: frozenset[str]) -> str:
    pods = core.list_namespaced_pod(NAMESPACE, label_selector="app=probe").items
    ready = {
        pod.spec.node_name
        for pod in pods
        if any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions or ())
    }
    waiting = sorted(nodes - ready)
    return f"no ready pod on {', '.join(waiting[:5])}" if waiting else ""


def _daemon_set(word: str) -> dict[str, Any]:
    serve = (
        f"mkdir -p /tmp/www && echo $(hostname) {word} > /tmp/www/index.html && exec httpd -f -v -p {PORT} -h /tmp/www"
    )
    container = {
        "name": "web",
        "image": IMAGE,
        "command": ["sh", "-c", f"echo started {word}; {serve}"],
        "ports": [{"containerPort": PORT}],
        "readinessProbe": {"httpGet": {"path": "/", "port": PORT}, "periodSeconds": 1},
        "securityContext": _CONTAINER_SECURITY,
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
