"""Scale sets of Azure: its own libraries through the door."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.spec import Cluster
from controllers.autoscaler.clouds.common import LostError
from controllers.autoscaler.groups import GroupError
from stacks.azure.tags import tags
from tests.scheduling.clouds.azure.support import asked_of, changes, groups, kept, marks
from tests.scheduling.clouds.door import Door, Told, once, told
from tests.scheduling.clouds.fake_azure import LOGIN, MANAGEMENT, Microsoft, refused, too_many


def test_a_scale_set_is_read_with_its_machines(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    # The metadata service and the resource manager spell one id differently.
    at = "/subscriptions/a-sub/resourceGroups/KOALA_WORKERS/providers/Microsoft.Compute/virtualMachineScaleSets"
    node = {f"azure://{at}/pool-cpu/virtualMachines/1": "cpu-000001"}
    kept(microsoft).members["3"]["provisioningState"] = "Deleting"
    kept(microsoft).members["2"]["provisioningState"] = "Creating"
    group = groups(koala, node).read()["cpu"]
    assert (group.size, group.least, group.most, group.trouble) == (4, 2, 20, "")
    assert [(each.id, each.node, each.state, each.zone) for each in group.machines] == [
        ("0", "", "running", "2"),
        ("1", "cpu-000001", "running", "2"),
        ("2", "", "booting", "2"),
        ("3", "", "leaving", "2"),
    ]
    assert str(group.machines[0].since) == "2026-11-01 00:00:00.123456+00:00"


def test_a_scale_set_grows_once_and_never_shrinks_by_it(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    seen = groups(koala)
    for size in (6, 6, 3):
        seen.grow("cpu", size)
    assert kept(microsoft).capacity == 6
    assert changes(door) == ["PATCH"]


def test_it_never_grows_above_its_most(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    with pytest.raises(GroupError, match="21 machines are more than its 20"):
        groups(koala).grow("cpu", 21)
    assert changes(door) == []


def test_named_machines_go_and_no_others(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    seen = groups(koala)
    for _ in range(2):
        seen.remove("cpu", ["1", "2"])
    assert (kept(microsoft).capacity, sorted(kept(microsoft).members)) == (2, ["0", "3"])
    assert changes(door) == ["POST"]


def test_a_word_that_means_all_machines_is_no_machine(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    groups(koala).remove("cpu", ["*"])
    assert changes(door) == []


def test_no_fewer_are_left_than_the_spec_keeps(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    with pytest.raises(GroupError, match="1 machines would be left, and it keeps 2"):
        groups(koala).remove("cpu", ["0", "1", "2"])
    assert changes(door) == []


@pytest.mark.parametrize("fault", ["lost", "dead"])
def test_a_lost_answer_changes_nothing_more_when_asked_again(
    koala: Cluster, microsoft: Microsoft, door: Door, fault: str
) -> None:
    door.faults = [
        once(lambda asked: fault if asked_of(asked) == "PATCH" else None),
        once(lambda asked: fault if "/delete?" in asked.path else None),
    ]
    seen = groups(koala)
    seen.grow("cpu", 6)
    seen.remove("cpu", ["0", "5"])
    assert (kept(microsoft).capacity, sorted(kept(microsoft).members)) == (4, ["1", "2", "3", "4"])


def test_scale_sets_without_the_clusters_tags_are_neither_seen_nor_touched(
    koala: Cluster, microsoft: Microsoft, door: Door
) -> None:
    ours = marks(koala)
    strangers = [
        microsoft.add("koala_workers", "another-cluster", ours | {"cluster": "koalas"}, 5),
        microsoft.add("koala_workers", "nobody", {}, 5),
        microsoft.add("koala_workers", "api-servers", {**tags(koala, "api-servers")}, 5),
        microsoft.add("koala", "pool-cpu", ours, 5),
    ]
    seen = groups(koala)
    assert seen.read()["cpu"].size == 4
    seen.grow("cpu", 7)
    seen.remove("cpu", ["4"])
    assert [each.capacity for each in strangers] == [5] * 4
    assert kept(microsoft).capacity == 6


def test_two_of_a_pool_are_told(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    microsoft.add("koala_workers", "pool-cpu-2", marks(koala), 1)
    with pytest.raises(GroupError, match="pool-cpu and pool-cpu-2 both say that they are pool cpu"):
        groups(koala).read()


def test_all_pages_are_read(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    microsoft.page = 1
    microsoft.add("koala_workers", "a-former", marks(koala, "former"), 0)
    assert len(groups(koala).read()["cpu"].machines) == 4


@pytest.mark.parametrize("spoiled", ["virtualMachineScaleSets?", "virtualMachines?"])
def test_without_the_last_page_nothing_is_believed(
    koala: Cluster, microsoft: Microsoft, door: Door, spoiled: str
) -> None:
    microsoft.page = 1
    microsoft.add("koala_workers", "zebra", marks(koala, "former"), 0)
    no = refused(400, "InvalidSkipToken", "no")
    door.faults = [lambda asked: no if spoiled in asked.path and "skiptoken" in asked.path else None]
    with pytest.raises(GroupError, match="Azure refuses GET .*: InvalidSkipToken: no"):
        groups(koala).read()


@pytest.mark.parametrize("kind", ["text/html", "application/json"])
def test_an_answer_that_is_not_azures_is_not_believed(koala: Cluster, door: Door, kind: str) -> None:
    page = Told(200, "<html>a page of some proxy", {"Content-Type": kind})
    door.faults = [lambda asked: page if asked_of(asked) == "GET" else None]
    with pytest.raises(GroupError, match="Azure's answer can't be read: .*; it is not believed"):
        groups(koala).read()


def test_a_next_page_elsewhere_gets_no_token(koala: Cluster, door: Door) -> None:
    elsewhere = told(200, {"value": [], "nextLink": "https://management.azure.com.example/x"})
    door.faults = [lambda asked: elsewhere if asked_of(asked) == "GET" else None]
    with pytest.raises(GroupError, match="no next page that can be read: it is at management.azure.com.example"):
        groups(koala).read()
    assert {each.host for each in door.log} == {LOGIN, MANAGEMENT}


def test_a_list_without_an_end_is_not_believed(koala: Cluster, door: Door) -> None:
    same = told(200, {"value": [], "nextLink": f"https://{MANAGEMENT}/again?api-version=x"})
    door.faults = [lambda asked: same if asked_of(asked) == "GET" else None]
    with pytest.raises(GroupError, match="list of scale sets: the cloud gives one page again and again"):
        groups(koala).read()


ALLOCATION = {
    "code": "ProvisioningState/failed/AllocationFailed",
    "level": "Error",
    "message": "Allocation failed. We do not have sufficient capacity for the requested VM size in this region.",
}


def test_a_scale_set_that_got_no_machine_says_why(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    kept(microsoft).capacity, kept(microsoft).state, kept(microsoft).statuses = 6, "Failed", [ALLOCATION]
    trouble = groups(koala).read()["cpu"].trouble
    assert trouble == f"AllocationFailed: {ALLOCATION['message']}"


def test_a_machine_that_could_not_be_made_says_why(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    machine = {"provisioningState": "Failed", "instanceView": {"statuses": [ALLOCATION]}}
    kept(microsoft).members["3"] = machine
    group = groups(koala).read()["cpu"]
    assert (group.machines[3].state, group.trouble) == ("booting", f"AllocationFailed: {ALLOCATION['message']}")


def test_a_quota_that_is_used_up_is_told_now_and_for_a_while(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    message = "Operation could not be completed as it results in exceeding approved Total Regional Cores quota."
    full = refused(409, "OperationNotAllowed", message)
    door.faults = [once(lambda asked: full if asked_of(asked) == "PATCH" else None)]
    now = [0.0]
    seen = groups(koala)
    seen._clock = lambda: now[0]
    with pytest.raises(GroupError, match=f"OperationNotAllowed: {message}"):
        seen.grow("cpu", 6)
    assert message in seen.read()["cpu"].trouble
    now[0] = 901.0
    assert seen.read()["cpu"].trouble == ""
    seen.grow("cpu", 6)
    assert kept(microsoft).capacity == 6


def test_who_is_told_to_slow_down_waits_as_long_as_told(
    koala: Cluster, microsoft: Microsoft, door: Door, pauses: list[float]
) -> None:
    door.faults = [
        once(lambda asked: too_many(retry_after="7") if asked_of(asked) == "PATCH" else None),
        once(lambda asked: too_many(retry_after="3") if asked_of(asked) == "GET" else None),
    ]
    groups(koala).grow("cpu", 5)
    assert kept(microsoft).capacity == 5
    assert pauses == [3, 7]


@pytest.mark.parametrize(("pause", "waited"), [("9", [9, 9]), ("600", [])])
def test_who_is_told_so_again_and_again_or_to_wait_for_minutes_gives_up(
    koala: Cluster, microsoft: Microsoft, door: Door, pauses: list[float], pause: str, waited: list[float]
) -> None:
    seen = groups(koala)
    door.faults = [lambda asked: too_many(retry_after=pause) if asked_of(asked) == "PATCH" else None]
    with pytest.raises(GroupError, match="Azure says to slow down: OperationNotAllowed: .*the next pass asks again"):
        seen.grow("cpu", 5)
    assert pauses == waited
    # It has the code of a quota, and is none.
    assert seen.read()["cpu"].trouble == ""


def test_taking_machines_out_is_never_repeated_by_itself(koala: Cluster, door: Door, pauses: list[float]) -> None:
    def spoiled(made: Told) -> list[Any]:
        return [lambda asked: made if "/delete?" in asked.path else None]

    door.faults = spoiled(too_many(retry_after="1"))
    with pytest.raises(GroupError, match="slow down"):
        groups(koala).remove("cpu", ["1"])
    assert changes(door) == ["POST"]
    # Azure's own failure says nothing of what was done: the machines are read before it is asked again.
    door.faults = spoiled(refused(503, "ServerUnavailable", "x", retry_after="1"))
    door.log.clear()
    with pytest.raises(LostError, match="no answer from Azure that tells whether it was done: HTTP 503"):
        groups(koala).remove("cpu", ["1"])
    asked = [each.path.partition("?")[0].rpartition("/")[2] for each in door.log if each.host == MANAGEMENT]
    assert asked == ["virtualMachineScaleSets", "virtualMachines", "delete"] + ["virtualMachines", "delete"] * 2
    assert pauses == []


def test_no_operation_is_waited_for(koala: Cluster, door: Door) -> None:
    """To follow one is a right of its own, and it takes minutes."""
    seen = groups(koala)
    seen.grow("cpu", 6)
    seen.remove("cpu", ["0"])
    assert not any("/operations/" in each.path for each in door.log)


def test_rights_that_are_missing_are_named_with_where_they_are(koala: Cluster, door: Door) -> None:
    no = refused(403, "AuthorizationFailed", "does not have authorization")
    door.faults = [lambda asked: no if asked_of(asked) == "GET" else None]
    with pytest.raises(GroupError, match="AuthorizationFailed: does not .*docs/azure-role-autoscaler.json"):
        groups(koala).read()
