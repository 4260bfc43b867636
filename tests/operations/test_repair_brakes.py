"""What prevents repairs from starting, with a real API server, and what is recorded."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from clients import notebook
from cluster.errors import RefusedError
from cluster.spec import Cluster
from operations import removals
from operations.breaker import BrakeKind, Removal
from operations.drain import DrainMark, Rules, cordon
from operations.reboot import Rebooter
from operations.removals import NoRoomError
from operations.repair import records
from operations.repair.actuators import ByCommand
from operations.repair.health import SKIP
from operations.repair.look import BY, limits_of, plan
from operations.repair.run import Repairs, Tools, keep
from tests.operations.real_cluster import World
from tests.operations.repairs import (
    NAMES,
    SETTINGS,
    NoPower,
    around,
    ends,
    joined,
    look,
    mend,
    silence,
)

pytestmark = pytest.mark.xdist_group("real_cluster")


@pytest.fixture
def cluster(build: Callable[..., Cluster]) -> Cluster:
    return build({"repair": SETTINGS})


@pytest.fixture
def fleet(real: World) -> World:
    return joined(real)


def test_too_many_at_once_are_left_alone_and_an_override_applies_to_one_run(
    build: Callable[..., Cluster], fleet: World
) -> None:
    cluster = build({"repair": {**SETTINGS, "max_unhealthy": "40%"}})
    silence(fleet, "worker-1", "worker-3")
    repair_plan = look(cluster, fleet)
    assert (repair_plan.allowed, [brake.kind for brake in repair_plan.decision.brakes]) == ((), [BrakeKind.POOL])
    assert repair_plan.decision.brakes[0].text.startswith(
        "2 of 3 nodes in pool workers are unhealthy (66 %, limit 40 %)"
    )
    here = around(cluster, fleet)
    allowed = plan(replace(here, limits=here.limits.overridden(unhealthy="70%"))).allowed
    assert [case.host for case in allowed] == ["worker-1", "worker-3"]


def test_a_rack_that_is_silent_is_left_alone(cluster: Cluster, fleet: World) -> None:
    silence(fleet, "worker-1", "worker-2")
    repair_plan = look(cluster, fleet)
    assert (repair_plan.allowed, [brake.kind for brake in repair_plan.decision.brakes]) == ((), [BrakeKind.RACK])


def test_if_all_fail_at_once_everything_is_paused_until_they_are_back(cluster: Cluster, fleet: World) -> None:
    silence(fleet, *NAMES)
    repair_plan = look(cluster, fleet)
    assert (repair_plan.allowed, repair_plan.decision.paused) == ((), True)
    keep(around(cluster, fleet), repair_plan)
    fleet.say(fleet.hosts["worker-1"])
    fleet.say(fleet.hosts["worker-3"])
    repair_plan = look(cluster, fleet)
    assert (repair_plan.allowed, repair_plan.decision.brakes[0].kind) == ((), BrakeKind.ALL_AT_ONCE)
    fleet.say(fleet.hosts["worker-2"])
    keep(around(cluster, fleet), look(cluster, fleet))
    assert removals.recorded_removals(fleet.api())[1] is False


def test_an_unhealthy_control_plane_stops_everything(cluster: Cluster, fleet: World) -> None:
    silence(fleet, "worker-2")
    repair_plan = plan(around(cluster, fleet, "etcd-main-2: member of main, context deadline exceeded"))
    assert (repair_plan.allowed, repair_plan.decision.brakes[0].kind) == ((), BrakeKind.CONTROL_PLANE)


def test_no_further_host_starts_when_a_brake_appears_during_a_run(build: Callable[..., Cluster], fleet: World) -> None:
    cluster = build({"repair": {**SETTINGS, "max_unhealthy": "2"}})
    silence(fleet, "worker-1", "worker-3")
    repair_plan = look(cluster, fleet)
    assert len(repair_plan.allowed) == 2
    silence(fleet, "worker-2")
    tools = Tools(Rebooter(cluster, fleet.api, fleet, Rules(), 30), NoPower(), ByCommand(), lambda *_: None)
    repairs = Repairs(around(cluster, fleet), tools)
    rolled = repairs.run(repair_plan, repair_plan.allowed, lambda _: None)
    assert repairs.results == {}
    assert "all 3 nodes went NotReady together" in rolled.why_stopped


def test_two_runs_cannot_take_more_than_the_share_together(cluster: Cluster, fleet: World) -> None:
    limits = replace(limits_of(cluster), max_removed="50%")
    api, now, refused = fleet.api(), time.time(), []

    def one(number: int) -> None:
        try:
            removals.take(fleet.api(), Removal(f"n{number}", now, BY), limits, 8)
        except NoRoomError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(removals.recorded_removals(api)[0]), len(refused)) == (4, 3)
    assert "4 nodes were removed meanwhile" in refused[0]
    assert refused[0].endswith(f"./menagerie repair {cluster.name} --max-removal 70%")
    removals.take(api, Removal("later", now + 3601, BY), limits, 8)
    assert [each.host for each in removals.recorded_removals(api)[0]] == ["later"]


def test_what_the_window_leaves_no_room_for_waits(build: Callable[..., Cluster], fleet: World) -> None:
    cluster = build({"repair": {**SETTINGS, "max_removed": "50%"}})
    silence(fleet, "worker-1")
    assert ends(mend(cluster, fleet)) == {"worker-1": "mended"}
    silence(fleet, "worker-3")
    repair_plan = look(cluster, fleet)
    assert repair_plan.allowed == ()
    assert (
        "1 of 3 nodes were removed within 1h; the limit is 50 %. These wait: worker-3"
        in repair_plan.decision.brakes[0].text
    )


def test_nodes_of_others_and_nodes_to_skip_are_left_out(cluster: Cluster, fleet: World) -> None:
    silence(fleet, "worker-1", "worker-3")
    cordon(fleet.api(), "worker-1", DrainMark("reboot", "linux-image-6.1"))
    fleet.merge("/api/v1/nodes/worker-3", {"metadata": {"annotations": {SKIP: "Ana looks at its firmware"}}})
    repair_plan = look(cluster, fleet)
    assert repair_plan.cases == ()
    assert "it is out of service (reboot: linux-image-6.1)" in repair_plan.left_out["worker-1"]
    assert "Ana looks at its firmware" in repair_plan.left_out["worker-3"]


def test_a_node_is_not_judged_before_its_time_and_no_condition_before_its_own(
    build: Callable[..., Cluster], fleet: World
) -> None:
    silence(fleet, "worker-2")
    young = build({"repair": {**SETTINGS, "node_startup": "30m"}})
    slow = build({"repair": {**SETTINGS, "conditions": [{"type": "Ready", "status": "False", "after": "10m"}]}})
    assert (look(young, fleet).cases, look(slow, fleet).cases) == ((), ())
    # It still counts for the brakes: others may be about to follow it.
    assert [each.name for each in look(slow, fleet).snapshot.fleet.members if not each.healthy] == ["worker-2"]


def test_a_limit_selects_hosts_pools_racks_or_sites(cluster: Cluster, fleet: World) -> None:
    silence(fleet, "worker-1", "worker-3")
    assert [case.host for case in look(cluster, fleet, None, "r2").cases] == ["worker-3"]
    assert [case.host for case in look(cluster, fleet, None, "worker-1", "onprem").cases] == ["worker-1", "worker-3"]
    with pytest.raises(RefusedError, match="worker-9 matches no node, pool, rack or site; did you mean"):
        look(cluster, fleet, None, "worker-9")


def test_concurrent_changes_of_pages_are_not_lost(fleet: World) -> None:
    def add(number: int) -> None:
        notebook.change(fleet.api(), records.NAME, lambda pages: pages.setdefault("n", []).append(number))

    threads = [threading.Thread(target=add, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(notebook.read(fleet.api(), records.NAME)["n"]) == list(range(6))
