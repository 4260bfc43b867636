"""A workload that is asked all the time: a Deployment of three with a budget, behind a Service."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kubernetes import client

from operations.verify.workload import IMAGE
from operations.waiting import wait_until

NAME, PORT = "asked-all-the-time", 8080
SERVE = f"mkdir -p /tmp/www && hostname > /tmp/www/index.html && exec httpd -f -p {PORT} -h /tmp/www"
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 65534,
    "seccompProfile": {"type": "RuntimeDefault"},
}

OnHost = Callable[[Sequence[str]], str]
"""Runs a command on one host of the lab; what it printed."""


@dataclass
class Probe:
    """Asks a Service from a host, again and again.

    answers: HTTP status, "000" for none, -> how often. failures: when an answer was another than 200, UTC.
    """

    url: str
    on_host: OnHost
    answers: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self.over.wait(0.2):
            words = ["curl", "-s", "-m", "2", "-o", "/dev/null", "-w", "%{http_code}", self.url]
            status = self.on_host(words)
            self.answers[status] = self.answers.get(status, 0) + 1
            if status != "200":
                self.failures.append(f"{datetime.now(UTC):%H:%M:%S} {status}")

    @property
    def asked(self) -> int:
        return sum(self.answers.values())

    @property
    def failed(self) -> int:
        return self.asked - self.answers.get("200", 0)


def _deployment() -> dict[str, Any]:
    labels = {"app": NAME}
    container = {
        "name": "web",
        "image": IMAGE,
        "command": ["sh", "-c", SERVE],
        "readinessProbe": {"httpGet": {"path": "/", "port": PORT}, "periodSeconds": 1},
        # kube-proxies have heard by then that the pod is leaving.
        "lifecycle": {"preStop": {"exec": {"command": ["sleep", "5"]}}},
        "securityContext": RESTRICTED,
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels},
    }
    pod = {
        "terminationGracePeriodSeconds": 10,
        "automountServiceAccountToken": False,
        "topologySpreadConstraints": [spread],
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }
    return {
        "metadata": {"name": NAME},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


@contextmanager
def probing(api: client.ApiClient, on_host: OnHost) -> Iterator[Probe]:
    """The workload and its probe for the length of a block; the namespace goes with it."""
    core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
    labels = {"app": NAME}
    core.create_namespace({"metadata": {"name": NAME}})
    apps.create_namespaced_deployment(NAME, _deployment())
    budget = {"metadata": {"name": NAME}, "spec": {"minAvailable": 2, "selector": {"matchLabels": labels}}}
    client.PolicyV1Api(api).create_namespaced_pod_disruption_budget(NAME, budget)
    service = {"metadata": {"name": NAME}, "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": PORT}]}}
    address = core.create_namespaced_service(NAME, service).spec.cluster_ip

    def missing() -> str:
        ready = apps.read_namespaced_deployment(NAME, NAME).status.ready_replicas or 0
        return "" if ready == 3 else f"{ready} of 3 ready"

    wait_until(missing, 120, print)
    made = Probe(f"http://{address}/", on_host)
    thread = threading.Thread(target=made.run)
    thread.start()
    try:
        yield made
    finally:
        made.over.set()
        thread.join()
        core.delete_namespace(NAME)
