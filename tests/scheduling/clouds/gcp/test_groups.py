"""Managed instance groups of Google Cloud: its own libraries through the door."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from cluster.spec import Cluster
from controllers.autoscaler.groups import GroupError
from tests.scheduling.clouds.door import Asked, Door, Told, once, told
from tests.scheduling.clouds.fake_google import Google, refused
from tests.scheduling.clouds.gcp.support import ZONES, groups, is_change, sizes, worker


def test_a_pools_groups_of_all_zones_are_read_as_one(gibbon: Cluster, door: Door) -> None:
    at = "us-central1-a/gibbon-cpu-us-central1-a-0001"
    group = groups(gibbon, {f"gce://a-project/{at}": "gibbon-cpu-us-central1-a-0001"}).read()["cpu"]
    assert (group.size, group.least, group.most, group.trouble) == (2, 2, 12, "")
    assert [(each.id, each.zone, each.state) for each in group.machines] == [
        (at, "us-central1-a", "running"),
        ("us-central1-b/gibbon-cpu-us-central1-b-0002", "us-central1-b", "running"),
    ]
    assert [each.node for each in group.machines] == ["gibbon-cpu-us-central1-a-0001", ""]


@pytest.mark.parametrize(
    ("told_of", "state"),
    [
        ({"currentAction": "CREATING"}, "booting"),
        ({"currentAction": "NONE", "instanceStatus": "STAGING"}, "booting"),
        ({"currentAction": "NONE", "instanceStatus": "RUNNING"}, "running"),
        ({"currentAction": "REFRESHING", "instanceStatus": "RUNNING"}, "running"),
        ({"currentAction": "DELETING", "instanceStatus": "RUNNING"}, "leaving"),
        ({"currentAction": "NONE", "instanceStatus": "STOPPING"}, "leaving"),
    ],
)
def test_what_google_does_with_a_machine_is_its_state(
    gibbon: Cluster, door: Door, told_of: dict[str, str], state: str
) -> None:
    page = told(200, {"managedInstances": [{"name": "x", "instance": "https://x/zones/z/instances/x", **told_of}]})
    door.faults = [once(lambda asked: page if "listManagedInstances" in asked.path else None)]
    assert groups(gibbon).read()["cpu"].machines[0].state == state


def test_the_zones_with_fewest_machines_grow_and_none_shrinks(gibbon: Cluster, google: Google, door: Door) -> None:
    seen = groups(gibbon)
    for size in (6, 6, 3):
        seen.grow("cpu", size)
    assert sizes(google) == [2, 2, 2]
    assert len([asked for asked in door.log if is_change(asked)]) == 3


def test_a_zone_without_capacity_is_told_and_grows_last(gibbon: Cluster, google: Google, door: Door) -> None:
    name = "gibbon-cpu-us-central1-a"
    text = "The zone 'us-central1-a' does not have enough resources available to fulfill the request."
    google.groups["us-central1-a", name].errors[f"{name}-0001"] = ("ZONE_RESOURCE_POOL_EXHAUSTED", text)
    seen = groups(gibbon)
    group = seen.read()["cpu"]
    assert group.trouble == f"us-central1-a: ZONE_RESOURCE_POOL_EXHAUSTED: {text}"
    assert group.machines[0].state == "booting"
    seen.grow("cpu", 7)
    assert sizes(google) == [1, 3, 3]


def test_a_quota_that_is_used_up_is_told(gibbon: Cluster, google: Google, door: Door) -> None:
    name = "gibbon-cpu-us-central1-b"
    google.groups["us-central1-b", name].errors[f"{name}-0002"] = ("QUOTA_EXCEEDED", "Quota 'C3_CPUS' exceeded.")
    assert groups(gibbon).read()["cpu"].trouble == "us-central1-b: QUOTA_EXCEEDED: Quota 'C3_CPUS' exceeded."


def test_a_pool_never_grows_above_its_most(gibbon: Cluster, google: Google, door: Door) -> None:
    with pytest.raises(GroupError, match="13 machines are more than its 12; raise pools.cpu.max"):
        groups(gibbon).grow("cpu", 13)
    assert sizes(google) == [1, 1, 0]


def test_named_machines_go_wherever_they_stand_and_no_others(gibbon: Cluster, google: Google, door: Door) -> None:
    seen = groups(gibbon)
    seen.grow("cpu", 9)
    ids = [each.id for each in seen.read()["cpu"].machines]
    going = [ids[0], ids[1], ids[4]]
    for _ in range(2):
        seen.remove("cpu", going)
    assert sizes(google) == [1, 2, 3]
    assert [each.id for each in seen.read()["cpu"].machines] == [id_ for id_ in ids if id_ not in going]


def test_no_fewer_are_left_than_the_spec_keeps(gibbon: Cluster, google: Google, door: Door) -> None:
    seen = groups(gibbon)
    with pytest.raises(GroupError, match="1 machines would be left, and it keeps 2"):
        seen.remove("cpu", [seen.read()["cpu"].machines[0].id])
    assert sizes(google) == [1, 1, 0]


@pytest.mark.parametrize("fault", ["lost", "dead"])
def test_a_lost_answer_changes_nothing_more_when_asked_again(
    gibbon: Cluster, google: Google, door: Door, pauses: list[float], fault: str
) -> None:
    seen = groups(gibbon)
    door.faults = [once(lambda asked: fault if "/resize?" in asked.path else None)]
    seen.grow("cpu", 5)
    assert sum(sizes(google)) == 5
    door.faults = [once(lambda asked: fault if "/deleteInstances?" in asked.path else None)]
    seen.remove("cpu", [seen.read()["cpu"].machines[0].id])
    assert sum(sizes(google)) == 4


def test_groups_without_the_clusters_labels_are_neither_seen_nor_touched(
    gibbon: Cluster, google: Google, door: Door
) -> None:
    ours = worker(gibbon, "cpu")
    google.add(ZONES[0], "gibbon-cpu-us-central1-aa", ours | {"cluster": "gibbons"}, 3)
    google.add(ZONES[0], "gibbon-api", ours | {"role": "api-server"}, 3)
    google.add(ZONES[0], "nobody", {}, 3)
    strangers = [f"{ZONES[0]}/{name}" for group in google.groups.values() for name in group.members]
    seen = groups(gibbon)
    own = {each.id for each in seen.read()["cpu"].machines}
    seen.remove("cpu", [name for name in strangers if name not in own])
    seen.grow("cpu", 12)
    assert {name: group.target for (_, name), group in google.groups.items() if group.target == 3}.keys() == {
        "gibbon-cpu-us-central1-aa",
        "gibbon-api",
        "nobody",
    }


def test_all_pages_are_read(gibbon: Cluster, google: Google, door: Door) -> None:
    google.most = 1
    seen = groups(gibbon)
    seen.grow("cpu", 7)
    assert len(seen.read()["cpu"].machines) == 7


@pytest.mark.parametrize("spoiled", ["instanceTemplates", "instanceGroupManagers?"])
def test_where_google_left_something_out_nothing_is_believed(
    gibbon: Cluster, google: Google, door: Door, spoiled: str
) -> None:
    def partial(asked: Asked) -> Told | None:
        if spoiled not in asked.path:
            return None
        warning = {"code": "UNREACHABLE", "message": "The following zones could not be reached", "data": []}
        return told(200, {**json.loads(google.answer(asked).body), "warning": warning})

    door.faults = [partial]
    with pytest.raises(GroupError, match=r"left out a part of its list of .* \(UNREACHABLE\); none is believed"):
        groups(gibbon).read()


@pytest.mark.parametrize("spoiled", ["instanceTemplates", "instanceGroupManagers?", "listManagedInstances"])
@pytest.mark.parametrize(
    ("page", "said"),
    [
        (refused(403, "forbidden", "Required permission"), "forbidden: .*Required .*docs/gcp-role-autoscaler.yaml"),
        (refused(400, "invalid", "Invalid value for field 'pageToken'"), "refuses a request: invalid: .*pageToken"),
        (Told(200, "<html>a page of some proxy"), "answer can't be read: .*; it is not believed"),
    ],
)
def test_without_a_part_nothing_is_believed(gibbon: Cluster, door: Door, spoiled: str, page: Told, said: str) -> None:
    door.faults = [lambda asked: page if spoiled in asked.path else None]
    with pytest.raises(GroupError, match=said):
        groups(gibbon).read()


@pytest.mark.parametrize("spoiled", ["instanceTemplates", "instanceGroupManagers?", "listManagedInstances"])
def test_a_list_without_an_end_is_not_believed(gibbon: Cluster, google: Google, door: Door, spoiled: str) -> None:
    def endless(asked: Asked) -> Told | None:
        if spoiled not in asked.path:
            return None
        path = asked.path.replace("pageToken=again", "pageToken=0")
        page = json.loads(google.answer(replace(asked, path=path)).body)
        return told(200, {**page, "nextPageToken": "again"})

    door.faults = [endless]
    with pytest.raises(GroupError, match="gives one page again and again; none is believed"):
        groups(gibbon).read()


def test_a_zone_without_its_group_is_told(gibbon: Cluster, google: Google, door: Door) -> None:
    del google.groups["us-central1-b", "gibbon-cpu-us-central1-b"]
    with pytest.raises(GroupError, match="pool cpu in us-central1-b has no group in the cloud"):
        groups(gibbon).read()


@pytest.mark.parametrize(
    "slow",
    [refused(429, "rateLimitExceeded", "Quota exceeded"), refused(403, "rateLimitExceeded", "Rate Limit Exceeded")],
)
def test_who_is_told_to_slow_down_asks_again(
    gibbon: Cluster, google: Google, door: Door, pauses: list[float], slow: Told
) -> None:
    away = refused(503, "backendError", "Backend Error")
    door.faults = [once(lambda asked: slow if is_change(asked) else None), once(lambda _: away)]
    groups(gibbon).grow("cpu", 3)
    assert sum(sizes(google)) == 3
    assert len(pauses) == 2


def test_who_is_told_so_again_and_again_gives_up_in_time(
    gibbon: Cluster, google: Google, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    door.faults = [lambda _: refused(429, "rateLimitExceeded", "Quota exceeded")]
    with pytest.raises(GroupError, match="Google Cloud says to slow down: .*Quota exceeded; the next pass asks again"):
        groups(gibbon).read()
    assert 3 < len(door.log) < 20
    assert now[0] <= 45


def test_no_operation_is_waited_for_and_one_that_failed_at_once_is_told(
    gibbon: Cluster, google: Google, door: Door
) -> None:
    """To follow one is a right of its own, and it takes minutes."""
    seen = groups(gibbon)
    seen.grow("cpu", 3)
    google.failing = ("QUOTA_EXCEEDED", "Quota 'C3_CPUS' exceeded. Limit: 24.0 in region us-central1.")
    with pytest.raises(GroupError, match="Google Cloud: QUOTA_EXCEEDED: Quota 'C3_CPUS' exceeded"):
        seen.grow("cpu", 4)
    assert not any("/operations/" in each.path for each in door.log)
