"""What may be removed automatically, and what stops it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.quantities import share_of
from operations.breaker import REPORTING, STALE_S, BrakeKind, ClusterHealth, Limits, NodeHealth, Removal, decide

NOW = 1_800_000_000.0
OVERRIDE = "./menagerie repair jaguar --max-removal"
LIMITS = Limits({"gpu": "40%", "cpu": "40%"}, "50%", 3600.0, OVERRIDE)


def nodes(count: int, pool: str = "gpu", *, site: str = "sjc1", racks: int = 4, first: int = 1) -> list[NodeHealth]:
    """Return healthy members, in one rack after another."""
    return [
        NodeHealth(f"{pool}-{n:03}", pool, lease_at=NOW - 5, site=site, rack=f"r{n % racks}")
        for n in range(first, first + count)
    ]


def unwell(members: Sequence[NodeHealth], names: Sequence[str], *, ready: bool = False) -> tuple[NodeHealth, ...]:
    return tuple(replace(each, healthy=False, ready=ready) if each.name in names else each for each in members)


def fleet(members: Sequence[NodeHealth], *removals: Removal, **more: object) -> ClusterHealth:
    return ClusterHealth(tuple(members), NOW, removals, **more)  # type: ignore[arg-type]


def test_a_lost_node_may_be_removed_and_a_lost_rack_may_not() -> None:
    members = [replace(each, rack="r07" if n < 18 else "r08") for n, each in enumerate(nodes(40))]
    lost = [each.name for each in members[:1]]
    assert decide(fleet(unwell(members, lost)), lost, LIMITS).allowed == ("gpu-001",)
    # One node in the rack still responds, so the pool's share stops it.
    lost = [each.name for each in members[:17]] + ["gpu-040"]
    decided = decide(fleet(unwell(members, lost)), lost, LIMITS)
    assert decided.allowed == ()
    assert decided.why_not("gpu-001").startswith(
        "18 of 40 nodes in pool gpu are unhealthy (45 %, limit 40 %). No repair will start; check what they share at site"
    )


def test_unhealthy_nodes_in_one_rack_point_at_its_switch() -> None:
    members = [replace(each, rack="r07" if n < 20 else "r08") for n, each in enumerate(nodes(40))]
    lost = [each.name for each in members[:18]]
    decided = decide(fleet(unwell(members, lost)), lost, LIMITS)
    assert decided.why_not("gpu-001") == (
        "18 of 40 nodes in pool gpu are unhealthy (45 %, limit 40 %). No repair will start; check the rack's switch and power "
        "(r07)."
    )


def test_a_completely_silent_rack_is_left_alone_however_small_its_share() -> None:
    members = nodes(100, racks=25)
    silent = [each.name for each in members if each.rack == "r3"]
    decided = decide(fleet(unwell(members, [*silent, "gpu-001"])), [*silent, "gpu-001"], LIMITS)
    assert decided.allowed == ("gpu-001",)
    assert decided.why_not(silent[0]).startswith("all 4 nodes of rack r3 are NotReady")


def test_a_site_that_is_cut_off_is_left_alone_and_others_are_not() -> None:
    far = nodes(6, site="fra1", first=50)
    members = [*nodes(40), *far]
    lost = [each.name for each in far]
    decided = decide(fleet(unwell(members, [*lost, "gpu-001"])), [*lost, "gpu-001"], LIMITS)
    assert decided.allowed == ("gpu-001",)
    assert {brake.kind for brake in decided.brakes} == {BrakeKind.SITE}
    assert decided.why_not(far[0].name).startswith("site fra1 is cut off or has no power: all 6 nodes are NotReady")


def test_if_all_fail_at_once_the_control_plane_is_at_fault_until_nearly_all_report_again() -> None:
    members = nodes(2500)
    gone = [each.name for each in members]
    decided = decide(fleet(unwell(members, gone)), gone, LIMITS)
    assert (decided.allowed, decided.paused) == ((), True)
    assert decided.why_not("gpu-001") == (
        "all 2,500 nodes went NotReady together; treating this as a control plane fault. Scale-down and repair are paused until "
        "95 % report."
    )
    back = fleet(unwell(members, gone[:126]), paused=True)
    decided = decide(back, gone[:126], LIMITS)
    assert (decided.allowed, decided.paused) == ((), True)
    assert decided.why_not("gpu-001").startswith("2,374 of 2,500 nodes report again after all had gone")
    decided = decide(fleet(unwell(members, gone[:125]), paused=True), gone[:125], LIMITS)
    assert (len(decided.allowed), decided.paused) == (125, False)


def test_hosts_that_are_out_already_do_not_indicate_a_control_plane_fault() -> None:
    out, rest = replace(nodes(1)[0], ready=False, healthy=False, out=True), nodes(9, first=2)
    assert decide(fleet([out, *rest]), ["gpu-001"], LIMITS).allowed == ("gpu-001",)


def test_an_unhealthy_control_plane_stops_everything() -> None:
    members = unwell(nodes(40), ["gpu-001"])
    decided = decide(fleet(members, control_plane="etcd main: etcd-main-2 does not answer"), ["gpu-001"], LIMITS)
    assert (decided.allowed, decided.brakes[0].kind) == ((), BrakeKind.CONTROL_PLANE)
    assert "etcd-main-2 does not answer. No repair will start" in decided.why_not("gpu-001")


@pytest.mark.parametrize("heard", [None, NOW - STALE_S - 1])
def test_ready_nodes_that_renew_no_lease_are_stale(heard: float | None) -> None:
    members = [replace(each, lease_at=heard if n < 21 else NOW) for n, each in enumerate(nodes(41))]
    decided = decide(fleet(unwell(members, ["gpu-041"])), ["gpu-041"], LIMITS)
    assert (decided.allowed, decided.brakes[0].kind) == ((), BrakeKind.STALE)
    few = [replace(each, lease_at=heard if n < 10 else NOW) for n, each in enumerate(nodes(41))]
    assert decide(fleet(unwell(few, ["gpu-041"])), ["gpu-041"], LIMITS).allowed == ("gpu-041",)


def test_more_than_half_in_one_decision_is_refused_as_a_whole() -> None:
    members = nodes(2500)
    names = [each.name for each in members[:1400]]
    decided = decide(fleet(members), names, LIMITS, "scale-down")
    assert decided.allowed == ()
    assert decided.why_not(names[0]) == (
        "refusing to remove 1,400 of 2,500 nodes (56 %); the limit is 50 % per decision. To override it for one run: "
        "./menagerie repair jaguar --max-removal 60%"
    )
    assert len(decide(fleet(members), names, LIMITS.overridden(removed="60%")).allowed) == 1400


def test_removals_within_the_window_count_and_earlier_ones_do_not() -> None:
    members = unwell(nodes(10), ["gpu-001", "gpu-002"], ready=True)
    past = [Removal(f"gpu-{n:03}", NOW - 600) for n in range(3, 7)]
    decided = decide(fleet(members, *past), ["gpu-001", "gpu-002"], LIMITS)
    assert decided.allowed == ("gpu-001",)
    assert decided.why_not("gpu-002") == (
        "4 of 10 nodes were removed within 1h; the limit is 50 %. These wait: gpu-002. To override it for one run: "
        "./menagerie repair jaguar --max-removal 60%"
    )
    long_ago = [replace(each, at=NOW - 3600) for each in past]
    assert decide(fleet(members, *long_ago), ["gpu-001", "gpu-002"], LIMITS).allowed == ("gpu-001", "gpu-002")


def test_a_host_that_an_earlier_run_took_out_does_not_count_again() -> None:
    members = [replace(each, out=each.name == "gpu-001", healthy=each.name != "gpu-001") for each in nodes(10)]
    past = [Removal(f"gpu-{n:03}", NOW - 600) for n in range(1, 6)]
    assert decide(fleet(members, *past), ["gpu-001"], LIMITS).allowed == ("gpu-001",)


def test_shares_are_rounded_down_and_numbers_are_taken_as_they_are() -> None:
    one = unwell(nodes(2), ["gpu-001"])
    decided = decide(fleet(one), ["gpu-001"], LIMITS)
    assert "1 of 2 nodes in pool gpu are unhealthy (50 %, limit 40 %)" in decided.why_not("gpu-001")
    assert decide(fleet(one), ["gpu-001"], LIMITS.overridden(unhealthy="1")).allowed == ("gpu-001",)
    two = unwell(nodes(2), ["gpu-001", "gpu-002"], ready=True)
    decided = decide(fleet(two), ["gpu-001"], LIMITS.overridden(unhealthy="1"))
    assert "(100 %, limit 1 nodes)" in decided.why_not("gpu-001")


def test_nodes_without_a_pool_and_unknown_nodes_are_never_removed() -> None:
    members = [*nodes(10), *nodes(1, pool="other", first=99)]
    decided = decide(fleet(members), ["other-099", "gone-1", "gpu-001"], LIMITS)
    assert decided.allowed == ("gpu-001",)
    assert "in no pool of the spec" in decided.why_not("other-099")
    assert decided.why_not("gone-1") == "gone-1: no such node."


# A cluster where anything can be unhealthy at any time, and a caller that requests as many removals as possible.
states = st.sampled_from(["well", "sick", "silent"])
members_of = st.lists(st.tuples(st.sampled_from(["gpu", "cpu"]), st.integers(0, 3), states), min_size=1, max_size=30)
shares = st.one_of(st.integers(1, 99).map(lambda n: f"{n}%"), st.integers(1, 20).map(str))


def built(described: Sequence[tuple[str, int, str]], out: frozenset[str] = frozenset()) -> tuple[NodeHealth, ...]:
    return tuple(
        NodeHealth(f"n{i}", pool, state != "silent", state == "well", f"n{i}" in out, NOW, "sjc1", f"r{rack}")
        for i, (pool, rack, state) in enumerate(described)
    )


@given(members_of, shares, shares, st.lists(st.tuples(st.floats(1, 5000), st.lists(states, min_size=30)), max_size=12))
def test_never_more_than_the_share_is_removed_within_any_window(
    described: list[tuple[str, int, str]], unhealthy: str, removed: str, moments: list[tuple[float, list[str]]]
) -> None:
    limits = Limits({"gpu": unhealthy, "cpu": unhealthy}, removed, 3600.0, OVERRIDE)
    taken: list[Removal] = []
    now, paused = NOW, False
    for pause, now_states in moments:
        now += pause
        shaken = [(pool, rack, state) for (pool, rack, _), state in zip(described, now_states, strict=False)]
        out = frozenset(each.host for each in taken)
        members = tuple(replace(each, lease_at=now) for each in built(shaken, out))
        candidates = [each.name for each in members if not each.healthy]
        decided = decide(ClusterHealth(members, now, tuple(taken), "", paused), candidates, limits)
        paused = decided.paused
        for pool in ("gpu", "cpu"):
            own = [each for each in members if each.pool == pool]
            if any(each.name in decided.allowed for each in own):
                assert sum(not each.healthy for each in own) <= share_of(unhealthy, len(own), least=0)
        taken += [Removal(host, now) for host in decided.allowed if host not in out]
        # A host that is back may be removed again; here, healthy hosts are back at once.
        most = share_of(removed, len(described), least=0)
        for each in taken:
            assert sum(each.at - 3600.0 < other.at <= each.at for other in taken) <= most


@given(members_of, shares, shares, st.data())
def test_another_unhealthy_node_never_allows_more_removals(
    described: list[tuple[str, int, str]], unhealthy: str, removed: str, data: st.DataObject
) -> None:
    limits = Limits({"gpu": unhealthy, "cpu": unhealthy}, removed, 3600.0, OVERRIDE)
    candidates = [each.name for each in built(described) if not each.healthy]
    before = decide(ClusterHealth(built(described), NOW), candidates, limits)
    index = data.draw(st.integers(0, len(described) - 1))
    pool, rack, _ = described[index]
    worse = [*described[:index], (pool, rack, "silent"), *described[index + 1 :]]
    after = decide(ClusterHealth(built(worse), NOW), candidates, limits)
    assert len(after.allowed) <= len(before.allowed)


@given(members_of, shares, shares, st.integers(0, 20), st.integers(1, 99))
def test_a_tighter_limit_or_more_recent_removals_never_allow_more_removals(
    described: list[tuple[str, int, str]], unhealthy: str, removed: str, past: int, percent: int
) -> None:
    candidates = [each.name for each in built(described) if not each.healthy]
    members = built(described)

    def allowed(unhealthy: str, removed: str, past: int) -> tuple[str, ...]:
        gone = tuple(Removal("x", NOW - 1) for _ in range(past))
        return decide(
            ClusterHealth(members, NOW, gone),
            candidates,
            Limits({"gpu": unhealthy, "cpu": unhealthy}, removed, 60, OVERRIDE),
        ).allowed

    loose = allowed(unhealthy, removed, 0)
    assert set(allowed(unhealthy, removed, past)) <= set(loose)
    assert set(allowed(f"{percent}%", removed, 0)) >= set(allowed(f"{max(percent - 7, 1)}%", removed, 0))
    assert len(allowed(unhealthy, f"{percent}%", 0)) >= len(allowed(unhealthy, f"{max(percent - 7, 1)}%", 0))


@given(members_of, st.integers(0, 29))
def test_while_paused_nothing_starts_before_nearly_all_report(
    described: list[tuple[str, int, str]], index: int
) -> None:
    members = built(described)
    decided = decide(
        ClusterHealth(members, NOW, paused=True), [f"n{index % len(members)}"], LIMITS.overridden("99%", "99%")
    )
    if sum(each.ready for each in members) * 100 < REPORTING * len(members):
        assert (decided.allowed, decided.paused) == ((), True)
    else:
        assert not decided.paused
