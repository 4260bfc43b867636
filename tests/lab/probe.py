"""A workload under constant requests: a Deployment of three with a budget, behind a Service."""

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
# One connection per request, as from new clients. Prints time (UTC), HTTP status or 0, seconds, and who answered or the error.
# Ends when its standard input closes.
_ASK = """
import select, sys, time
from http.client import HTTPConnection, HTTPException

address, every, pause = sys.argv[1], float(sys.argv[2]), 0.0
while not select.select([sys.stdin], [], [], pause)[0]:
    started, connection = time.time(), HTTPConnection(address, 80, timeout=2)
    try:
        connection.request("GET", "/")
        answer = connection.getresponse()
        status, who = answer.status, repr(answer.read()[:100])
    except (OSError, HTTPException) as error:
        status, who = 0, repr(error)
    connection.close()
    took = time.time() - started
    print(time.strftime("%H:%M:%S", time.gmtime(started)), status, f"{took:.2f}", who, flush=True)
    pause = max(every - took, 0)
"""


@dataclass
class Probe:
    """Sequential requests to a Service from a host. failures: time (UTC), HTTP status or 0, seconds, and the error."""

    requests: int = 0
    failures: list[str] = field(default_factory=list)

    def read(self, answers: IO[str]) -> None:
        for line in answers:
            self.requests += 1
            if line.split()[1] != "200":
                self.failures.append(line.strip())


def _deployment() -> dict[str, Any]:
    labels = {"app": NAME}
    container = {
        "name": "web",
        "image": IMAGE,
        "command": ["sh", "-c", SERVE],
        "readinessProbe": {"httpGet": {"path": "/", "port": PORT}, "periodSeconds": 1},
        # By then kube-proxies know that the pod is leaving.
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
    """Run three ready pods and their Service for a block; delete the namespace afterwards."""
    core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
    labels = {"app": NAME}
    core.create_namespace({"metadata": {"name": NAME}})
    apps.create_namespaced_deployment(NAME, _deployment())
    budget = {"metadata": {"name": NAME}, "spec": {"minAvailable": 2, "selector": {"matchLabels": labels}}}
    client.PolicyV1Api(api).create_namespaced_pod_disruption_budget(NAME, budget)
    spec = {"type": "NodePort", "selector": labels, "ports": [{"port": 80, "targetPort": PORT}]}
    created = core.create_namespaced_service(NAME, {"metadata": {"name": NAME}, "spec": spec}).spec

    def missing() -> str:
        ready = apps.read_namespaced_deployment(NAME, NAME).status.ready_replicas or 0
        return "" if ready == 3 else f"{ready} of 3 ready"

    wait_until(missing, 120, print)
    try:
        yield created
    finally:
        core.delete_namespace(NAME)


@contextmanager
def probing(api: client.ApiClient, inside: Sequence[str]) -> Iterator[Probe]:
    """Send constant requests to the workload for a block. inside: start of a command that runs on the requesting host."""
    with workload(api) as service:
        command = [*inside, "python3", "-c", _ASK, service.cluster_ip, str(EVERY_S)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin
            assert process.stdout
            probe = Probe()
            thread = threading.Thread(target=probe.read, args=(process.stdout,))
            thread.start()
            try:
                yield probe
                assert process.poll() is None, "the requesting process has ended"
            finally:
                process.stdin.close()
                thread.join()
