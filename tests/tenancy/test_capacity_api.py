"""Moves of hosts on a real API server: what is patched, what waits, and what a second run does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from clients.kube import Kube
from cluster.allocations import TEAM_KEY
from cluster.spec import Cluster
from controllers.tenancy.capacity.plan import MoveVerb
from tests.tenancy import hosts
from tests.tenancy.hosts import STRATEGIC, converge, of_pools, run_on, teams
from tests.tenancy.real import Server
from tests.tenancy.test_plan import roster
from tests.waiting import until

pytestmark = pytest.mark.xdist_group("tenancy")

ALL = roster("ana bo", robotics="ana", vision="bo")
R, V, NOBODY = ("robotics", "robotics"), ("vision", "vision"), ("", "")
Build = Callable[..., Cluster]


@pytest.fixture
def server(server: Server, build: Build) -> Iterator[Server]:
    settings = of_pools(build, {"workers": 3}).spec.tenancy
    assert settings
    server.sync(ALL, settings)
    hosts.join(server, "workers-0", "workers-1", "workers-2")
    yield server
    hosts.clear(server)


def allocated(build: Build, **given: int) -> Cluster:
    return of_pools(build, {"workers": 3}, *(("workers", team, count) for team, count in given.items()))


def versions(server: Server) -> dict[str, str]:
    group = "/apis/admissionregistration.k8s.io/v1"
    paths = ["/api/v1/nodes", "/apis/scheduling.k8s.io/v1/priorityclasses"]
    paths += [
        f"{group}/{kind}admission{what}"
        for kind in ("validating", "mutating")
        for what in ("policies", "policybindings")
    ]
    return {
        f"{path}/{each['metadata']['name']}": each["metadata"]["resourceVersion"]
        for path in paths
        for each in server.get(path)["items"]
    }


def test_hosts_become_their_teams_and_a_second_run_changes_nothing(server: Server, build: Build) -> None:
    cluster = allocated(build, robotics=1, vision=1)
    review, applied = converge(server, cluster)
    assert (applied.failed, len(applied.changes)) == ((), review.changes)
    assert teams(server) == {"workers-0": R, "workers-1": V, "workers-2": NOBODY}
    before = versions(server)
    review, applied = converge(server, cluster)
    assert (review.changes, applied.changes, versions(server)) == (0, (), before)


def test_a_changed_or_deleted_policy_is_restored(server: Server, build: Build) -> None:
    cluster = allocated(build, robotics=1)
    converge(server, cluster)
    group = "/apis/admissionregistration.k8s.io/v1"
    policy = f"{group}/validatingadmissionpolicies/menagerie-team-pods"
    server.real.call("PATCH", policy, {"spec": {"failurePolicy": "Ignore"}}, "application/merge-patch+json")
    server.real.call("DELETE", f"{group}/mutatingadmissionpolicybindings/menagerie-team-tolerations")
    review, applied = converge(server, cluster)
    assert {rule.what: rule.reason for rule in review.rules} == {
        "ValidatingAdmissionPolicy menagerie-team-pods": "spec.failurePolicy is Ignore, not Fail",
        "MutatingAdmissionPolicyBinding menagerie-team-tolerations": "it is missing",
    }
    assert (applied.failed, server.get(policy)["spec"]["failurePolicy"]) == ((), "Fail")


def test_a_move_changes_only_its_own_label_and_taint(server: Server, build: Build) -> None:
    others = [
        {"key": "menagerie.dev/preflight", "effect": "NoSchedule"},
        {"key": TEAM_KEY, "value": "x", "effect": "NoExecute"},
    ]
    metadata = {"labels": {"rack": "r1"}, "annotations": {"menagerie.dev/out-of-service": "{}"}}
    cordoned = {"metadata": metadata, "spec": {"taints": others, "unschedulable": True}}
    path = "/api/v1/nodes/workers-0"
    server.real.call("PATCH", path, cordoned, STRATEGIC)
    before = server.get(path)
    converge(server, allocated(build, robotics=3))
    node = server.get(path)
    own = {"key": TEAM_KEY, "value": "robotics", "effect": "NoSchedule"}
    assert node["spec"] == {**before["spec"], "taints": [*before["spec"]["taints"], own]}
    assert node["metadata"]["labels"] == {**before["metadata"]["labels"], TEAM_KEY: "robotics"}
    assert node["metadata"]["annotations"] == before["metadata"]["annotations"]
    converge(server, allocated(build))
    node = server.get(path)
    assert (node["spec"], node["metadata"]["labels"]) == (before["spec"], before["metadata"]["labels"])


def test_a_taint_that_somebody_adds_in_the_meantime_stays(
    server: Server, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node's taints are one list: overwriting it could remove those of the kubelet or an operation."""
    cluster = allocated(build, robotics=1)
    theirs = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
    read, times = Kube.read, [0]

    def slow(self: Kube, kind: str, name: str) -> dict[str, Any]:
        node = read(self, kind, name)
        times[0] += 1
        if times[0] == 1:
            server.real.call("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": [theirs]}}, STRATEGIC)
        return node

    monkeypatch.setattr(Kube, "read", slow)
    _, applied = converge(server, cluster)
    keys = [each["key"] for each in server.get("/api/v1/nodes/workers-0")["spec"]["taints"]]
    assert (applied.failed, times[0], sorted(keys)) == ((), 2, ["node.kubernetes.io/unreachable", TEAM_KEY])


def test_a_busy_host_waits_for_its_pods_and_nothing_is_evicted(server: Server, build: Build) -> None:
    converge(server, allocated(build, robotics=3))
    for number in range(3):
        run_on(server, f"workers-{number}", "team-robotics", f"train-{number}")
    hosts.end(server, "team-robotics", "train-1")
    cluster = allocated(build, robotics=1, vision=2)
    review, _ = converge(server, cluster)
    assert [(move.verb, move.host.name, move.waits) for move in review.plan.moves] == [
        (MoveVerb.GIVE, "workers-1", ()), (MoveVerb.CLOSE, "workers-2", ("team-robotics/train-2",)),
    ]  # fmt: skip
    assert teams(server) == {"workers-0": R, "workers-1": V, "workers-2": ("robotics", "vision")}
    review, applied = converge(server, cluster)
    assert ([move.verb for move in review.plan.moves], applied.changes) == ([MoveVerb.WAIT], ())
    assert server.real.call("GET", "/api/v1/namespaces/team-robotics/pods/train-2")[1]["metadata"].get("deletionTimestamp") is None  # fmt: skip
    hosts.end(server, "team-robotics", "train-2")
    converge(server, cluster)
    assert teams(server) == {"workers-0": R, "workers-1": V, "workers-2": V}


def test_on_request_pods_that_a_move_waits_for_are_evicted_within_their_budgets(server: Server, build: Build) -> None:
    converge(server, allocated(build, robotics=3))
    owner = {"apiVersion": "v1", "kind": "ReplicationController", "name": "x", "uid": "1", "controller": True}
    pods = "/api/v1/namespaces/team-robotics/pods"
    for number, labels in enumerate(({"app": "free"}, {"app": "kept"}, {"app": "alone"})):
        run_on(server, f"workers-{number}", "team-robotics", f"p{number}")
        metadata = {"labels": labels, "ownerReferences": [owner] if number < 2 else []}
        server.real.call("PATCH", f"{pods}/p{number}", {"metadata": metadata}, "application/merge-patch+json")
    budgets = "/apis/policy/v1/namespaces/team-robotics/poddisruptionbudgets"
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}}
    server.real.call("POST", budgets, {"metadata": {"name": "b"}, "spec": spec})
    _, applied = converge(server, allocated(build, vision=3), evict=True)
    assert applied.evicted == ("team-robotics/p0",)
    kept, alone = applied.kept
    assert "team-robotics/p1 can't be evicted" in kept
    assert alone == "team-robotics/p2 it has no controller that would recreate it elsewhere"
    assert "deletionTimestamp" in server.get(f"{pods}/p0")["metadata"]
    server.real.call("DELETE", f"{budgets}/b")


def test_a_host_that_joins_gets_its_team_while_the_directory_is_down(server: Server, build: Build) -> None:
    server.real.call("DELETE", "/api/v1/nodes/workers-1")
    cluster = allocated(build, robotics=3)
    review, _ = converge(server, cluster)
    assert review.plan.notices == (
        "robotics has 2 of its 3 hosts of workers, which has 2 hosts now; it gets hosts that join in the next run",
    )
    hosts.join(server, "workers-1")
    converge(server, cluster)
    assert set(teams(server).values()) == {R}


def test_a_team_that_left_keeps_its_hosts_until_its_allocation_is_removed(server: Server, build: Build) -> None:
    cluster = allocated(build, robotics=1, vision=1)
    converge(server, cluster)
    assert cluster.spec.tenancy
    server.sync(roster("ana bo", robotics="ana"), cluster.spec.tenancy)
    review, _ = converge(server, cluster)
    assert [text.partition(" since ")[0] for text in review.plan.conflicts] == ["vision has been frozen"]
    assert teams(server)["workers-1"] == V
    converge(server, allocated(build, robotics=1))
    assert teams(server)["workers-1"] == NOBODY
    server.sync(ALL, cluster.spec.tenancy)


def test_a_class_at_or_below_the_borrowers_is_reported(server: Server, build: Build) -> None:
    low = {"metadata": {"name": "lowest"}, "value": -2_000_000}
    server.real.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", low)
    try:
        review, _ = converge(server, allocated(build))
        (notice,) = review.plan.notices
        assert notice.startswith(
            "PriorityClass lowest has value -2000000, which is not above that of menagerie-borrowed"
        )
    finally:
        server.real.call("DELETE", "/apis/scheduling.k8s.io/v1/priorityclasses/lowest")
        until(lambda: server.real.call("GET", "/apis/scheduling.k8s.io/v1/priorityclasses/lowest")[0] == 404)
