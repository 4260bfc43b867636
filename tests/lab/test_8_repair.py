"""`menagerie repair`: a worker of a site is rebooted, one of the region replaced, and both take work again."""

from __future__ import annotations

import time
from typing import Any

import pytest
from kubernetes import client

from clients.waiting import is_ready
from cluster.load import find_cluster, load_cluster
from operations.stack import access_to
from sandbox.lab import hosts
from tests.lab.support import ROOT, Run, menagerie

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]

HOST = "worker-3"
WORKER = "lab-region-1"


@pytest.fixture(scope="module")
def core(lab: Run) -> client.CoreV1Api:
    return client.CoreV1Api(access_to(load_cluster(find_cluster("lab", ROOT))).api())


def repairable_case(host: str) -> dict[str, Any]:
    """Return a dry run's case for a host when it may be repaired: 50 s until it is NotReady, and 10 more."""
    deadline = time.monotonic() + 180
    while True:
        dry_run = menagerie("repair", "lab", "--dry-run", "--json")
        cases: list[dict[str, Any]] = [
            case for case in dry_run.json["hosts"] if case["host"] == host and case["allowed"]
        ]
        if cases:
            return cases[0]
        assert time.monotonic() < deadline, dry_run.out + dry_run.err
        time.sleep(5)


def outcomes(done: Run) -> dict[str, str]:
    return {case["host"]: case["end"] for case in done.json["hosts"]}


def test_a_healthy_cluster_is_left_alone(lab: Run) -> None:
    done = menagerie("repair", "lab", "--yes")
    assert (done.code, done.out.strip()) == (0, "lab: nothing to repair; checked 4 nodes"), done.err


def test_a_host_whose_kubelet_has_died_is_rebooted_and_takes_work_again(core: client.CoreV1Api) -> None:
    before = core.read_node(HOST).status.node_info.boot_id
    hosts.run(HOST, ["systemctl", "stop", "kubelet"])
    assert repairable_case(HOST)["step"] == "reboot"
    done = menagerie("repair", "lab", "--yes", "--json")
    assert (done.code, outcomes(done)) == (0, {HOST: "mended"}), done.out + done.err
    node = core.read_node(HOST)
    assert (is_ready(node), node.spec.unschedulable, node.status.node_info.boot_id != before) == (True, None, True)


@pytest.mark.soak
def test_a_worker_of_the_region_without_power_is_replaced(core: client.CoreV1Api) -> None:
    before = core.read_node(WORKER).metadata.uid
    hosts.kill(WORKER)
    assert repairable_case(WORKER)["step"] == "replace"
    done = menagerie("repair", "lab", "--yes", "--json")
    assert (done.code, outcomes(done)) == (0, {WORKER: "mended"}), done.out + done.err
    node = core.read_node(WORKER)
    assert (is_ready(node), node.metadata.uid != before) == (True, True)
    status = menagerie("status", "lab", "--json")
    assert status.code == 0, status.out
