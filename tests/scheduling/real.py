"""A real API server, controller manager and scheduler with flags from a cluster's spec, and hand-made nodes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from cluster.spec import Cluster
from components.control_plane import gangs, scheduler
from components.control_plane.host.api import ApiError
from components.control_plane.host.gangs import Keeper
from components.control_plane.objects import applied
from components.scheduling import priorities
from components.scheduling.gangs import api as pod_groups
from tests.operations.real_cluster import CONTROLLERS, Host, World, stamp, world
from tests.waiting import until

NAMESPACE = "/api/v1/namespaces/default"
PATIENCE_S = 120
GPUS = 8


class Api:
    """Like `components.control_plane.host.api.Api`, with the program's rights in a cluster, but without waiting for changes."""

    def __init__(self, world_: World) -> None:
        self._world = world_

    def call(
        self, method: str, path: str, body: Any = None, kind: str = "application/json", timeout_s: float = 30
    ) -> Any:
        status, answer = self._world.server.call(method, path, body, kind, as_user=gangs.USER)
        if status >= 400:
            raise ApiError(status, answer["message"])
        return answer

    def watch(self, path: str, version: str, for_s: int = 0) -> Iterator[Any]:
        return iter(())


class Scheduled:
    """What tests do and see. Nodes have eight GPUs and are named by number."""

    def __init__(self, world_: World, cluster: Cluster) -> None:
        self.world = world_
        version = cluster.spec.kubernetes.version
        self.keeper = Keeper(Api(world_), pod_groups(version)) if cluster.spec.scheduling.gangs else None  # type: ignore[arg-type]

    def nodes(self, count: int, labels: Callable[[int], Mapping[str, str]] = lambda number: {}) -> None:
        for number in range(count):
            name = f"n{number}"
            own = {"kubernetes.io/hostname": name, **labels(number)}
            body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": own}}
            self.world.call("POST", "/api/v1/nodes", body)
            room = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(GPUS)}
            ready = {"type": "Ready", "status": "True", "reason": "Test", "message": "", "lastHeartbeatTime": stamp(0)}
            self.world.merge(
                f"/api/v1/nodes/{name}/status",
                {"status": {"capacity": room, "allocatable": room, "conditions": [ready]}},
            )
            self.world.merge(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
            with self.world.lock:
                self.world.hosts[name] = Host(name)

    def pod(self, name: str, gpus: int, labels: Mapping[str, str] | None = None, **spec: Any) -> None:
        metadata = {"name": name, "labels": {"app": "test", **(labels or {})}}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**container(gpus), **spec}}
        self.world.call("POST", f"{NAMESPACE}/pods", body)

    def make(self, path: str, body: Any) -> Any:
        return self.world.call("POST", path, body)

    def places(self, selector: str = "") -> dict[str, str]:
        """Return pod -> node, for pods that are bound and neither finished nor being deleted."""
        items = self.world.call("GET", f"{NAMESPACE}/pods?labelSelector={selector}")["items"]
        return {
            each["metadata"]["name"]: each["spec"]["nodeName"]
            for each in items
            if each["spec"].get("nodeName")
            and "deletionTimestamp" not in each["metadata"]
            and each["status"]["phase"] not in ("Failed", "Succeeded")
        }

    def until(self, what: Callable[[], bool]) -> None:
        """Wait for a condition, running the keeper if the spec has gangs."""

        def holds() -> bool:
            if self.keeper:
                self.keep()
            return what()

        until(holds, seconds=PATIENCE_S)

    def keep(self) -> None:
        assert self.keeper
        self.keeper.follow()

    def end_pod(self, name: str, phase: str = "Succeeded") -> None:
        self.world.merge(f"{NAMESPACE}/pods/{name}/status", {"status": {"phase": phase}})

    def clear(self) -> None:
        for path in ("/apis/apps/v1/namespaces/default/replicasets", "/apis/batch/v1/namespaces/default/jobs"):
            self.world.server.call("DELETE", path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})

        def gone() -> bool:
            self.world.server.call("DELETE", f"{NAMESPACE}/pods", {"gracePeriodSeconds": 0})
            return self.world.pods() == []

        until(gone, seconds=PATIENCE_S)
        with self.world.lock:
            self.world.hosts.clear()
        self.world.server.call("DELETE", "/api/v1/nodes")


def container(gpus: int) -> dict[str, Any]:
    amounts = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    resources = {"requests": {"cpu": "1", "memory": "1Gi", **amounts}, "limits": amounts}
    return {
        "containers": [{"name": "c", "image": "pause", "resources": resources}],
        "terminationGracePeriodSeconds": 1,
    }


@contextmanager
def scheduled(cluster: Cluster, folder: Path) -> Iterator[Scheduled]:
    """Run the programs with the cluster's own configuration and priorities."""
    config = folder / scheduler.FILE
    configuration = yaml.safe_load(scheduler.render(cluster))
    configuration["clientConnection"]["kubeconfig"] = str(folder / "kubeconfig")
    configuration["leaderElection"]["leaderElect"] = False
    config.write_text(yaml.safe_dump(configuration))
    programs = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
    more = {name: [f"--{flag}={value}" for flag, value in gangs.flags(cluster, name).items()] for name in programs}
    # Controllers create pods as their ServiceAccounts, as in a cluster, not as the tester, who may do everything.
    more["kube-controller-manager"] += ["--use-service-account-credentials"]
    more["kube-scheduler"] = [*more["kube-scheduler"], f"--config={config}"]
    controllers = f"{CONTROLLERS},deployment-controller,garbage-collector-controller"
    if cluster.spec.scheduling.gangs:
        controllers += ",podgroup-protection-controller"
    with world(folder, more=more, controllers=controllers) as world_:
        for thing in (*priorities.objects(), *gangs.objects(cluster)):
            status, message = world_.server.apply(json.loads(json.dumps(applied(thing))))
            assert status < 300, message
        yield Scheduled(world_, cluster)
