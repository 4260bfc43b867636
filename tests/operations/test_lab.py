"""Actions on the lab's machines for proofs; no machine is changed here."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

import pytest

from cluster.spec import Cluster
from operations import lab as operations_lab
from operations.lab import LabMachines, machines
from sandbox.lab.errors import LabError


def nothing() -> None:
    pass


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Records programs run inside hosts. The program `failing` exits with 1."""
    ran: list[list[str]] = []

    def run(host: str, argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
        ran.append([host, *argv])
        return subprocess.CompletedProcess(argv, int("failing" in argv), "", "it failed")

    monkeypatch.setattr(operations_lab.hosts, "run", run)
    return ran


def test_only_the_labs_machines_may_be_broken(lab: Cluster) -> None:
    control_plane = lab.spec.control_plane.model_copy(update={"cloud": "azure"})
    elsewhere = Cluster(spec=lab.spec.model_copy(update={"control_plane": control_plane}), hosts=lab.hosts)
    assert isinstance(machines(lab, nothing), LabMachines)
    assert machines(elsewhere, nothing) is None


def test_a_unit_is_stopped_only_when_its_host_is_set_to_start_it_again(lab: Cluster, commands: list[list[str]]) -> None:
    LabMachines(lab, nothing).stop_unit("etcd-events-1", "etcd-events.service", 90)
    assert commands == [
        ["etcd-events-1", "systemd-run", "--on-active=90", "systemctl", "start", "etcd-events.service"],
        ["etcd-events-1", "systemctl", "stop", "etcd-events.service"],
    ]


def test_a_unit_that_would_not_be_started_again_is_not_stopped(lab: Cluster, commands: list[list[str]]) -> None:
    with pytest.raises(LabError, match="systemd-run .* failed on api-1: it failed"):
        LabMachines(lab, nothing).stop_unit("api-1", "failing", 90)
    assert len(commands) == 1
