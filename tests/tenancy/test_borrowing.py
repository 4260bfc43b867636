"""Idle hosts are borrowed and returned to their team, on a real API server with a real scheduler.

Simulated kubelets report that bound pods run. A terminating pod ends when the test says that its checkpoint is written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cluster.allocations import BORROWED
from cluster.spec import Cluster
from tests.control_plane.real_api import started
from tests.operations.real_cluster import program
from tests.tenancy import hosts
from tests.tenancy.real import Server, serving
from tests.tenancy.test_admission import _in_force, pod
from tests.tenancy.test_plan import roster
from tests.tenancy.test_real_api import makes
from tests.waiting import until

pytestmark = pytest.mark.xdist_group("tenancy_borrowing")

ALL = roster("ana bo cleo dan", robotics="bo", vision="cleo")
WHOLE = {"requests": {"cpu": "8"}}
PATIENCE_S = 180
CREATED, OK = 201, 200


@pytest.fixture(scope="module")
def cluster(build: Callable[..., Cluster]) -> Cluster:
    both = (("workers", "robotics", 1), ("workers", "vision", 1))
    return hosts.of_pools(build, {"workers": 2}, *both, borrowing={"checkpoint": "3m", "most": "5m"})


@pytest.fixture(scope="module")
def _server(tmp_path_factory: pytest.TempPathFactory, cluster: Cluster) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("borrowing")
    scheduler = program("kube-scheduler")
    with serving(folder) as server_:
        assert cluster.spec.tenancy
        server_.sync(ALL, cluster.spec.tenancy)
        hosts.join(server_, "workers-0", "workers-1")
        _, applied = hosts.converge(server_, cluster)
        assert applied.failed == ()
        for id, space in (("dan", "user-dan"), ("bo", "team-robotics"), ("cleo", "team-vision")):
            until(lambda id=id, space=space: makes(server_, id, space))
        until(lambda: _in_force(server_, pod(priorityClassName=BORROWED)))
        until(lambda: hosts.gives_time(server_, "user-dan", 180))
        command = [scheduler, "--kubeconfig", folder / "kubeconfig", "--leader-elect=false", "--secure-port=0"]
        with started("kube-scheduler", command, folder):
            yield server_


@pytest.fixture
def server(_server: Server) -> Iterator[Server]:
    yield _server
    for each in _server.get("/api/v1/pods")["items"]:
        hosts.end(_server, each["metadata"]["namespace"], each["metadata"]["name"])
    until(lambda: not _server.get("/api/v1/pods")["items"])


def submit(server: Server, person: str, namespace: str, name: str, **spec: Any) -> None:
    """Submit a pod that takes a whole host."""
    body = pod(name=name, **spec)
    body["spec"]["containers"][0]["resources"] = WHOLE
    assert server.as_(person, "POST", f"/api/v1/namespaces/{namespace}/pods", body) == CREATED, server.said


def pod_of(server: Server, namespace: str, name: str) -> dict[str, Any]:
    document: dict[str, Any] = server.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
    return document


def runs(server: Server, namespace: str, name: str) -> str:
    """Return the host that the scheduler chose for a pod, and report the pod as running."""
    until(lambda: "nodeName" in pod_of(server, namespace, name)["spec"], seconds=PATIENCE_S)
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/status"
    server.real.call("PATCH", path, {"status": {"phase": "Running"}}, hosts.STRATEGIC)
    return str(pod_of(server, namespace, name)["spec"]["nodeName"])


def waits(server: Server, namespace: str, name: str) -> str:
    """Return the scheduler's message about a pod that it can't place."""

    def message() -> str:
        conditions = pod_of(server, namespace, name)["status"].get("conditions") or ()
        return next((each.get("message", "") for each in conditions if each["type"] == "PodScheduled"), "")

    until(lambda: bool(message()), seconds=PATIENCE_S)
    return message()


def test_idle_hosts_are_borrowed_and_returned_with_time_for_a_checkpoint(server: Server, cluster: Cluster) -> None:
    for number in range(2):
        submit(server, "dan", "user-dan", f"borrows-{number}", priorityClassName=BORROWED)
    at = {runs(server, "user-dan", f"borrows-{number}"): f"borrows-{number}" for number in range(2)}
    assert set(at) == {"workers-0", "workers-1"}
    review = hosts.capacity(server, cluster).look()
    assert ({pod.name for host in review.hosts for pod in host.pods if pod.borrowed}, review.plan.moves) == (
        {"user-dan/borrows-0", "user-dan/borrows-1"}, (),
    )  # fmt: skip

    submit(server, "bo", "team-robotics", "owner")
    victim, other = at["workers-0"], at["workers-1"]
    until(lambda: "deletionTimestamp" in pod_of(server, "user-dan", victim)["metadata"], seconds=PATIENCE_S)
    ending = pod_of(server, "user-dan", victim)
    assert ending["metadata"]["deletionGracePeriodSeconds"] == 180
    condition = next(each for each in ending["status"]["conditions"] if each["type"] == "DisruptionTarget")
    assert condition["reason"] == "PreemptionByScheduler"
    # The borrower writes its checkpoint; the owner is nominated for the host, and waits.
    until(
        lambda: pod_of(server, "team-robotics", "owner")["status"].get("nominatedNodeName") == "workers-0",
        seconds=PATIENCE_S,
    )
    assert "nodeName" not in pod_of(server, "team-robotics", "owner")["spec"]
    hosts.end(server, "user-dan", victim)
    assert runs(server, "team-robotics", "owner") == "workers-0"
    assert "deletionTimestamp" not in pod_of(server, "user-dan", other)["metadata"], (
        "the host of an absent team is not taken back"
    )


def test_a_borrowing_pod_never_takes_a_host_from_anybody(server: Server) -> None:
    submit(server, "bo", "team-robotics", "owner")
    assert runs(server, "team-robotics", "owner") == "workers-0"
    submit(server, "dan", "user-dan", "borrows-0", priorityClassName=BORROWED)
    assert runs(server, "user-dan", "borrows-0") == "workers-1"
    submit(server, "cleo", "team-vision", "borrows-1", priorityClassName=BORROWED)
    assert "Insufficient cpu" in waits(server, "team-vision", "borrows-1")
    for space, name in (("team-robotics", "owner"), ("user-dan", "borrows-0")):
        assert "deletionTimestamp" not in pod_of(server, space, name)["metadata"]


def test_only_its_team_and_borrowers_use_an_idle_host(server: Server) -> None:
    submit(server, "dan", "user-dan", "guest")
    assert "2 node(s) had untolerated taint" in waits(server, "user-dan", "guest")
    submit(server, "cleo", "team-vision", "own")
    assert runs(server, "team-vision", "own") == "workers-1"
    submit(server, "cleo", "team-vision", "more")
    message = waits(server, "team-vision", "more")
    assert ("1 Insufficient cpu" in message, "1 node(s) had untolerated taint" in message) == (True, True), message


def test_a_borrowers_long_deletion_does_not_keep_the_owner_waiting(server: Server) -> None:
    """The scheduler waits for a terminating pod, so nobody may give it a longer grace period than the spec allows."""
    submit(server, "bo", "team-robotics", "borrows", priorityClassName=BORROWED)
    runs(server, "team-robotics", "borrows")
    path = "/api/v1/namespaces/team-robotics/pods/borrows"
    assert server.as_("bo", "DELETE", path, {"gracePeriodSeconds": 3600}) == 403
    assert "the grace period of a borrowing pod must be at most 300 s" in json.loads(server.said)["message"]
    assert "deletionTimestamp" not in pod_of(server, "team-robotics", "borrows")["metadata"]
