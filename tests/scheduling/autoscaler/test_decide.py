"""One pass: what is ordered, what goes, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controllers.autoscaler.groups import Group, Machine
from controllers.autoscaler.memory import Memory, Order, Rest
from controllers.planner import Fate
from operations.breaker import Fleet, Removal
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
    seen = world(waits=pods("web", 3, cpus=5))
    made = one_pass(seen, added_step="10")
    assert acts(made) == [("grow", "cpu", 3)]
    machines = tuple(Machine(f"i-{at}", "", "booting") for at in range(3))
    booting = replace(seen, groups={"cpu": Group("cpu", 3, 0, 10, machines)})
    again = one_pass(later(booting, 15), made.memory)
    assert acts(again) == []
    assert {verdict.fate for verdict in again.verdicts.values()} == {Fate.ROOM}
    assert sorted(order.machine for order in again.memory.orders) == ["i-0", "i-1", "i-2"]


def test_an_order_that_its_cloud_never_heard_of_is_given_again() -> None:
    seen = world(waits=pods("web", 1, cpus=5))
    made = one_pass(seen)
    assert acts(one_pass(later(seen, 15), made.memory)) == acts(made) == [("grow", "cpu", 1)]


def test_a_pool_grows_by_its_step_and_a_gang_is_never_parted() -> None:
    made = one_pass(world(waits=pods("web", 8, cpus=5)), added_step="2")
    assert acts(made) == [("grow", "cpu", 2)]
    assert [v.reason for v in made.verdicts.values() if v.fate is Fate.WAITING] == [
        "waits: pool cpu grows by 2 hosts in a look, and its turn comes in a later one"
    ] * 6
    assert acts(one_pass(world(waits=gang("mpi", 6, cpus=5)), added_step="2")) == [("grow", "cpu", 6)]


def test_a_pod_that_has_just_come_is_planned_in_the_next_pass() -> None:
    seen = world(waits=pods("web", 1, cpus=5, age_s=3))
    assert acts(one_pass(seen)) == []
    assert acts(one_pass(later(seen, 15))) == [("grow", "cpu", 1)]


def test_members_that_run_count_for_their_gang() -> None:
    running = node("a", CPU_POOL, resident("mpi-0", 5, gang="default/mpi", keeps="is of a gang"))
    made = one_pass(world([running], gang("mpi", 1, size=2, cpus=5)))
    assert acts(made) == [("grow", "cpu", 2)]
    lonely = one_pass(world([node("a")], gang("mpi", 1, size=2, cpus=5)))
    assert acts(lonely) == []
    assert "waits for the rest of default/mpi: 1 of its 2 pods are there" in str(lonely.verdicts)


def test_a_pool_in_trouble_rests_and_its_pods_are_planned_elsewhere() -> None:
    seen = world(waits=pods("train", 1, gpus=8), supplies=(GPU_POOL, SPOT_POOL))
    first = one_pass(seen)
    assert acts(first) == [("grow", "spot", 1)]
    trouble = Group("spot", 1, 0, 8, (), trouble="InsufficientInstanceCapacity in us-east-1a")
    stuck = later(replace(seen, groups={**seen.groups, "spot": trouble}), 15)
    second = one_pass(stuck, first.memory)
    assert acts(second) == [("grow", "gpu", 1)]
    assert second.memory.rests["spot"].why == trouble.trouble
    assert "pool spot is not grown: InsufficientInstanceCapacity in us-east-1a" in second.notices


def test_spot_machines_that_do_not_come_give_way_to_others_before_those_would() -> None:
    seen = world(waits=pods("train", 1, gpus=8), supplies=(GPU_POOL, SPOT_POOL))
    memory = one_pass(seen).memory
    wanted = replace(seen, groups={**seen.groups, "spot": Group("spot", 1, 0, 8, ())})
    assert acts(one_pass(later(wanted, 590), memory)) == []
    assert acts(one_pass(later(wanted, 610), memory)) == [("grow", "gpu", 1)]


def test_a_machine_that_never_took_work_is_given_back() -> None:
    seen = world(waits=pods("web", 1, cpus=5))
    memory = one_pass(seen).memory
    booting = replace(seen, groups={"cpu": Group("cpu", 1, 0, 10, (Machine("i-1", "", "booting"),))})
    bound = one_pass(later(booting, 30), memory).memory
    late = one_pass(later(booting, 1000), bound)
    assert ("remove", "cpu", "i-1") in acts(late)
    assert late.memory.rests["cpu"].why == "a machine that was ordered took no work within 15 min"


def test_a_pool_rests_longer_each_time_and_starts_afresh_when_it_has_given() -> None:
    memory = Memory()
    for expected_s in (300, 600, 1200, 2400, 3600, 3600):
        now_s = memory.rests["cpu"].until_s + 1 if memory.rests else NOW_S
        memory = memory.with_strike("cpu", now_s, "no capacity", 300, 3600)
        assert memory.rests["cpu"].until_s - now_s == expected_s
    order = Order("cpu", NOW_S - 200, (), "i-a", ready_s=NOW_S - 10)
    given = replace(memory, orders=(order,), machines={"cpu": {"i-a": "a"}})
    assert one_pass(world([node("a")]), given).memory.rests == {}


def test_an_idle_host_goes_in_steps_one_a_pass() -> None:
    seen = world([node("a"), node("b"), node("c", CPU_POOL, resident("x", keeps="is of a Job"))])
    memory = one_pass(seen).memory
    assert set(memory.idle) == {"a", "b"}
    assert one_pass(later(seen, 599), memory).decisions == ()
    made = one_pass(later(seen, 600), memory)
    assert acts(made) == [("cordon", "cpu", "a")]
    assert "b is idle, and waits for others: 10% of the cluster go at one time" == f"b {made.kept['b']}"
    gone = replace(seen, nodes=(marked(seen.nodes[0]), *seen.nodes[1:]))
    assert acts(one_pass(later(gone, 615), made.memory)) == [("remove", "cpu", "a")]
    left = world(seen.nodes[1:])
    still_ready = replace(left, nodes=(*left.nodes, marked(seen.nodes[0])))
    assert ("forget", "cpu", "a") in acts(one_pass(later(still_ready, 630), made.memory))


def test_hosts_with_gpus_are_kept_longer() -> None:
    busy = [node(f"b{at}", CPU_POOL, resident(f"x{at}", keeps="is of a Job")) for at in range(4)]
    seen = world([node("a"), node("g", GPU_POOL), *busy], supplies=(CPU_POOL, GPU_POOL))
    memory = one_pass(seen).memory
    assert acts(one_pass(later(seen, 700), memory, removed_step="5")) == [("cordon", "cpu", "a")]
    assert ("cordon", "gpu", "g") in acts(one_pass(later(seen, 1300), memory, removed_step="5"))


@pytest.mark.parametrize(
    ("host", "why"),
    [
        (node("a", CPU_POOL, resident("x", keeps="is of a Job, whose work would be lost")), "runs default/x, which is of a Job"),
        (node("a", CPU_POOL, resident("x")), "is used: 13 %"),
        (node("a", keep=True), "has an annotation that keeps it"),
        (node("a", cordoned=True), "is cordoned by somebody"),
        (node("a", cordoned=True, mark="upgrade"), "is out of service by upgrade"),
        (node("a", ready=False), "isn't Ready: what runs there can't be judged"),
        (node("a", starting=True), "starts"),
    ],
)  # fmt: skip
def test_a_host_stays_and_says_why(host: object, why: str) -> None:
    seen = world([host, node("b"), node("c")])  # type: ignore[list-item]
    memory = Memory(idle={"a": NOW_S - 9999, "b": NOW_S})
    made = one_pass(seen, memory)
    assert made.kept["a"].startswith(why)
    assert all(each.node != "a" for each in made.decisions)


def test_daemons_keep_no_host() -> None:
    seen = world([node("a", CPU_POOL, resident("ds", daemon=True)), node("b")])
    assert acts(one_pass(seen, Memory(idle={"a": NOW_S - 601, "b": NOW_S}))) == [("cordon", "cpu", "a")]


def test_a_hardly_used_host_goes_only_if_its_pods_fit_elsewhere() -> None:
    light, full = node("a", CPU_POOL, resident("x", 2)), node("b", CPU_POOL, resident("y", 7, keeps="is of a Job"))
    memory = Memory(idle={"a": NOW_S - 601})
    stays = one_pass(world([light, full]), memory, idle_below=30)
    assert (acts(stays), stays.kept["a"]) == ([], "is nearly idle, and its pods fit nowhere else")
    goes = one_pass(world([light, node("b", CPU_POOL, resident("y", 5, keeps="is of a Job"))]), memory, idle_below=30)
    assert acts(goes) == [("cordon", "cpu", "a")]
    drained = one_pass(world([marked(light), node("b")]), goes.memory, idle_below=30)
    assert acts(drained) == [("drain", "cpu", "a")]
    ending = marked(node("a", CPU_POOL, resident("x", 2, ending=True)))
    assert [each.node for each in one_pass(world([ending, node("b")])).decisions] == []


def test_a_host_on_its_way_out_is_given_back_when_it_is_needed() -> None:
    going = marked(node("a"))
    assert acts(one_pass(world([going, node("b")], pods("web", 2, cpus=8)))) == [("give back", "cpu", "a")]
    kept = marked(node("a", CPU_POOL, resident("x", keeps="is nobody's: nothing would make it anew")))
    made = one_pass(world([kept, node("b")]))
    assert acts(made) == [("give back", "cpu", "a")]
    uncordoned = replace(marked(node("a")), cordoned=False)
    assert one_pass(world([uncordoned, node("b")])).decisions[0].why == "somebody uncordoned it"


def test_no_pool_goes_below_its_least() -> None:
    seen = world([node("a"), node("b")])
    least = replace(seen, groups={"cpu": replace(seen.groups["cpu"], least=2)})
    made = one_pass(least, Memory(idle={"a": NOW_S - 700, "b": NOW_S - 700}))
    assert (acts(made), made.kept["a"]) == ([], "is idle, and pool cpu has no more than its least, 2")


def test_nothing_goes_while_the_brake_is_on() -> None:
    seen = world([node("a"), node("b"), node("c"), node("d")])
    idle = Memory(idle={"a": NOW_S - 700, "b": NOW_S - 700})
    unwell = replace(seen, fleet=replace(seen.fleet, control_plane="etcd main: 1 of 3 members answer"))
    made = one_pass(unwell, idle)
    assert acts(made) == []
    assert "No scale-in will start" in made.kept["a"]
    stale = replace(seen, fleet=Fleet(tuple(replace(m, heard=NOW_S - 500) for m in seen.fleet.members), NOW_S))
    assert acts(one_pass(stale, idle)) == []
    used = replace(seen, fleet=replace(seen.fleet, removals=(Removal("x", NOW_S - 60), Removal("y", NOW_S - 60))))
    assert "2 of 4 nodes were taken out within 1h" in one_pass(used, idle).kept["a"]
    going = world([marked(node("a")), node("b")])
    braked = replace(going, fleet=replace(going.fleet, control_plane="etcd is away"))
    assert acts(one_pass(braked)) == []


def test_nothing_is_decided_of_a_world_that_is_partial_or_contradicts_itself() -> None:
    seen = world([node("a"), node("b")], pods("web", 1, cpus=5))
    idle = Memory(idle={"a": NOW_S - 700})
    partial = one_pass(replace(seen, missing=("the groups of machines (403)",)), idle)
    assert (partial.decisions, partial.memory) == ((), idle)
    assert partial.verdicts["default/web"].reason == "nothing is decided: the groups of machines (403) did not answer"
    empty = one_pass(replace(seen, groups={"cpu": Group("cpu", 0, 0, 10, ())}), idle)
    assert "pool cpu has 2 Ready nodes, and its cloud knows no machine of 2 of them (a, b)" in empty.refused
    two = (Machine("i-1", "a", "running"),)
    twice = replace(seen, groups={"cpu": Group("cpu", 1, 0, 9, two), "gpu": Group("gpu", 1, 0, 9, two)})
    assert "machine i-1 is said to be of pool cpu and of pool gpu" in one_pass(twice, idle).refused


def test_nodes_of_machines_that_were_taken_away_are_forgotten_and_others_are_not() -> None:
    seen = world([node("a"), node("b"), node("c")])
    memory = one_pass(seen).memory
    lost = world([node("b"), node("c")])
    lost = replace(lost, nodes=(*lost.nodes, node("a", ready=False), node("stranger", ready=False)))
    assert acts(one_pass(later(lost, 15), memory)) == [("forget", "cpu", "a")]
    in_use = marked(node("a", CPU_POOL, resident("x")))
    answers = replace(lost, nodes=(node("b"), node("c"), in_use))
    assert acts(one_pass(later(answers, 15), memory)) == []


def test_for_a_pod_that_the_scheduler_keeps_out_of_room_new_hosts_are_tried_and_then_no_more() -> None:
    seen = world([node("a")], pods("odd", 1, cpus=2))
    first = one_pass(seen)
    assert (acts(first), first.verdicts["default/odd"].fate) == ([], Fate.ROOM)
    second = one_pass(later(seen, 130), first.memory)
    assert acts(second) == [("grow", "cpu", 2)]
    tired = replace(second.memory, tries={"odd": 3}, orders=())
    last = one_pass(later(seen, 500), tired)
    assert acts(last) == []
    assert "3 hosts came for it, and it started on none" in last.verdicts["default/odd"].reason


def test_a_pod_whose_words_can_not_be_read_has_nothing_bought_for_it() -> None:
    notes = {"scheduling.menagerie.dev/price-ceiling": "cheap"}
    made = one_pass(world(waits=pods("web", 1, cpus=5, annotations=notes)))
    assert acts(made) == []
    assert made.verdicts["default/web"].reason.startswith(
        "nothing is bought for it: its scheduling.menagerie.dev/price-ceil"
    )


def test_what_rests_is_remembered_by_every_pod_that_waits() -> None:
    memory = Memory(rests={"cpu": Rest(NOW_S + 240, "the quota is used up")})
    verdict = one_pass(world(waits=pods("web", 1, cpus=5)), memory).verdicts["default/web"]
    assert verdict.reason.endswith("(pool cpu is not grown for 4 min: the quota is used up)")


def test_the_last_node_of_a_cluster_stays_and_says_why() -> None:
    made = one_pass(world([node("a")]), Memory(idle={"a": NOW_S - 700}))
    assert (acts(made), "refusing to remove 1 of 1 nodes (100 %)" in made.kept["a"]) == ([], True)


def test_never_more_is_asked_of_the_brake_than_its_share() -> None:
    seen = world([node("a"), node("b")])
    made = one_pass(seen, Memory(idle={"a": NOW_S - 700, "b": NOW_S - 700}), removed_step="5")
    assert acts(made) == [("cordon", "cpu", "a")]


def test_a_node_that_outlives_its_machine_for_a_moment_is_no_contradiction() -> None:
    seen = replace(world(), nodes=(marked(node("a")),))
    made = one_pass(seen)
    assert (made.refused, acts(made)) == ("", [("forget", "cpu", "a")])
