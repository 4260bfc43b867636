"""A workload that is asked all the time: a Deployment of three with a budget, behind a Service."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any

from kubernetes import client

from clients.waiting import wait_until
from operations.verify.workload import IMAGE

NAME, PORT = "asked-all-the-time", 8080
SERVE = f"mkdir -p /tmp/www && hostname > /tmp/www/index.html && exec httpd -f -p {PORT} -h /tmp/www"
EVERY_S = 0.1
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 65534,
    "seccompProfile": {"type": "RuntimeDefault"},
}
# A connection for each request, as new clients come. Prints: when (UTC), HTTP status or 0, seconds, who answered or why none did.
# It ends with its standard input.
_ASK = """
import select, sys, time
from http.client import HTTPConnection, HTTPException

address, every, pause = sys.argv[1], float(sys.argv[2]), 0.0
while not select.select([sys.stdin], [], [], pause)[0]:
    begun, connection = time.time(), HTTPConnection(address, 80, timeout=2)
    try:
        connection.request("GET", "/")
        answer = connection.getresponse()
        status, who = answer.status, repr(answer.read()[:100])
    except (OSError, HTTPException) as error:
        status, who = 0, repr(error)
    connection.close()
    took = time.time() - begun
    print(time.strftime("%H:%M:%S", time.gmtime(begun)), status, f"{took:.2f}", who, flush=True)
    pause = max(every - took, 0)
"""


@dataclass
class Probe:
    """Requests to a Service from a host, one after another. failures: when (UTC), HTTP status or 0, seconds, and why."""

    asked: int = 0
    failures: list[str] = field(default_factory=list)

    def read(self, answers: IO[str]) -> None:
        for line in answers:
            self.asked += 1
            if line.split()[1] != "200":
                self.failures.append(line.strip())


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
def workload(api: client.ApiClient) -> Iterator[client.V1ServiceSpec]:
    """Three pods that are ready, and their Service, for the length of a block; the namespace goes with it."""
    core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
    labels = {"app": NAME}
    core.create_namespace({"metadata": {"name": NAME}})
    apps.create_namespaced_deployment(NAME, _deployment())
    budget = {"metadata": {"name": NAME}, "spec": {"minAvailable": 2, "selector": {"matchLabels": labels}}}
    client.PolicyV1Api(api).create_namespaced_pod_disruption_budget(NAME, budget)
    spec = {"type": "NodePort", "selector": labels, "ports": [{"port": 80, "targetPort": PORT}]}
    made_of = core.create_namespaced_service(NAME, {"metadata": {"name": NAME}, "spec": spec}).spec

    def missing() -> str:
        ready = apps.read_namespaced_deployment(NAME, NAME).status.ready_replicas or 0
        return "" if ready == 3 else f"{ready} of 3 ready"

    wait_until(missing, 120, print)
    try:
        yield made_of
    finally:
        core.delete_namespace(NAME)


@contextmanager
def probing(api: client.ApiClient, inside: Sequence[str]) -> Iterator[Probe]:
    """The workload, asked all the time. inside: begins a command that runs on the host that asks."""
    with workload(api) as service:
        words = [*inside, "python3", "-c", _ASK, service.cluster_ip, str(EVERY_S)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asking:
            assert asking.stdin
            assert asking.stdout
            made = Probe()
            thread = threading.Thread(target=made.read, args=(asking.stdout,))
            thread.start()
            try:
                yield made
                assert asking.poll() is None, "whoever asks has ended"
            finally:
                asking.stdin.close()
                thread.join()
