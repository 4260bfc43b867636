"""Hand-made hosts of a pool: Nodes without kubelets, and a spec that allocates them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cluster.allocations import BORROWED, TEAM_KEY
from cluster.pools import Host as Machine
from cluster.spec import Cluster
from controllers.tenancy.capacity.run import Applied, Capacity, CapacityReview
from tests.tenancy.real import Server
from tests.waiting import until

STRATEGIC = "application/strategic-merge-patch+json"


def of_pools(
    build: Callable[..., Cluster], pools: dict[str, int], *allocations: tuple[str, str, int], **more: Any
) -> Cluster:
    """Return a lab cluster with these machines and allocations.

    of_pools(build, {"workers": 4}, ("workers", "robotics", 2)) has machines workers-0 to workers-3.
    """
    machines = {
        pool: tuple(
            Machine.model_validate({"name": f"{pool}-{number}", "rack": "r1", "address": f"10.8.{index}.{number + 10}"})
            for number in range(count)
        )
        for index, (pool, count) in enumerate(pools.items())
    }
    allocated = [{"pool": pool, "team": team, "hosts": hosts} for pool, team, hosts in allocations]
    tenancy = {"directory": {"file": "people.yaml"}, "allocations": allocated, **more}
    return build({"tenancy": tenancy}, machines)


def join(server: Server, *names: str, **resources: str) -> None:
    """Add hosts whose Nodes are Ready and free."""
    for name in names:
        server.real.call(
            "POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}}
        )
        room = {"cpu": "8", "memory": "8Gi", "pods": "110", **resources}
        status = {"conditions": [{"type": "Ready", "status": "True"}], "capacity": room, "allocatable": room}
        server.real.call("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, STRATEGIC)
        server.real.call("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}}, STRATEGIC)


def capacity(server: Server, cluster: Cluster) -> Capacity:
    assert cluster.spec.tenancy
    return Capacity(server, cluster, cluster.spec.tenancy)


def converge(server: Server, cluster: Cluster, *, evict: bool = False) -> tuple[CapacityReview, Applied]:
    own = capacity(server, cluster)
    review = own.look(accept_loss=True)
    return review, own.apply(review, evict=evict)


def teams(server: Server) -> dict[str, tuple[str, str]]:
    """Return node -> (label, taint)."""
    by_node = {}
    for node in server.get("/api/v1/nodes")["items"]:
        taints = [each["value"] for each in node["spec"].get("taints") or () if each["key"] == TEAM_KEY]
        by_node[node["metadata"]["name"]] = (node["metadata"]["labels"].get(TEAM_KEY, ""), "".join(taints))
    return by_node


def run_on(server: Server, node: str, namespace: str, name: str, **spec: Any) -> None:
    """Create a pod that runs on the node, as if the scheduler had placed it there."""
    container = {"name": "c", "image": "none"}
    body = {"metadata": {"name": name}, "spec": {"containers": [container], "terminationGracePeriodSeconds": 1, **spec}}
    pods = f"/api/v1/namespaces/{namespace}/pods"
    status, answer = server.real.call("POST", pods, body)
    assert status == 201, answer
    target = {"metadata": {"name": name}, "target": {"apiVersion": "v1", "kind": "Node", "name": node}}
    status, answer = server.real.call("POST", f"{pods}/{name}/binding", target)
    assert status == 201, answer
    server.real.call("PATCH", f"{pods}/{name}/status", {"status": {"phase": "Running"}}, STRATEGIC)


def gives_time(server: Server, namespace: str, seconds: int) -> bool:
    """Whether the mutating policies already change borrowing pods. They take effect independently of the other policies."""
    spec = {"containers": [{"name": "c", "image": "none"}], "priorityClassName": BORROWED}
    body = {"metadata": {"name": "tried"}, "spec": spec}
    status, pod = server.real.call("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", body)
    return status == 201 and pod["spec"]["terminationGracePeriodSeconds"] == seconds


def end(server: Server, namespace: str, name: str) -> None:
    server.real.call("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}", {"gracePeriodSeconds": 0})


def clear(server: Server) -> None:
    """Delete all Nodes, policies and pods."""
    group = "/apis/admissionregistration.k8s.io/v1"
    for kind in ("validating", "mutating"):
        for what in ("policybindings", "policies"):
            server.real.call("DELETE", f"{group}/{kind}admission{what}")
    server.real.call("DELETE", "/apis/scheduling.k8s.io/v1/priorityclasses/menagerie-borrowed")

    def gone() -> bool:
        left = server.get("/api/v1/pods")["items"]
        for pod in left:
            end(server, pod["metadata"]["namespace"], pod["metadata"]["name"])
        return not left

    until(gone)
    server.real.call("DELETE", "/api/v1/nodes")
