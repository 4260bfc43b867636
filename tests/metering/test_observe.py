"""What objects of the API say, and from when: kubelets' Leases, late and impossible times, repairs, booting hosts."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from cluster.allocations import MEMBER_LABEL, TEAM_KEY
from cluster.pools import POOL_LABEL
from cluster.spec import Cluster
from controllers.metering import observe
from controllers.metering.facts import CountersFact, HostFact, PodFact, Room, SpaceFact, Subject, Use, VolumeFact
from controllers.metering.history import GRACE_S
from controllers.metering.observe import NO_POOL, Look, Observer
from controllers.tenancy.sync.objects import MANAGED_LABEL, MANAGER
from operations import drain
from tests.metering.lives import START

AT = START + 3600
LOOK = Look(AT, AT - 60)
FIRST = Look(AT, 0)
TENANCY = {"tenancy": {"directory": {"file": "people.yaml"}}}


def stamp(moment: int) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%SZ}"


@pytest.fixture
def observer(build: Callable[..., Cluster]) -> Observer:
    cluster = build(TENANCY)
    assert cluster.spec.tenancy
    return Observer(cluster, cluster.spec.tenancy)


def node(
    name: str = "vm-1", *, ready: str = "True", since: int = START, created: int = START - 7200, gpus: int = 8,
    usable: int = 8, **spec: Any
) -> dict[str, Any]:  # fmt: skip
    conditions = [{"type": "Ready", "status": ready, "lastTransitionTime": stamp(since)}]
    capacity = {"cpu": "66", "memory": "512Gi", "nvidia.com/gpu": str(gpus)}
    return {
        "metadata": {"name": name, "creationTimestamp": stamp(created), "labels": {POOL_LABEL: "batch"}},
        "spec": spec,
        "status": {
            "conditions": conditions,
            "capacity": capacity,
            "allocatable": {"cpu": "64", "memory": "500Gi", "nvidia.com/gpu": str(usable)},
        },
    }


def facts(
    observer: Observer, thing: dict[str, Any], before: Any = None, renewed: int | None = None, look: Look = LOOK
) -> Any:
    return [(entry.since - AT, entry.fact) for entry in observer.host(thing, renewed, before, look)]


FREE = HostFact("batch", Use.FREE, False, "", Room(8, 64_000, 512_000))


def test_a_ready_node_is_free_and_one_of_a_team_is_held_for_it(observer: Observer) -> None:
    assert facts(observer, node(), look=FIRST) == [(START - 7200 - AT, FREE)]
    held = node(taints=[{"key": TEAM_KEY, "value": "vision", "effect": "NoSchedule"}])
    assert facts(observer, held, (START, FREE)) == [(0, FREE._replace(idle=Use.HELD, team="vision"))]
    assert facts(observer, node(), (START, FREE)) == []


def test_a_silent_node_is_broken_from_the_last_time_its_kubelet_was_heard(observer: Observer) -> None:
    silent = node(ready="Unknown", since=AT - 10)
    broken = FREE._replace(idle=Use.BROKEN, down=True)
    assert facts(observer, silent, (START, FREE), renewed=AT - 55) == [(-55, broken)]
    assert facts(observer, silent, (START, FREE), renewed=None) == [(-10, broken)]
    # A clock that is wrong by hours moves the entry by no more than the time that a kubelet may be silent.
    assert facts(observer, silent, (START, FREE), renewed=AT - 9000) == [(-60 - GRACE_S, broken)]
    assert facts(observer, node(ready="Unknown", since=AT + 9000), (START, FREE), renewed=AT + 9000) == [(0, broken)]
    healthy = node(since=AT - 20)
    assert facts(observer, healthy, (AT - 500, broken)) == [(-20, FREE)]
    assert facts(observer, node(since=AT - 9000), (AT - 500, broken)) == [(-60, FREE)]


def test_what_a_node_was_before_it_was_first_looked_at_is_not_claimed(observer: Observer) -> None:
    silent = node(ready="Unknown", since=AT - 10)
    broken = FREE._replace(idle=Use.BROKEN, down=True)
    assert facts(observer, silent, renewed=AT - 50, look=FIRST) == [
        (START - 7200 - AT, broken._replace(down=False)),
        (-50, broken),
    ]


def test_a_cordoned_node_is_drained_unless_it_is_being_repaired(observer: Observer) -> None:
    assert facts(observer, node(unschedulable=True), (START, FREE)) == [(0, FREE._replace(idle=Use.DRAINED))]
    repaired = node(unschedulable=True)
    repaired["metadata"]["annotations"] = {drain.MARK: '{"by": "repair", "why": "NotReady"}'}
    assert facts(observer, repaired, (START, FREE)) == [(0, FREE._replace(idle=Use.BROKEN))]
    spoiled = node(unschedulable=True)
    spoiled["metadata"]["annotations"] = {drain.MARK: "[1"}
    assert facts(observer, spoiled, (START, FREE)) == [(0, FREE._replace(idle=Use.DRAINED))]
    assert observe._MARK == drain.MARK


def test_a_young_node_boots_and_an_old_one_that_was_never_ready_is_broken(observer: Observer) -> None:
    young = node(ready="False", created=AT - 300, since=AT - 300)
    (entry,) = facts(observer, young, look=LOOK)[-1:]
    assert entry[1].idle is Use.BOOTING
    old = node(ready="False", created=AT - observe.BOOT_S - 1, since=AT - 300)
    assert facts(observer, old, look=LOOK)[-1][1].idle is Use.BROKEN
    waits = node(created=AT - 300, taints=[{"key": "menagerie.dev/preflight", "effect": "NoSchedule"}])
    assert facts(observer, waits, look=LOOK)[-1][1].idle is Use.BOOTING


def test_a_failed_check_of_a_host_breaks_it_while_its_pods_still_use_it(observer: Observer) -> None:
    failed = node()
    failed["status"]["conditions"].append({"type": "PreflightPassed", "status": "False"})
    assert facts(observer, failed, (START, FREE)) == [(0, FREE._replace(idle=Use.BROKEN))]


def test_gpus_that_are_unhealthy_or_no_longer_listed_stay_in_the_capacity(observer: Observer) -> None:
    assert facts(observer, node(usable=6), (START, FREE))[0][1] == FREE._replace(bad_gpus=2)
    assert facts(observer, node(gpus=7, usable=7), (START, FREE))[0][1] == FREE._replace(bad_gpus=1)


def test_a_node_outside_all_pools_is_counted_there(observer: Observer) -> None:
    stray = node()
    stray["metadata"]["labels"] = {}
    assert facts(observer, stray, look=FIRST)[0][1].pool == NO_POOL


def pod(phase: str = "Running", bound: int = AT - 100, ended: int | None = None, **more: Any) -> dict[str, Any]:
    state = {"terminated": {"finishedAt": stamp(ended)}} if ended is not None else {"running": {}}
    return {
        "metadata": {"name": "p", "namespace": "team-robotics", "uid": "u1", "creationTimestamp": stamp(AT - 200)},
        "spec": {
            "nodeName": "vm-1",
            "containers": [{"resources": {"requests": {"cpu": "2", "nvidia.com/gpu": "8"}}}],
            **more,
        },
        "status": {
            "phase": phase,
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(bound)}],
            "containerStatuses": [{"state": state}],
        },
    }


POD = PodFact("team-robotics", "vm-1", Room(8, 2000, 0))


def pods(
    observer: Observer, thing: dict[str, Any], before: Any = None, look: Look = LOOK, *, gone: bool = False
) -> Any:
    return [(entry.since - AT, entry.fact) for entry in observer.pod(thing, before, look, gone=gone)]


def test_a_pod_counts_from_its_binding_to_the_end_of_its_last_container(observer: Observer) -> None:
    assert pods(observer, pod()) == [(-100, POD)]
    assert pods(observer, pod(nodeName="")) == []
    assert pods(observer, pod("Succeeded", ended=AT - 5), (AT - 100, POD)) == [(-5, None)]
    assert pods(observer, pod(), (AT - 100, POD), gone=True) == [(0, None)]
    assert pods(observer, pod("Succeeded", ended=AT - 5), gone=True) == [(-100, POD), (-5, None)]


def test_impossible_times_of_a_pod_stay_within_its_life(observer: Observer) -> None:
    """The clocks of hosts and of the scheduler may jump: an end before the start, a start in the future."""
    assert pods(observer, pod("Failed", ended=AT - 9000), (AT - 100, POD)) == [(-100, None)]
    assert pods(observer, pod("Failed", ended=AT + 9000), (AT - 100, POD)) == [(0, None)]
    assert pods(observer, pod(bound=AT + 9000)) == [(0, POD)]
    assert pods(observer, pod(bound=AT - 9000)) == [(-200, POD)]


def test_a_pod_that_ended_in_a_time_that_is_known_already_is_not_counted_again(observer: Observer) -> None:
    assert pods(observer, pod("Succeeded", ended=LOOK.floor)) == []
    assert pods(observer, pod("Failed")) == []
    assert pods(observer, pod("Succeeded", ended=LOOK.floor), look=FIRST) == [(-100, POD), (-60, None)]


def test_an_end_that_is_reported_late_is_where_it_happened(observer: Observer) -> None:
    assert pods(observer, pod("Succeeded", bound=AT - 9000, ended=AT - 7000), (AT - 9000, POD)) == [(-7000, None)]


def space(
    name: str, labels: dict[str, str], annotations: dict[str, str] | None = None, written: int = 0
) -> dict[str, Any]:
    fields = [{"manager": "kubectl", "operation": "Update", "time": stamp(written)}] if written else []
    metadata = {"name": name, "creationTimestamp": stamp(START), "labels": labels, "annotations": annotations or {}}
    return {"metadata": {**metadata, "managedFields": fields}}


def test_a_namespace_is_a_teams_a_persons_or_nobodys(observer: Observer) -> None:
    ours = {MANAGED_LABEL: MANAGER}
    person = space("user-ana", {**ours, "menagerie.dev/tenant": "person", f"{MEMBER_LABEL}vision": "true"})
    team = space("team-vision", {**ours, "menagerie.dev/tenant": "team"}, {"menagerie.dev/name": "Vision"})
    made = [next(observer.space(each, None, FIRST)).fact for each in (person, team, space("kube-system", {}))]
    assert made == [SpaceFact("", "ana", ("vision",)), SpaceFact("vision"), SpaceFact()]
    labelled = space("shared", {"menagerie.dev/team": "vision"})
    assert next(observer.space(labelled, None, FIRST)).fact == SpaceFact("vision")


def test_a_change_without_a_time_has_that_of_the_objects_last_write(observer: Observer) -> None:
    changed = space("shared", {"menagerie.dev/team": "vision"}, written=AT - 20)
    before = (START, SpaceFact("robotics"))
    assert [entry.since - AT for entry in observer.space(changed, before, LOOK)] == [-20]
    old = space("shared", {"menagerie.dev/team": "vision"}, written=AT - 9000)
    assert [entry.since - AT for entry in observer.space(old, before, LOOK)] == [0]


def test_a_volume_is_used_while_it_is_bound(observer: Observer) -> None:
    volume = {
        "metadata": {"name": "pv1", "creationTimestamp": stamp(START)},
        "spec": {"capacity": {"storage": "10Gi"}, "claimRef": {"namespace": "team-vision"}},
        "status": {"phase": "Bound"},
    }
    assert [(each.subject, each.fact) for each in observer.volume(volume, None, FIRST)] == [
        (Subject.VOLUME, VolumeFact("team-vision", 10_240))
    ]
    volume["status"] = {"phase": "Released"}
    assert next(observer.volume(volume, (START, VolumeFact("team-vision", 10_240)), LOOK)).fact == VolumeFact(
        "", 10_240
    )


def counted(at: int | None, count: int = 5) -> dict[str, Any]:
    """A Node with counters that were read at a moment."""
    counter = {"namespace": "a", "direction": "out", "class": "pod", "bytes": count}
    text = json.dumps({"counters": [counter], "resets": 0, **({} if at is None else {"at": at})})
    return {"metadata": {"name": "worker-1", "annotations": {"menagerie.dev/traffic": text}}}


def test_counters_of_a_node_hold_from_when_they_were_read_and_each_reading_counts_once(observer: Observer) -> None:
    fact = CountersFact("", 0, (("a", (5, *[0] * 9)),))
    (first,) = observer.traffic(counted(LOOK.floor - 500), None, LOOK)
    assert first == (LOOK.floor - 500, Subject.COUNTERS, "worker-1", fact)
    before = (first.since, fact)
    assert list(observer.traffic(counted(LOOK.floor - 500), before, LOOK)) == []
    (still,) = observer.traffic(counted(LOOK.at - 1), before, LOOK)
    assert (still.since, still.fact) == (LOOK.at - 1, fact)
    assert list(observer.traffic({"metadata": {"name": "worker-1"}}, before, LOOK)) == []


def test_counters_without_a_time_of_their_own_are_of_the_look_at_which_they_changed(observer: Observer) -> None:
    (first,) = observer.traffic(counted(None), None, LOOK)
    assert first.since == LOOK.at
    before = (LOOK.floor, first.fact)
    assert list(observer.traffic(counted(None), before, LOOK)) == []
    assert [each.since for each in observer.traffic(counted(None, 6), before, LOOK)] == [LOOK.at]


def test_counters_of_a_clock_that_is_ahead_are_refused(observer: Observer) -> None:
    (near,) = observer.traffic(counted(LOOK.at + 100), None, LOOK)
    assert near.since == LOOK.at
    with pytest.raises(ValueError, match="its clock is ahead"):
        list(observer.traffic(counted(LOOK.at + 4000), None, LOOK))


def test_machines_of_a_site_without_a_node_have_not_joined_or_are_broken(observer: Observer) -> None:
    new = {entry.id: entry.fact for entry in observer.absent((), {}, FIRST)}
    assert new
    assert all(isinstance(fact, HostFact) and fact.idle is Use.BOOTING and fact.down for fact in new.values())
    name = min(new)
    known = {**new, name: FREE._replace(pool="workers")}
    assert [(entry.id, entry.fact) for entry in observer.absent((), known, LOOK)] == [
        (name, FREE._replace(pool="workers", idle=Use.BROKEN, down=True))
    ]
    assert observer.removed({**known, "former": FREE._replace(pool="workers", down=True)}) == ["former"]
