"""Managed instance groups of Google Cloud, with its own libraries through the door."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from cluster.spec import Cluster
from controllers.autoscaler.groups import GroupError
from tests.scheduling.clouds.door import Door, Request, Response, json_response, once
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
    ("fields", "state"),
    [
        ({"currentAction": "CREATING"}, "booting"),
        ({"currentAction": "NONE", "instanceStatus": "STAGING"}, "booting"),
        ({"currentAction": "NONE", "instanceStatus": "RUNNING"}, "running"),
        ({"currentAction": "REFRESHING", "instanceStatus": "RUNNING"}, "running"),
        ({"currentAction": "DELETING", "instanceStatus": "RUNNING"}, "leaving"),
        ({"currentAction": "NONE", "instanceStatus": "STOPPING"}, "leaving"),
    ],
)
def test_googles_action_on_a_machine_gives_its_state(
    gibbon: Cluster, door: Door, fields: dict[str, str], state: str
) -> None:
    page = json_response(
        200, {"managedInstances": [{"name": "x", "instance": "https://x/zones/z/instances/x", **fields}]}
    )
    door.faults = [once(lambda request: page if "listManagedInstances" in request.path else None)]
    assert groups(gibbon).read()["cpu"].machines[0].state == state


def test_zones_with_the_fewest_machines_grow_and_none_shrinks(gibbon: Cluster, google: Google, door: Door) -> None:
    pools = groups(gibbon)
    for size in (6, 6, 3):
        pools.grow("cpu", size)
    assert sizes(google) == [2, 2, 2]
    assert len([request for request in door.log if is_change(request)]) == 3


def test_a_zone_without_capacity_is_reported_and_grows_last(gibbon: Cluster, google: Google, door: Door) -> None:
    name = "gibbon-cpu-us-central1-a"
    text = "The zone 'us-central1-a' does not have enough resources available to fulfill the request."
    google.groups["us-central1-a", name].errors[f"{name}-0001"] = ("ZONE_RESOURCE_POOL_EXHAUSTED", text)
    pools = groups(gibbon)
    group = pools.read()["cpu"]
    assert group.trouble == f"us-central1-a: ZONE_RESOURCE_POOL_EXHAUSTED: {text}"
    assert group.machines[0].state == "booting"
    pools.grow("cpu", 7)
    assert sizes(google) == [1, 3, 3]


def test_an_exhausted_quota_is_reported(gibbon: Cluster, google: Google, door: Door) -> None:
    name = "gibbon-cpu-us-central1-b"
    google.groups["us-central1-b", name].errors[f"{name}-0002"] = ("QUOTA_EXCEEDED", "Quota 'C3_CPUS' exceeded.")
    assert groups(gibbon).read()["cpu"].trouble == "us-central1-b: QUOTA_EXCEEDED: Quota 'C3_CPUS' exceeded."


def test_a_pool_never_grows_above_its_maximum(gibbon: Cluster, google: Google, door: Door) -> None:
    with pytest.raises(GroupError, match="13 machines exceed its maximum of 12; raise pools.cpu.max"):
        groups(gibbon).grow("cpu", 13)
    assert sizes(google) == [1, 1, 0]


def test_only_named_machines_are_removed_in_whatever_zone(gibbon: Cluster, google: Google, door: Door) -> None:
    pools = groups(gibbon)
    pools.grow("cpu", 9)
    ids = [each.id for each in pools.read()["cpu"].machines]
    going = [ids[0], ids[1], ids[4]]
    for _ in range(2):
        pools.remove("cpu", going)
    assert sizes(google) == [1, 2, 3]
    assert [each.id for each in pools.read()["cpu"].machines] == [id_ for id_ in ids if id_ not in going]


def test_a_pool_never_shrinks_below_its_minimum(gibbon: Cluster, google: Google, door: Door) -> None:
    pools = groups(gibbon)
    with pytest.raises(GroupError, match="1 machines would be left, but its minimum is 2"):
        pools.remove("cpu", [pools.read()["cpu"].machines[0].id])
    assert sizes(google) == [1, 1, 0]


@pytest.mark.parametrize("fault", ["lost", "dead"])
def test_a_retry_after_a_lost_answer_changes_nothing_more(
    gibbon: Cluster, google: Google, door: Door, pauses: list[float], fault: str
) -> None:
    pools = groups(gibbon)
    door.faults = [once(lambda request: fault if "/resize?" in request.path else None)]
    pools.grow("cpu", 5)
    assert sum(sizes(google)) == 5
    door.faults = [once(lambda request: fault if "/deleteInstances?" in request.path else None)]
    pools.remove("cpu", [pools.read()["cpu"].machines[0].id])
    assert sum(sizes(google)) == 4


def test_groups_without_the_clusters_labels_are_ignored(gibbon: Cluster, google: Google, door: Door) -> None:
    ours = worker(gibbon, "cpu")
    google.add(ZONES[0], "gibbon-cpu-us-central1-aa", ours | {"cluster": "gibbons"}, 3)
    google.add(ZONES[0], "gibbon-api", ours | {"role": "api-server"}, 3)
    google.add(ZONES[0], "nobody", {}, 3)
    strangers = [f"{ZONES[0]}/{name}" for group in google.groups.values() for name in group.members]
    pools = groups(gibbon)
    own = {each.id for each in pools.read()["cpu"].machines}
    pools.remove("cpu", [name for name in strangers if name not in own])
    pools.grow("cpu", 12)
    assert {name: group.target for (_, name), group in google.groups.items() if group.target == 3}.keys() == {
        "gibbon-cpu-us-central1-aa",
        "gibbon-api",
        "nobody",
    }


def test_all_pages_are_read(gibbon: Cluster, google: Google, door: Door) -> None:
    google.most = 1
    pools = groups(gibbon)
    pools.grow("cpu", 7)
    assert len(pools.read()["cpu"].machines) == 7


@pytest.mark.parametrize("spoiled", ["instanceTemplates", "instanceGroupManagers?"])
def test_a_list_from_which_google_left_something_out_is_not_used(
    gibbon: Cluster, google: Google, door: Door, spoiled: str
) -> None:
    def partial(request: Request) -> Response | None:
        if spoiled not in request.path:
            return None
        warning = {"code": "UNREACHABLE", "message": "The following zones could not be reached", "data": []}
        return json_response(200, {**json.loads(google.answer(request).body), "warning": warning})

    door.faults = [partial]
    with pytest.raises(GroupError, match=r"left out part of its list of .* \(UNREACHABLE\); the list is not used"):
        groups(gibbon).read()


@pytest.mark.parametrize("spoiled", ["instanceTemplates", "instanceGroupManagers?", "listManagedInstances"])
@pytest.mark.parametrize(
    ("page", "message"),
    [
        (refused(403, "forbidden", "Required permission"), "forbidden: .*Required .*docs/gcp-role-autoscaler.yaml"),
        (refused(400, "invalid", "Invalid value for field 'pageToken'"), "refuses a request: invalid: .*pageToken"),
        (Response(200, "<html>a page of some proxy"), "answer can't be read: .*; it is not used"),
    ],
)
def test_an_incomplete_answer_is_not_used(
    gibbon: Cluster, door: Door, spoiled: str, page: Response, message: str
) -> None:
    door.faults = [lambda request: page if spoiled in request.path else None]
    with pytest.raises(GroupError, match=message):
        groups(gibbon).read()


@pytest.mark.parametrize("spoiled", ["instanceTemplates", "instanceGroupManagers?", "listManagedInstances"])
def test_an_endless_list_is_not_used(gibbon: Cluster, google: Google, door: Door, spoiled: str) -> None:
    def endless(request: Request) -> Response | None:
        if spoiled not in request.path:
            return None
        path = request.path.replace("pageToken=again", "pageToken=0")
        page = json.loads(google.answer(replace(request, path=path)).body)
        return json_response(200, {**page, "nextPageToken": "again"})

    door.faults = [endless]
    with pytest.raises(GroupError, match="returns the same page repeatedly; the list is not used"):
        groups(gibbon).read()


def test_a_zone_without_its_group_is_reported(gibbon: Cluster, google: Google, door: Door) -> None:
    del google.groups["us-central1-b", "gibbon-cpu-us-central1-b"]
    with pytest.raises(GroupError, match="pool cpu in us-central1-b has no group in the cloud"):
        groups(gibbon).read()


@pytest.mark.parametrize(
    "slow",
    [refused(429, "rateLimitExceeded", "Quota exceeded"), refused(403, "rateLimitExceeded", "Rate Limit Exceeded")],
)
def test_a_throttled_request_is_retried(
    gibbon: Cluster, google: Google, door: Door, pauses: list[float], slow: Response
) -> None:
    away = refused(503, "backendError", "Backend Error")
    door.faults = [once(lambda request: slow if is_change(request) else None), once(lambda _: away)]
    groups(gibbon).grow("cpu", 3)
    assert sum(sizes(google)) == 3
    assert len(pauses) == 2


def test_retries_of_throttled_requests_end_in_time(
    gibbon: Cluster, google: Google, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    door.faults = [lambda _: refused(429, "rateLimitExceeded", "Quota exceeded")]
    with pytest.raises(
        GroupError, match="Google Cloud throttles requests: .*Quota exceeded; the next pass tries again"
    ):
        groups(gibbon).read()
    assert 3 < len(door.log) < 20
    assert now[0] <= 45


def test_operations_are_not_awaited_and_immediate_failures_are_reported(
    gibbon: Cluster, google: Google, door: Door
) -> None:
    """Following an operation needs another right, and takes minutes."""
    pools = groups(gibbon)
    pools.grow("cpu", 3)
    google.failing = ("QUOTA_EXCEEDED", "Quota 'C3_CPUS' exceeded. Limit: 24.0 in region us-central1.")
    with pytest.raises(GroupError, match="Google Cloud: QUOTA_EXCEEDED: Quota 'C3_CPUS' exceeded"):
        pools.grow("cpu", 4)
    assert not any("/operations/" in each.path for each in door.log)
