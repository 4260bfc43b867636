"""The reasons for pods, word for word."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controllers.planner import (
    Gang,
    HostSupply,
    Operator,
    Place,
    Pod,
    PoolSupply,
    Requirement,
    Shape,
    Snapshot,
    Spot,
    Taint,
    Toleration,
    plan,
)
from controllers.planner.resources import Resources
from controllers.planner.supply import labels
from tests.scheduling.planner.support import GPU_KIND, NOW_S, RACK, ask, pods, pool, room

CPU_POOL = pool("cpu", 1.5, 2, room(8, 32), boot_s=100)
H100 = pool(
    "h100",
    98.32,
    4,
    room(96, 1800, 8),
    labels=labels({GPU_KIND: "h100"}),
    taints=(Taint("openai.com/team", "vision"),),
    places=tuple(Place(name, labels({RACK: name}), 2) for name in ("r1", "r2")),
    boot_s=630,
)
ANYWHERE = (Toleration(),)
WHOLE = Shape(ask(8, 64, 8), tolerations=ANYWHERE)


def reasons(waiting: tuple[Pod, ...], pools: tuple[PoolSupply, ...] = (CPU_POOL, H100), **more: object) -> list[str]:
    result = plan(Snapshot(NOW_S, pools, pods=waiting, **more))  # type: ignore[arg-type]
    return list(dict.fromkeys(result.verdicts[pod.name].reason for pod in waiting))


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        (Shape(ask(2)), "on a new host of pool cpu: 1.50 $/h, Ready after about 2 min"),
        (WHOLE, "on a new host of pool h100 at r1: 98.32 $/h, Ready after about 10 min"),
        (
            Shape(ask(8, 64, 9), tolerations=ANYWHERE),
            "no pool can ever fit this: it requests 9 GPUs, but the largest host has 8 GPUs (pool h100)",
        ),
        (
            Shape(ask(97), tolerations=ANYWHERE),
            "no pool can ever fit this: it requests 97 CPUs, but the largest host has 96 CPUs (pool h100)",
        ),
        (
            Shape(ask(1, 0, 1)),
            f"no pool can ever fit this: the nearest, h100, belongs to team vision by its taint {H100.taints[0]}",
        ),
        (
            Shape(ask(1), ((Requirement(GPU_KIND, Operator.IN, ("a100",)),),), ANYWHERE),
            "no pool can ever fit this: the nearest, cpu, isn't openai.org/gpu=a100",
        ),
        (
            Shape(ask(8, 64, 8), tolerations=ANYWHERE, ceiling=50_000_000),
            "no pool can ever fit this: the nearest, h100, costs 98.32 $/h per pod, above the pod's ceiling of 50.00 $/h",
        ),
        (
            Shape(ask(2), spot=Spot.ONLY),
            "no pool can ever fit this: the nearest, cpu, isn't spot, and the pod must run only on spot machines",
        ),
    ],
)
def test_the_reason_names_the_nearest_pool_and_the_first_obstacle(shape: Shape, reason: str) -> None:
    assert reasons(pods(1, shape)) == [reason]


def test_pods_that_must_not_be_interrupted_are_kept_off_spot_hosts() -> None:
    spot = replace(CPU_POOL, spot=True)
    expected = ["no pool can ever fit this: the nearest, cpu, is spot, and the pod must not run on spot machines"]
    assert reasons(pods(1, Shape(ask(1), spot=Spot.NEVER)), (spot,)) == expected


def test_pods_that_fit_on_an_existing_host_are_placed_there() -> None:
    host = HostSupply("cpu-7", "cpu", CPU_POOL.room)
    assert reasons(pods(2, Shape(ask(2))), hosts=(host,)) == ["on cpu-7 of pool cpu"]


def test_pods_wait_for_a_full_pool() -> None:
    expected = [
        "on a new host of pool cpu: 1.50 $/h, Ready after about 2 min",
        "waits: pool cpu is at its maximum of 2 hosts and has no room",
    ]
    assert reasons(pods(3, Shape(ask(8)))) == expected


def test_a_pool_that_may_not_have_hosts_is_named() -> None:
    expected = ["no pool can ever fit this: the nearest, cpu, may not have any hosts"]
    assert reasons(pods(1, Shape(ask(1))), (replace(CPU_POOL, most=0),)) == expected


def gang(members: int, within: str | None = None, count: int | None = None) -> list[str]:
    waiting = pods(members if count is None else count, WHOLE, "rank", gang="job")
    return reasons(waiting, gangs=(Gang("job", members, within),))


def test_a_gang_that_does_not_start_has_a_reason() -> None:
    assert gang(5) == ["job can never start: the pools' maximum sizes have room for only 4 of its 5 pods"]
    assert gang(3, RACK) == [
        "job would be split: it needs one openai.org/rack for its 3 pods, but the largest, r1, has room for 2"
    ]
    assert gang(3, count=2) == ["waits for the rest of job: 2 of its 3 pods exist"]


def test_a_gang_waits_as_a_whole() -> None:
    full = tuple(HostSupply(f"busy-{at}", "h100", Resources(), place) for at, place in enumerate(("r1", "r1", "r2")))
    waiting = pods(2, WHOLE, "rank", gang="job")
    expected = ["job waits: 1 of its 2 pods fit now in one openai.org/rack (r2), and none starts until all can"]
    assert reasons(waiting, hosts=full, gangs=(Gang("job", 2, RACK),)) == expected
    expected = ["job waits: 1 of its 2 pods fit now, and none starts until all can"]
    assert reasons(waiting, hosts=full, gangs=(Gang("job", 2),)) == expected


def test_a_pod_that_can_never_start_blocks_its_gang() -> None:
    waiting = (*pods(1, WHOLE, "rank", gang="job"), *pods(1, Shape(ask(500)), "launcher", gang="job"))
    why = "no pool can ever fit this: it requests 500 CPUs, but the largest host has 8 CPUs (pool cpu)"
    assert set(reasons(waiting, gangs=(Gang("job", 2),))) == {
        f"starts only together with all of job, one of whose pods can't start: {why}",
        why,
    }


def test_room_is_held_for_pods_that_have_waited_long() -> None:
    running = HostSupply("h100-0", "h100", room(96, 1800, 4), "r1")
    one = replace(H100, most=1)
    waiting = (
        *pods(1, WHOLE, "large", NOW_S - 2 * 3600),
        *pods(1, Shape(ask(1, 1, 1), tolerations=ANYWHERE), "small"),
    )
    assert reasons(waiting, (one,), hosts=(running,)) == [
        "waits: pool h100 is at its maximum of 1 host and has no room",
        "waits: room in pool h100 is held for large-0, which came earlier",
    ]


def test_nothing_is_decided_from_an_incomplete_snapshot() -> None:
    result = plan(Snapshot(NOW_S, (CPU_POOL,), pods=pods(1, Shape(ask(1))), missing=("the API of cluster ibis",)))
    assert result.hosts == ()
    assert [verdict.reason for verdict in result.verdicts.values()] == [
        "nothing is decided: the API of cluster ibis did not answer"
    ]
