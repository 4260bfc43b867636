"""One pass: what is ordered, what is removed, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controllers.autoscaler.groups import Group, Machine
from controllers.autoscaler.memory import Backoff, Memory, Order
from controllers.planner import Fate
from operations.breaker import ClusterHealth, Removal
from tests.scheduling.autoscaler.support import (
    CPU_POOL,
    GPU_POOL,
    NOW_S,
    SPOT_POOL,
    acts,
    gang,
    later,
    marked,
    node,
    one_pass,
    pods,
    resident,
    world,
)


def test_machines_are_ordered_for_pods_and_not_again_while_they_boot() -> None:
    state = world(waits=pods("web", 3, cpus=5))
    result = one_pass(state, added_step="10")
    assert acts(result) == [("grow", "cpu", 3)]
    machines = tuple(Machine(f"i-{at}", "", "booting") for at in range(3))
    booting = replace(state, groups={"cpu": Group("cpu", 3, 0, 10, machines)})
    again = one_pass(later(booting, 15), result.memory)
    assert acts(again) == []
    assert {verdict.fate for verdict in again.verdicts.values()} == {Fate.ROOM}
    assert sorted(order.machine for order in again.memory.orders) == ["i-0", "i-1", "i-2"]


def test_an_order_that_never_reached_the_cloud_is_repeated() -> None:
    state = world(waits=pods("web", 1, cpus=5))
    result = one_pass(state)
    assert acts(one_pass(later(state, 15), result.memory)) == acts(result) == [("grow", "cpu", 1)]


def test_a_pool_grows_by_its_step_and_a_gang_is_never_split() -> None:
    result = one_pass(world(waits=pods("web", 8, cpus=5)), added_step="2")
    assert acts(result) == [("grow", "cpu", 2)]
    assert [v.reason for v in result.verdicts.values() if v.fate is Fate.WAITING] == [
        "waits: pool cpu grows by at most 2 hosts in a pass; its host is ordered in a later pass"
    ] * 6
    assert acts(one_pass(world(waits=gang("mpi", 6, cpus=5)), added_step="2")) == [("grow", "cpu", 6)]


def test_a_new_pod_is_planned_in_the_next_pass() -> None:
    state = world(waits=pods("web", 1, cpus=5, age_s=3))
    assert acts(one_pass(state)) == []
    assert acts(one_pass(later(state, 15))) == [("grow", "cpu", 1)]


def test_running_members_count_for_their_gang() -> None:
    running = node("a", CPU_POOL, resident("mpi-0", 5, gang="default/mpi", keeps="belongs to a gang"))
    result = one_pass(world([running], gang("mpi", 1, size=2, cpus=5)))
    assert acts(result) == [("grow", "cpu", 2)]
    lonely = one_pass(world([node("a")], gang("mpi", 1, size=2, cpus=5)))
    assert acts(lonely) == []
    assert "waits for the rest of default/mpi: 1 of its 2 pods exist" in str(lonely.verdicts)


def test_a_pool_that_does_not_grow_backs_off_and_its_pods_are_planned_elsewhere() -> None:
    state = world(waits=pods("train", 1, gpus=8), supplies=(GPU_POOL, SPOT_POOL))
    first = one_pass(state)
    assert acts(first) == [("grow", "spot", 1)]
    trouble = Group("spot", 1, 0, 8, (), trouble="InsufficientInstanceCapacity in us-east-1a")
    stuck = later(replace(state, groups={**state.groups, "spot": trouble}), 15)
    second = one_pass(stuck, first.memory)
    assert acts(second) == [("grow", "gpu", 1)]
    assert second.memory.rests["spot"].why == trouble.trouble
    assert "pool spot is not grown: InsufficientInstanceCapacity in us-east-1a" in second.notices


def test_spot_machines_time_out_earlier_than_others() -> None:
    state = world(waits=pods("train", 1, gpus=8), supplies=(GPU_POOL, SPOT_POOL))
    memory = one_pass(state).memory
    pending = replace(state, groups={**state.groups, "spot": Group("spot", 1, 0, 8, ())})
    assert acts(one_pass(later(pending, 590), memory)) == []
    assert acts(one_pass(later(pending, 610), memory)) == [("grow", "gpu", 1)]


def test_a_machine_that_never_took_work_is_given_back() -> None:
    state = world(waits=pods("web", 1, cpus=5))
    memory = one_pass(state).memory
    booting = replace(state, groups={"cpu": Group("cpu", 1, 0, 10, (Machine("i-1", "", "booting"),))})
    bound = one_pass(later(booting, 30), memory).memory
    late = one_pass(later(booting, 1000), bound)
    assert ("remove", "cpu", "i-1") in acts(late)
    assert late.memory.rests["cpu"].why == "an ordered machine took no work within 15 min"


def test_the_backoff_of_a_pool_grows_and_ends_when_the_pool_delivers() -> None:
    memory = Memory()
    for expected_s in (300, 600, 1200, 2400, 3600, 3600):
        now_s = memory.rests["cpu"].until_s + 1 if memory.rests else NOW_S
        memory = memory.with_strike("cpu", now_s, "no capacity", 300, 3600)
        assert memory.rests["cpu"].until_s - now_s == expected_s
    order = Order("cpu", NOW_S - 200, (), "i-a", ready_s=NOW_S - 10)
    given = replace(memory, orders=(order,), machines={"cpu": {"i-a": "a"}})
    assert one_pass(world([node("a")]), given).memory.rests == {}


def test_an_idle_host_is_removed_one_step_per_pass() -> None:
    state = world([node("a"), node("b"), node("c", CPU_POOL, resident("x", keeps="belongs to a Job"))])
    memory = one_pass(state).memory
    assert set(memory.idle) == {"a", "b"}
    assert one_pass(later(state, 599), memory).decisions == ()
    result = one_pass(later(state, 600), memory)
    assert acts(result) == [("cordon", "cpu", "a")]
    assert result.kept["b"] == "is idle, but waits for other removals: at most 10% of the cluster at a time"
    gone = replace(state, nodes=(marked(state.nodes[0]), *state.nodes[1:]))
    assert acts(one_pass(later(gone, 615), result.memory)) == [("remove", "cpu", "a")]
    left = world(state.nodes[1:])
    still_ready = replace(left, nodes=(*left.nodes, marked(state.nodes[0])))
    assert ("forget", "cpu", "a") in acts(one_pass(later(still_ready, 630), result.memory))


def test_hosts_with_gpus_are_kept_longer() -> None:
    busy = [node(f"b{at}", CPU_POOL, resident(f"x{at}", keeps="belongs to a Job")) for at in range(4)]
    state = world([node("a"), node("g", GPU_POOL), *busy], supplies=(CPU_POOL, GPU_POOL))
    memory = one_pass(state).memory
    assert acts(one_pass(later(state, 700), memory, removed_step="5")) == [("cordon", "cpu", "a")]
    assert ("cordon", "gpu", "g") in acts(one_pass(later(state, 1300), memory, removed_step="5"))


@pytest.mark.parametrize(
    ("host", "why"),
    [
        (node("a", CPU_POOL, resident("x", keeps="belongs to a Job, whose work would be lost")), "runs default/x, which belongs to a Job"),
        (node("a", CPU_POOL, resident("x")), "is in use: 13 %"),
        (node("a", keep=True), "has an annotation that keeps it"),
        (node("a", cordoned=True), "was cordoned by somebody"),
        (node("a", cordoned=True, mark="upgrade"), "was taken out of service by upgrade"),
        (node("a", ready=False), "isn't Ready, so its use is unknown"),
        (node("a", starting=True), "is starting"),
    ],
)  # fmt: skip
def test_a_host_that_stays_has_a_reason(host: object, why: str) -> None:
    state = world([host, node("b"), node("c")])  # type: ignore[list-item]
    memory = Memory(idle={"a": NOW_S - 9999, "b": NOW_S})
    result = one_pass(state, memory)
    assert result.kept["a"].startswith(why)
    assert all(each.node != "a" for each in result.decisions)


def test_daemons_do_not_keep_a_host() -> None:
    state = world([node("a", CPU_POOL, resident("ds", daemon=True)), node("b")])
    assert acts(one_pass(state, Memory(idle={"a": NOW_S - 601, "b": NOW_S}))) == [("cordon", "cpu", "a")]


def test_a_hardly_used_host_is_removed_only_if_its_pods_fit_elsewhere() -> None:
    light, full = node("a", CPU_POOL, resident("x", 2)), node("b", CPU_POOL, resident("y", 7, keeps="belongs to a Job"))
    memory = Memory(idle={"a": NOW_S - 601})
    stays = one_pass(world([light, full]), memory, idle_below=30)
    assert (acts(stays), stays.kept["a"]) == ([], "is nearly idle, but its pods fit nowhere else")
    goes = one_pass(
        world([light, node("b", CPU_POOL, resident("y", 5, keeps="belongs to a Job"))]), memory, idle_below=30
    )
    assert acts(goes) == [("cordon", "cpu", "a")]
    drained = one_pass(world([marked(light), node("b")]), goes.memory, idle_below=30)
    assert acts(drained) == [("drain", "cpu", "a")]
    ending = marked(node("a", CPU_POOL, resident("x", 2, ending=True)))
    assert [each.node for each in one_pass(world([ending, node("b")])).decisions] == []


def test_a_host_that_is_being_removed_returns_to_service_when_it_is_needed() -> None:
    going = marked(node("a"))
    assert acts(one_pass(world([going, node("b")], pods("web", 2, cpus=8)))) == [("give back", "cpu", "a")]
    kept = marked(node("a", CPU_POOL, resident("x", keeps="has no controller that would recreate it")))
    result = one_pass(world([kept, node("b")]))
    assert acts(result) == [("give back", "cpu", "a")]
    uncordoned = replace(marked(node("a")), cordoned=False)
    assert one_pass(world([uncordoned, node("b")])).decisions[0].why == "somebody uncordoned it"


def test_no_pool_shrinks_below_its_minimum() -> None:
    state = world([node("a"), node("b")])
    least = replace(state, groups={"cpu": replace(state.groups["cpu"], least=2)})
    result = one_pass(least, Memory(idle={"a": NOW_S - 700, "b": NOW_S - 700}))
    assert (acts(result), result.kept["a"]) == ([], "is idle, but pool cpu is at its minimum of 2")


def test_nothing_is_removed_while_the_brake_is_on() -> None:
    state = world([node("a"), node("b"), node("c"), node("d")])
    idle = Memory(idle={"a": NOW_S - 700, "b": NOW_S - 700})
    unwell = replace(state, fleet=replace(state.fleet, control_plane="etcd main: 1 of 3 members answer"))
    result = one_pass(unwell, idle)
    assert acts(result) == []
    assert "No scale-in will start" in result.kept["a"]
    stale = replace(
        state, fleet=ClusterHealth(tuple(replace(m, lease_at=NOW_S - 500) for m in state.fleet.members), NOW_S)
    )
    assert acts(one_pass(stale, idle)) == []
    used = replace(state, fleet=replace(state.fleet, removals=(Removal("x", NOW_S - 60), Removal("y", NOW_S - 60))))
    assert "2 of 4 nodes were removed within 1h" in one_pass(used, idle).kept["a"]
    going = world([marked(node("a")), node("b")])
    braked = replace(going, fleet=replace(going.fleet, control_plane="etcd is away"))
    assert acts(one_pass(braked)) == []


def test_nothing_is_decided_if_the_world_is_incomplete_or_contradicts_itself() -> None:
    state = world([node("a"), node("b")], pods("web", 1, cpus=5))
    idle = Memory(idle={"a": NOW_S - 700})
    partial = one_pass(replace(state, missing=("the groups of machines (403)",)), idle)
    assert (partial.decisions, partial.memory) == ((), idle)
    assert partial.verdicts["default/web"].reason == "nothing is decided: the groups of machines (403) did not answer"
    empty = one_pass(replace(state, groups={"cpu": Group("cpu", 0, 0, 10, ())}), idle)
    assert "pool cpu has 2 Ready nodes, but its cloud has no machine for 2 of them (a, b)" in empty.refused
    two = (Machine("i-1", "a", "running"),)
    twice = replace(state, groups={"cpu": Group("cpu", 1, 0, 9, two), "gpu": Group("gpu", 1, 0, 9, two)})
    assert "machine i-1 is listed in pool cpu and in pool gpu" in one_pass(twice, idle).refused


def test_only_nodes_of_machines_that_are_gone_are_deleted() -> None:
    state = world([node("a"), node("b"), node("c")])
    memory = one_pass(state).memory
    lost = world([node("b"), node("c")])
    lost = replace(lost, nodes=(*lost.nodes, node("a", ready=False), node("stranger", ready=False)))
    assert acts(one_pass(later(lost, 15), memory)) == [("forget", "cpu", "a")]
    in_use = marked(node("a", CPU_POOL, resident("x")))
    answers = replace(lost, nodes=(node("b"), node("c"), in_use))
    assert acts(one_pass(later(answers, 15), memory)) == []


def test_a_pod_that_the_scheduler_does_not_place_gets_new_hosts_a_few_times() -> None:
    state = world([node("a")], pods("odd", 1, cpus=2))
    first = one_pass(state)
    assert (acts(first), first.verdicts["default/odd"].fate) == ([], Fate.ROOM)
    second = one_pass(later(state, 130), first.memory)
    assert acts(second) == [("grow", "cpu", 2)]
    tired = replace(second.memory, tries={"odd": 3}, orders=())
    last = one_pass(later(state, 500), tired)
    assert acts(last) == []
    assert "it did not start on any of the 3 hosts that were added for it" in last.verdicts["default/odd"].reason


def test_no_machine_is_ordered_for_a_pod_with_an_invalid_ceiling() -> None:
    notes = {"scheduling.menagerie.dev/price-ceiling": "cheap"}
    result = one_pass(world(waits=pods("web", 1, cpus=5, annotations=notes)))
    assert acts(result) == []
    assert result.verdicts["default/web"].reason.startswith(
        "no machine is ordered for it: its scheduling.menagerie.dev/price-ceil"
    )


def test_every_waiting_pod_names_the_pools_in_backoff() -> None:
    memory = Memory(rests={"cpu": Backoff(NOW_S + 240, "the quota is used up")})
    verdict = one_pass(world(waits=pods("web", 1, cpus=5)), memory).verdicts["default/web"]
    assert verdict.reason.endswith("(pool cpu is not grown for 4 min: the quota is used up)")


def test_the_last_node_of_a_cluster_stays_with_a_reason() -> None:
    result = one_pass(world([node("a")]), Memory(idle={"a": NOW_S - 700}))
    assert (acts(result), "refusing to remove 1 of 1 nodes (100 %)" in result.kept["a"]) == ([], True)


def test_no_more_is_requested_from_the_brake_than_its_share() -> None:
    state = world([node("a"), node("b")])
    result = one_pass(state, Memory(idle={"a": NOW_S - 700, "b": NOW_S - 700}), removed_step="5")
    assert acts(result) == [("cordon", "cpu", "a")]


def test_a_node_may_outlive_its_machine_for_a_moment() -> None:
    state = replace(world(), nodes=(marked(node("a")),))
    result = one_pass(state)
    assert (result.refused, acts(result)) == ("", [("forget", "cpu", "a")])
