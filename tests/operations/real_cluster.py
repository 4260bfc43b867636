"""A cluster without machines: real etcd, API server, controller manager and scheduler on loopback, with fake kubelets.

The fake kubelets mark bound pods Running and Ready, and end deleted pods, as kubelets do. The fake hosts respond as
`menagerie-boot` does, and reboot: with a new boot ID and a new preflight verdict.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from http.client import HTTPException
from pathlib import Path
from typing import Any

from kubernetes import client

from clients.remote.executor import UNREACHABLE, Done
from cluster import preflight, versions
from operations.reboot import order
from operations.reboot_needs import PROGRAM
from tests.control_plane.real_api import TOKEN, RealApi, running, spending_memory
from tests.programs import program
from tests.waiting import until

CONTROLLERS = "disruption-controller,replicaset-controller,daemonset-controller,job-controller"
PODS = "/api/v1/namespaces/default/pods"
_GOES_DOWN_S = 0.5


def stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Host:
    """A machine. boot_s: how long a reboot takes, after it has responded in its old state for a moment. version: its kubelet's.

    runtime: as reported by the kubelet.
    """

    name: str
    boot_id: str = ""
    booted_at: float = 0.0
    reasons: list[str] = field(default_factory=list)
    after_boot: list[str] = field(default_factory=list)
    verdict: str = "True"
    boot_s: float = 0.5
    away_from: float = 0.0
    away_until: float = 0.0
    answers: bool = True
    boots: int = 0
    version: str = "v1.36.4"
    runtime: str = f"containerd://{versions.CONTAINERD}"


@dataclass
class World:
    """The cluster and its hosts. Also an executor: `start` does what a host would do."""

    server: RealApi
    folder: Path
    hosts: dict[str, Host] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    seen_out: list[frozenset[str]] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def api(self, *, once: bool = False, connections: int | None = None) -> client.ApiClient:
        configuration = client.Configuration(host=f"https://127.0.0.1:{self.server.port}")
        # The server generated it itself a moment ago.
        configuration.ssl_ca_cert = str(self.folder / "certificates" / "apiserver.crt")
        configuration.assert_hostname = False
        configuration.api_key = {"authorization": f"Bearer {TOKEN}"}
        return client.ApiClient(configuration)

    @cached_property
    def core(self) -> client.CoreV1Api:
        return client.CoreV1Api(self.api())

    def add(self, name: str) -> Host:
        """Add a host whose node is Ready and untainted."""
        self.call("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        host = Host(name, str(uuid.uuid4()), time.time())
        self.say(host)
        self.merge(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
        with self.lock:
            self.hosts[name] = host
        return host

    def say(self, host: Host, ready: bool = True) -> None:
        """Write what a kubelet and preflight write into a node's status."""
        names = (
            "architecture",
            "kernelVersion",
            "kubeProxyVersion",
            "machineID",
            "operatingSystem",
            "osImage",
            "systemUUID",
        )
        now = {"lastHeartbeatTime": stamp(time.time()), "lastTransitionTime": stamp(time.time())}
        condition = {
            "type": preflight.CONDITION,
            "status": host.verdict,
            "reason": "Test",
            "message": "of this test",
            **now,
        }
        conditions = [{"type": "Ready", "status": str(ready), "reason": "Test", "message": "", **now}, condition]
        room = {"cpu": "8", "memory": "8Gi", "pods": "110"}
        status = {
            "nodeInfo": {
                **dict.fromkeys(names, "x"),
                "bootID": host.boot_id,
                "kubeletVersion": host.version,
                "containerRuntimeVersion": host.runtime,
            },
            "conditions": conditions,
        }
        self.merge(f"/api/v1/nodes/{host.name}/status", {"status": {**status, "capacity": room, "allocatable": room}})

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        status, answer = self.server.call(method, path, body, kind)
        assert status < 300, (method, path, status, answer)
        return answer

    def merge(self, path: str, body: Any) -> None:
        self.call("PATCH", path, body, "application/strategic-merge-patch+json")

    def pod(self, name: str, node: str, **more: Any) -> None:
        """Create a pod that is bound to a node. more: fields of its metadata (owner, annotations) or spec (volumes, grace)."""
        metadata = {key: more.pop(key) for key in ("ownerReferences", "annotations", "labels") if key in more}
        spec = {
            "nodeName": node,
            "containers": [{"name": "c", "image": "pause"}],
            "terminationGracePeriodSeconds": 1,
            **more,
        }
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}
        self.call("POST", PODS, body)

    def replicas(self, name: str, count: int, **spec: Any) -> None:
        """Create a ReplicaSet; the scheduler places its pods."""
        labels = {"app": name}
        pod = {"containers": [{"name": "c", "image": "pause"}], "terminationGracePeriodSeconds": 1, **spec}
        template = {"metadata": {"labels": labels}, "spec": pod}
        body = {"replicas": count, "selector": {"matchLabels": labels}, "template": template}
        made = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": body}
        self.call("POST", "/apis/apps/v1/namespaces/default/replicasets", made)

    def budget(self, name: str, app: str, least: int) -> None:
        spec = {"minAvailable": least, "selector": {"matchLabels": {"app": app}}}
        made = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}
        self.call("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", made)
        path = f"/apis/policy/v1/namespaces/default/poddisruptionbudgets/{name}"
        until(lambda: self.call("GET", path).get("status", {}).get("observedGeneration") == 1, seconds=30)

    def pods(self, node: str = "") -> list[str]:
        """Return the names of pods, on all nodes or on one."""
        items = self._listed(PODS)
        return sorted(each["metadata"]["name"] for each in items if not node or each["spec"].get("nodeName") == node)

    def ready(self, app: str) -> int:
        items = self._listed(f"{PODS}?labelSelector=app%3D{app}")
        return sum(
            each["status"]["phase"] == "Running" and "deletionTimestamp" not in each["metadata"] for each in items
        )

    def _listed(self, path: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.call("GET", path)["items"]
        return items

    def end(self, pod: str) -> None:
        """Let a pod's containers succeed when they run."""
        until(lambda: self.call("GET", f"{PODS}/{pod}")["status"]["phase"] != "Pending", seconds=30)
        self.merge(f"{PODS}/{pod}/status", {"status": {"phase": "Succeeded"}})

    def start(self, host: str, words: Sequence[str]) -> Any:
        """Start a program on a host, as an executor."""
        own = self.hosts[host]
        # It is away until `live` gives it another boot, even if that is long after `away_until`.
        if not own.answers or (own.away_until and own.away_from < time.monotonic()):
            return Ended(Done(UNREACHABLE, "ssh: connect to host: Connection refused"))
        if words[0] == PROGRAM:
            report = {
                "boot_id": own.boot_id,
                "booted_at": own.booted_at,
                "reboot": own.reasons,
                "notes": [],
                "machine": {},
            }
            return Ended(Done(0, json.dumps(report)))
        assert words == order(words[-1])
        if words[-1] != own.boot_id or time.monotonic() < own.away_from:
            # It has rebooted since, or is shutting down already; both make this command moot.
            return Ended(Done(0, ""))
        own.boots += 1
        own.away_from = time.monotonic() + _GOES_DOWN_S
        own.away_until = own.away_from + own.boot_s
        return Ended(Done(0, ""))

    def live(self) -> None:
        """Run kubelets and reboots until the test is over."""
        while not self._over.wait(0.1):
            with suppress(AssertionError, OSError, HTTPException):
                self._kubelets()

    def _kubelets(self) -> None:
        with self.lock:
            hosts = list(self.hosts.values())
        if not hosts:
            return
        for host in hosts:
            if host.away_until and time.monotonic() >= host.away_until:
                host.boot_id, host.booted_at, host.reasons = str(uuid.uuid4()), time.time() - 1, list(host.after_boot)
                self.say(host)
                host.away_until = 0.0
        nodes = self._listed("/api/v1/nodes")
        self.seen_out.append(frozenset(node["metadata"]["name"] for node in nodes if node["spec"].get("unschedulable")))
        for pod in self._listed(PODS):
            name, host_of = pod["metadata"]["name"], self.hosts.get(pod["spec"].get("nodeName", ""))
            if host_of is None or host_of.away_until or pod["status"]["phase"] in ("Succeeded", "Failed"):
                continue
            path = f"{PODS}/{name}"
            if "deletionTimestamp" in pod["metadata"] and name not in self.held:
                self.server.call("DELETE", path, {"gracePeriodSeconds": 0})
            elif pod["status"]["phase"] == "Pending":
                # Only with the resourceVersion that was read: a pod that a test has ended since is not revived.
                running = {
                    "metadata": {"resourceVersion": pod["metadata"]["resourceVersion"]},
                    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
                }
                self.server.call("PATCH", f"{path}/status", running, "application/strategic-merge-patch+json")

    def clear(self) -> None:
        """Remove all hosts, pods, sets and budgets."""
        self.held.clear()
        for path in (
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            "/apis/apps/v1/namespaces/default/replicasets",
            "/apis/batch/v1/namespaces/default/jobs",
        ):
            self.server.call("DELETE", path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})

        def gone() -> bool:
            self.server.call("DELETE", PODS, {"gracePeriodSeconds": 0})
            return self.pods() == []

        until(gone, seconds=30)
        with self.lock:
            self.hosts.clear()
        self.server.call("DELETE", "/api/v1/nodes")
        self.seen_out.clear()


@dataclass(frozen=True)
class Ended:
    done: Done

    def wait(self, timeout_s: float) -> Done:
        return self.done

    def stop(self) -> None: ...


@contextmanager
def world(
    folder: Path, *, more: Mapping[str, Sequence[str]] | None = None, controllers: str = CONTROLLERS
) -> Iterator[World]:
    """Run the cluster, without nodes. more: program -> further flags."""
    words = {
        "kube-controller-manager": [f"--controllers={controllers}", "--concurrent-replicaset-syncs=1"],
        "kube-scheduler": [],
    }
    more = more or {}
    commands = {name: [*each, *more.get(name, ())] for name, each in words.items()}
    paths = {name: program(name) for name in commands}
    with running(program, folder, *more.get("kube-apiserver", ())) as server, ExitStack() as ends:
        kubeconfig = folder / "kubeconfig"
        cluster = {"server": f"https://127.0.0.1:{server.port}", "insecure-skip-tls-verify": True}
        context = {"cluster": "c", "user": "u"}
        kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "c", "cluster": cluster}], "users": [{"name": "u", "user": {"token": TOKEN}}],
            "contexts": [{"name": "x", "context": context}],
        }))  # fmt: skip
        for name, words in commands.items():
            log = ends.enter_context((folder / f"{name}.log").open("wb"))
            command = [paths[name], "--kubeconfig", kubeconfig, "--leader-elect=false", "--secure-port=0", *words]
            process = ends.enter_context(subprocess.Popen(command, stdout=log, stderr=log, env=spending_memory()))
            ends.callback(process.kill)
        made = World(server, folder)
        thread = threading.Thread(target=made.live, daemon=True)
        thread.start()
        try:
            yield made
        finally:
            made._over.set()
            thread.join(10)
