"""Repairs of broken nodes with a real API server; the fake hosts and kubelets are in real_cluster.py."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

import pytest
from kubernetes import client

from clients.waiting import Report, is_ready
from cluster.spec import Cluster
from operations import drain, removals
from operations.drain import MARK, DrainMark, Pause, Rules, cordon, mark_of
from operations.provisioning.bmc import Bmc
from operations.provisioning.machines import SiteMachine
from operations.provisioning.redfish import BmcError
from operations.provisioning.redfish import BmcErrorKind as Trouble
from operations.reboot import Rebooter, order
from operations.repair import records
from operations.repair.actuators import BmcPower, ByCommand, ByUp
from operations.repair.look import BY, RepairStep, worn_off
from operations.repair.records import RepairRecord
from operations.repair.run import RepairEnd, Repairs, Tools, retry
from tests.operations.real_cluster import World
from tests.operations.repairs import (
    SETTINGS,
    Wire,
    around,
    ends,
    joined,
    look,
    mend,
    renew,
    report_condition,
    silence,
)
from tests.waiting import until

pytestmark = pytest.mark.xdist_group("real_cluster")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "AGAIN_S", 0.5)


@pytest.fixture
def cluster(build: Callable[..., Cluster]) -> Cluster:
    return build({"repair": SETTINGS})


@pytest.fixture
def fleet(real: World) -> World:
    """Three healthy workers, with a pod on each."""
    joined(real)
    real.replicas("web", 3)
    until(lambda: real.ready("web") == 3, seconds=30)
    return real


def test_in_a_healthy_cluster_nothing_is_found(cluster: Cluster, fleet: World) -> None:
    repair_plan = look(cluster, fleet)
    assert (repair_plan.cases, repair_plan.tickets, repair_plan.decision.brakes) == ((), {}, ())


def test_a_host_whose_kubelet_is_silent_is_drained_rebooted_and_uncordoned(cluster: Cluster, fleet: World) -> None:
    silence(fleet, "worker-2")
    repair_plan = look(cluster, fleet)
    assert [(case.host, case.step, case.pods) for case in repair_plan.cases] == [("worker-2", RepairStep.REBOOT, 1)]
    assert ends(mend(cluster, fleet)) == {"worker-2": "mended"}
    node = fleet.core.read_node("worker-2")
    assert (is_ready(node), node.spec.unschedulable, mark_of(node)) == (True, None, None)
    assert [host.boots for host in fleet.hosts.values()] == [0, 1, 0]
    assert fleet.ready("web") == 3
    (record,) = records.repair_records(fleet.api()).items()
    assert (record[0], record[1].attempts, record[1].healed > 0, record[1].acted) == ("worker-2", 1, True, 0.0)
    (removal,) = removals.recorded_removals(fleet.api())[0]
    assert (removal.host, removal.by) == ("worker-2", BY)
    assert look(cluster, fleet).cases == ()


def test_a_host_that_does_not_respond_is_turned_off_and_on(cluster: Cluster, fleet: World) -> None:
    silence(fleet, "worker-2")
    fleet.hosts["worker-2"].answers = False
    wire = Wire(fleet)
    assert ends(mend(cluster, fleet, wire)) == {"worker-2": "mended"}
    assert wire.pressed == ["worker-2 off", "worker-2 on"]


def test_a_gpu_that_fell_off_the_bus_needs_a_power_cycle_although_the_host_responds(
    cluster: Cluster, fleet: World
) -> None:
    why = "GPU 0000:3b:00: Xid 79 (GPU has fallen off the bus): drain, then power-cycle the host"
    report_condition(fleet, "worker-2", "PreflightPassed", "False", "XidReported", why)
    fleet.hosts["worker-2"].verdict = "True"
    wire = Wire(fleet)
    repair_plan = look(cluster, fleet, wire)
    assert [(case.host, case.step, case.why) for case in repair_plan.cases] == [
        ("worker-2", RepairStep.POWER_CYCLE, why)
    ]
    assert ends(mend(cluster, fleet, wire)) == {"worker-2": "mended"}
    assert wire.pressed == ["worker-2 off", "worker-2 on"]


def test_a_dead_bmc_is_a_ticket_and_the_next_host_is_repaired(cluster: Cluster, fleet: World) -> None:
    silence(fleet, "worker-1", "worker-3")
    fleet.hosts["worker-1"].answers = False

    @contextmanager
    def dead(machine: SiteMachine) -> Iterator[Bmc]:
        raise BmcError(Trouble.UNREACHABLE, "BMC 10.9.0.11 does not answer: timed out")
        yield

    power = BmcPower({"worker-1": None}, dead)  # type: ignore[dict-item]
    done = mend(cluster, fleet, power)
    assert ends(done) == {"worker-1": "ticket", "worker-3": "mended"}
    assert "it can't be power-cycled: BMC 10.9.0.11 does not answer: timed out" in done["worker-1"].text
    assert "./menagerie repair lab --retry worker-1" in done["worker-1"].text
    node = fleet.core.read_node("worker-1")
    assert (node.spec.unschedulable, mark_of(node) is not None) == (True, True)
    repair_plan = look(cluster, fleet, power)
    assert (repair_plan.cases, list(repair_plan.tickets)) == ((), ["worker-1"])


def test_without_ssh_and_bmc_a_person_has_to_press_the_button(cluster: Cluster, fleet: World) -> None:
    silence(fleet, "worker-2")
    fleet.hosts["worker-2"].answers = False
    done = mend(cluster, fleet)["worker-2"]
    assert (done.end, "power-cycle it by hand: it has no BMC in the spec" in done.text) == (RepairEnd.TICKET, True)


def test_a_host_that_needs_a_person_is_drained_and_waits(cluster: Cluster, fleet: World) -> None:
    why = "GPU 0000:3b:00: Xid 64 (memory row could not be remapped): drain, then repair or replace it"
    report_condition(fleet, "worker-2", "PreflightPassed", "False", "XidReported", why)
    done = mend(cluster, fleet, Wire(fleet))
    assert (ends(done), fleet.hosts["worker-2"].boots) == ({"worker-2": "ticket"}, 0)
    assert why in done["worker-2"].text
    assert fleet.pods("worker-2") == []
    fleet.say(fleet.hosts["worker-2"])
    assert "return it to service: ./menagerie repair lab --retry worker-2" in look(cluster, fleet).tickets["worker-2"]
    assert retry(around(cluster, fleet), "worker-2").ticket
    assert [case.step for case in look(cluster, fleet).cases] == [RepairStep.GIVE_BACK]
    assert ends(mend(cluster, fleet)) == {"worker-2": "mended"}
    assert (fleet.core.read_node("worker-2").spec.unschedulable, fleet.hosts["worker-2"].boots) == (None, 0)


def test_a_repair_that_does_not_help_is_followed_by_a_stronger_one_and_finally_a_ticket(
    cluster: Cluster, fleet: World
) -> None:
    silence(fleet, "worker-2")
    host = fleet.hosts["worker-2"]
    steps = []
    for _ in range(3):
        host.boot_s = 600
        (case,) = look(cluster, fleet, Wire(fleet)).cases
        done = mend(cluster, fleet, Wire(fleet), back_s=1)["worker-2"]
        steps.append((case.step, case.record.attempts, done.end))
        host.away_until = 0.0
    assert steps == [
        (RepairStep.REBOOT, 0, RepairEnd.FAILED),
        (RepairStep.POWER_CYCLE, 1, RepairEnd.FAILED),
        (RepairStep.POWER_CYCLE, 2, RepairEnd.TICKET),
    ]
    assert "3 repairs did not help: worker-2: gave up after 1 s" in done.text


def test_the_last_attempt_is_a_reinstallation_if_the_spec_enables_it(
    build: Callable[..., Cluster], fleet: World
) -> None:
    cluster = build({"repair": {**SETTINGS, "reinstall": True}})
    silence(fleet, "worker-2")
    records.note(fleet.api(), "worker-2", lambda record: replace(record, attempts=2))
    installed = []

    def reinstall(host: str, report: Report) -> None:
        installed.append(host)
        own = fleet.hosts[host]
        own.away_from, own.away_until = time.monotonic(), time.monotonic() + 0.5

    wire = Wire(fleet)
    assert [case.step for case in look(cluster, fleet, wire).cases] == [RepairStep.REINSTALL]
    assert ends(mend(cluster, fleet, wire, reinstall=reinstall)) == {"worker-2": "mended"}
    assert (installed, wire.pressed) == (["worker-2"], [])


@pytest.mark.parametrize("killed", ["after the cordon", "while it boots", "after the boot"])
def test_a_killed_run_is_resumed(build: Callable[..., Cluster], fleet: World, killed: str) -> None:
    cluster = build({"repair": SETTINGS})
    silence(fleet, "worker-2")
    host = fleet.hosts["worker-2"]
    cordon(fleet.api(), "worker-2", DrainMark(BY, "NotReady"))
    if killed != "after the cordon":
        host.boot_s = 2.0 if killed == "while it boots" else 0.2
        old = host.boot_id
        records.note(fleet.api(), "worker-2", lambda _: RepairRecord(boot=old, acted=time.time()))
        fleet.start("worker-2", order(old))
    if killed == "after the boot":
        until(lambda: host.boot_id != old, seconds=30)
    repair_plan = look(cluster, fleet)
    (case,) = repair_plan.cases
    assert (case.host, case.step) == (
        "worker-2",
        RepairStep.GIVE_BACK if killed == "after the boot" else RepairStep.REBOOT,
    )
    # A machine that was rebooted a moment ago is on its way.
    patient = build({"repair": {**SETTINGS, "node_startup": "10m"}})
    assert ends(mend(patient, fleet, plan_=repair_plan)) == {"worker-2": "mended"}
    assert (host.boots, fleet.core.read_node("worker-2").spec.unschedulable) == (1, None)
    assert removals.recorded_removals(fleet.api())[0] == ()


def test_a_machine_that_recovered_during_its_drain_is_not_rebooted(cluster: Cluster, fleet: World) -> None:
    silence(fleet, "worker-2")
    repair_plan = look(cluster, fleet)
    fleet.say(fleet.hosts["worker-2"])
    done = mend(cluster, fleet, plan_=repair_plan)["worker-2"]
    assert (done.end, done.text, fleet.hosts["worker-2"].boots) == (
        RepairEnd.MENDED,
        "became healthy without a repair",
        0,
    )


class Mending(Wire):
    """Reboot the host, after which the disk is writable."""

    def on(self, host: str, pause: Pause) -> None:
        super().on(host, pause)
        report_condition(self.fleet, host, "ReadonlyFilesystem", "False", "Fine", "")


def test_a_condition_that_persists_after_the_reboot_means_that_the_repair_did_not_help(
    cluster: Cluster, fleet: World
) -> None:
    report_condition(fleet, "worker-2", "ReadonlyFilesystem", "True", "Readonly", "/ is read-only")
    done = mend(cluster, fleet, Wire(fleet), back_s=4)["worker-2"]
    assert (done.end, "ReadonlyFilesystem is still True" in done.text) == (RepairEnd.FAILED, True)
    assert fleet.core.read_node("worker-2").spec.unschedulable
    assert ends(mend(cluster, fleet, Mending(fleet))) == {"worker-2": "mended"}


def test_pods_that_a_budget_protects_are_waited_for_and_deleted_after_the_hard_limit(
    cluster: Cluster, fleet: World
) -> None:
    report_condition(fleet, "worker-2", "ReadonlyFilesystem", "True", "Readonly", "/ is read-only")
    fleet.budget("all", "web", 3)
    quick = Rules(timeout_s=1)
    done = mend(cluster, fleet, Wire(fleet), rules=quick)["worker-2"]
    assert (done.end, len(fleet.pods("worker-2"))) == (RepairEnd.POSTPONED, 1)
    assert "It stays cordoned; 7d after the cordon, these pods are deleted" in done.text
    assert fleet.core.read_node("worker-2").spec.unschedulable
    mark = mark_of(fleet.core.read_node("worker-2"))
    assert mark
    old = (datetime.now(UTC) - timedelta(days=7, minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    text = json.dumps(asdict(replace(mark, since=old)))
    fleet.merge("/api/v1/nodes/worker-2", {"metadata": {"annotations": {MARK: text}}})
    said: list[str] = []
    wire = Mending(fleet)
    here = around(cluster, fleet)
    tools = Tools(Rebooter(cluster, fleet.api, fleet, quick, 30), wire, ByCommand(), lambda *_: None, quick)
    repairs = Repairs(here, tools)
    repair_plan = look(cluster, fleet, wire)
    repairs.run(repair_plan, repair_plan.allowed, said.append)
    assert ends(repairs.results) == {"worker-2": "mended"}
    assert any("the hard limit of the drain has passed" in line for line in said)
    assert wire.pressed == ["worker-2 off", "worker-2 on"]


def test_a_storage_host_waits_for_its_budget_without_limit(build: Callable[..., Cluster], fleet: World) -> None:
    disks = {"loop": {"by_id": "lab-EMPTY_*", "count": 1, "min_size": "10GiB"}}
    ceph = {"hosts": ["workers"], "disks": disks, "failure_domain": "host", "teams": {}}
    repair = {**SETTINGS, "drain_hard_limit": "0s"}
    cluster = build({"repair": repair, "sites": {"onprem": {"ceph": ceph}}})
    report_condition(fleet, "worker-2", "ReadonlyFilesystem", "True", "Readonly", "/ is read-only")
    fleet.budget("all", "web", 3)
    wire = Wire(fleet)
    done = mend(cluster, fleet, wire, rules=Rules(timeout_s=1))["worker-2"]
    assert (done.end, "there is no time limit for Ceph's disruption budgets" in done.text) == (
        RepairEnd.POSTPONED,
        True,
    )
    assert (len(fleet.pods("worker-2")), wire.pressed) == (1, [])


def test_pods_without_a_controller_are_listed_and_waited_for(cluster: Cluster, fleet: World) -> None:
    silence(fleet, "worker-2")
    fleet.pod("bare", "worker-2")
    (case,) = look(cluster, fleet).cases
    assert case.unmanaged == ("default/bare",)
    done = mend(cluster, fleet)["worker-2"]
    assert (done.end, fleet.hosts["worker-2"].boots) == (RepairEnd.POSTPONED, 0)
    assert "default/bare: it has no controller" in done.text


def test_repairs_are_forgotten_when_a_host_has_been_healthy_for_long_enough(cluster: Cluster, fleet: World) -> None:
    silence(fleet, "worker-2")
    mend(cluster, fleet)
    silence(fleet, "worker-2")
    (case,) = look(cluster, fleet, Wire(fleet)).cases
    assert (case.step, case.record.attempts) == (RepairStep.POWER_CYCLE, 1)
    mend(cluster, fleet, Wire(fleet))
    snapshot, known = look(cluster, fleet).snapshot, records.repair_records(fleet.api())
    assert worn_off(cluster.spec.repair, snapshot, known) == []
    later = replace(snapshot, fleet=replace(snapshot.fleet, now=snapshot.fleet.now + 3601))
    assert worn_off(cluster.spec.repair, later, known) == ["worker-2"]


def test_a_worker_in_the_region_is_replaced(build: Callable[..., Cluster], fleet: World) -> None:
    region = {"machine": "lab-small", "min": 1, "max": 2, "max_unhealthy": "1"}
    cluster = build({"repair": SETTINGS, "pools": {"region": region}})
    fleet.add("lab-region-1")
    renew(fleet, "lab-region-1")
    fleet.merge("/api/v1/nodes/lab-region-1", {"metadata": {"labels": {"menagerie/pool": "region"}}})
    address = [{"type": "InternalIP", "address": "10.77.0.201"}]
    fleet.merge("/api/v1/nodes/lab-region-1/status", {"status": {"addresses": address}})
    silence(fleet, "lab-region-1")
    (case,) = look(cluster, fleet).cases
    assert (case.step, case.pool) == (RepairStep.REPLACE, "region")
    done = mend(cluster, fleet)["lab-region-1"]
    assert (done.end, "delete the machine of lab-region-1" in done.text) == (RepairEnd.TICKET, True)
    retry(around(cluster, fleet), "lab-region-1")
    killed: list[str] = []
    made: list[str] = []
    replacer = ByUp(fleet.api, killed.append, lambda: made.append("up"))
    done = mend(cluster, fleet, replacer=replacer)["lab-region-1"]
    assert (done.end, killed, made) == (RepairEnd.MENDED, ["lab-region-1"], ["up"])
    with pytest.raises(client.ApiException, match="404"):
        fleet.core.read_node("lab-region-1")
