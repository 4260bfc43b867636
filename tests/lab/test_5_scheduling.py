"""A pool of real hosts that grows and shrinks, and gangs on real kubelets, in the lab."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.lease import Lease
from clients.waiting import wait_until
from cluster.autoscaler import LEASE
from cluster.load import find_cluster, load_cluster
from cluster.spec import Cluster
from components.scheduling import gangs
from operations.stack import access_to
from operations.verify.workload import IMAGE
from tests.bench import on_lab
from tests.lab.support import ROOT, Run, menagerie

pytestmark = [pytest.mark.lab, pytest.mark.timeout(2400)]


@pytest.fixture(scope="module")
def cluster(lab: Run) -> Cluster:
    return load_cluster(find_cluster("lab", ROOT))


def test_a_host_boots_for_a_job_and_is_removed_when_idle(cluster: Cluster) -> None:
    skipped = menagerie("verify", "lab", "--only", "growth", "--json").json["proofs"][0]
    assert skipped["outcome"] == "skipped"
    assert "run ./menagerie autoscaler run lab --yes" in skipped["seen"]
    with on_lab.autoscaler() as log:
        lease = Lease(access_to(cluster).api(), LEASE, "test")
        wait_until(lambda: "" if lease.other() else "the Lease has no holder", 60, lambda _: None)
        verified = menagerie("verify", "lab", "--only", "growth", "--json", timeout_s=1200)
        assert verified.code == 0, verified.out + log()
    assert verified.json["proofs"][0]["outcome"] == "proved"
    print(verified.json["proofs"][0]["seen"])


class Gangs:
    """Jobs in one namespace whose pods each need a worker."""

    def __init__(self, api: client.ApiClient, workers: int, millicores: int) -> None:
        self.core, self.batch = client.CoreV1Api(api), client.BatchV1Api(api)
        self.groups = client.CustomObjectsApi(api)
        self.members = workers // 2 + 1
        self._millicores = millicores

    def submit(self, name: str) -> None:
        container = {
            "name": "member",
            "image": IMAGE,
            "command": ["sleep", "3600"],
            "resources": {"requests": {"cpu": f"{self._millicores * 6 // 10}m"}},
        }
        pod = {"schedulerName": "pack", "terminationGracePeriodSeconds": 0, "containers": [container]}
        self.batch.create_namespaced_job("default", gangs.job(name, self.members, pod))

    def pods(self, name: str) -> list[Any]:
        pods_: list[Any] = self.core.list_namespaced_pod("default", label_selector=f"job-name={name}").items
        return pods_

    def running(self, name: str) -> dict[str, str]:
        """Return UID -> host of the running pods."""
        return {pod.metadata.uid: pod.spec.node_name for pod in self.pods(name) if pod.status.phase == "Running"}

    def found_no_room(self, name: str) -> bool:
        version = gangs.api("1.36.0").partition("/")[2]
        groups = self.groups.list_namespaced_custom_object("scheduling.k8s.io", version, "default", "podgroups")
        (group,) = [item for item in groups["items"] if item["metadata"]["name"] == name]
        conditions = group.get("status", {}).get("conditions", [])
        return any(item["type"] == "PodGroupScheduled" and item["status"] == "False" for item in conditions)

    def delete(self, name: str) -> None:
        with suppress(ApiException):
            self.batch.delete_namespaced_job(name, "default", propagation_policy="Background")

    def until(self, reached: Callable[[], bool], what: str) -> None:
        wait_until(lambda: "" if reached() else what, 180, lambda _: None)


@pytest.fixture
def jobs(cluster: Cluster) -> Iterator[Gangs]:
    api = access_to(cluster).api()
    nodes = client.CoreV1Api(api).list_node().items
    cpu = [node.status.allocatable["cpu"] for node in nodes]
    gangs_ = Gangs(api, len(nodes), min(int(text[:-1]) if text.endswith("m") else int(text) * 1000 for text in cpu))
    yield gangs_
    for name in ("one", "other"):
        gangs_.delete(name)
    gangs_.until(lambda: not gangs_.pods("one") and not gangs_.pods("other"), "pods of gangs still exist")


def test_a_gang_restarts_as_a_whole_and_another_waits_without_running_pods(jobs: Gangs) -> None:
    jobs.submit("one")
    jobs.until(lambda: len(jobs.running("one")) == jobs.members, "the gang does not run")
    first = jobs.running("one")
    assert len(set(first.values())) == jobs.members
    victim = jobs.pods("one")[0].metadata
    jobs.core.delete_namespaced_pod(victim.name, "default", grace_period_seconds=0)
    jobs.until(
        lambda: len(jobs.running("one")) == jobs.members and not set(first) & set(jobs.running("one")),
        "the gang has not restarted as a whole",
    )
    jobs.submit("other")
    jobs.until(lambda: bool(jobs.pods("other")) and jobs.found_no_room("other"), "the other has not been considered")
    assert [pod.spec.node_name for pod in jobs.pods("other")] == [None] * jobs.members
    jobs.delete("one")
    jobs.until(lambda: len(jobs.running("other")) == jobs.members, "the other gang does not run")
