"""`menagerie audit`: nothing fails, and a change by hand is found by its ID and corrected."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox.lab.hosts import run as on_host
from tests.lab.support import Run, menagerie

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]

HOST, KUBECONFIG = "worker-2", "/etc/kubernetes/kubelet.conf"
OF_FILES = ("1.1.9", "1.1.10", *(f"4.1.{number}" for number in range(1, 11)), "4.2.7", "M.1", "M.2", "M.3")
"""Controls of workers that need access to the host; there is none to the worker in the region. A lab's buckets have no locks (M.24)."""


@pytest.fixture
def broken(lab: Run) -> Iterator[None]:
    assert on_host(HOST, ["chmod", "0644", KUBECONFIG]).returncode == 0
    yield
    on_host(HOST, ["chmod", "0600", KUBECONFIG])


def test_nothing_fails_and_only_files_of_the_worker_in_the_region_are_not_checked(lab: Run) -> None:
    done = menagerie("audit", "lab", "--json")
    results = {result["id"]: result for result in done.json["results"]}
    failed = {id_: result["seen"] for id_, result in results.items() if result["status"] == "fail"}
    assert (done.code, failed) == (0, {}), done.err
    unseen = {id_: result["findings"] for id_, result in results.items() if result["status"] == "not seen"}
    others = {
        id_: [finding for finding in findings if finding["ok"] is None and not finding["expected"]]
        for id_, findings in unseen.items()
    }
    assert {id_: findings for id_, findings in others.items() if findings} == {}
    assert set(unseen) == {*OF_FILES, "M.24"}


@pytest.mark.usefixtures("broken")
def test_a_change_by_hand_fails_only_its_control_and_configure_corrects_it() -> None:
    done = menagerie("audit", "lab", "--failed", "--json")
    assert done.code == 1, done.err
    (failed,) = done.json["results"]
    assert (failed["id"], failed["seen"]) == ("4.1.5", f"{HOST}: {KUBECONFIG} is 0644 root:root")
    repaired = menagerie("configure", "lab", "--limit", HOST, "--tags", "kubelet", "--yes")
    assert repaired.code == 0, repaired.err
    assert menagerie("audit", "lab", "--section", "4.1.5", "--failed").code == 0
