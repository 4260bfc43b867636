"""Scale sets of Azure, with its own libraries through the door."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.spec import Cluster
from controllers.autoscaler.clouds.common import LostError
from controllers.autoscaler.groups import GroupError
from stacks.azure.tags import tags
from tests.scheduling.clouds.azure.support import changes, groups, marks, method_of, scale_set
from tests.scheduling.clouds.door import Door, Response, json_response, once
from tests.scheduling.clouds.fake_azure import LOGIN, MANAGEMENT, Microsoft, refused, too_many


def test_a_scale_set_is_read_with_its_machines(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    # The metadata service and the Resource Manager spell the same id differently.
    at = "/subscriptions/a-sub/resourceGroups/KOALA_WORKERS/providers/Microsoft.Compute/virtualMachineScaleSets"
    node = {f"azure://{at}/pool-cpu/virtualMachines/1": "cpu-000001"}
    scale_set(microsoft).members["3"]["provisioningState"] = "Deleting"
    scale_set(microsoft).members["2"]["provisioningState"] = "Creating"
    group = groups(koala, node).read()["cpu"]
    assert (group.size, group.least, group.most, group.trouble) == (4, 2, 20, "")
    assert [(each.id, each.node, each.state, each.zone) for each in group.machines] == [
        ("0", "", "running", "2"),
        ("1", "cpu-000001", "running", "2"),
        ("2", "", "booting", "2"),
        ("3", "", "leaving", "2"),
    ]
    assert str(group.machines[0].since) == "2026-11-01 00:00:00.123456+00:00"


def test_growing_a_scale_set_is_idempotent_and_never_shrinks_it(
    koala: Cluster, microsoft: Microsoft, door: Door
) -> None:
    pools = groups(koala)
    for size in (6, 6, 3):
        pools.grow("cpu", size)
    assert scale_set(microsoft).capacity == 6
    assert changes(door) == ["PATCH"]


def test_a_scale_set_never_grows_above_its_maximum(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    with pytest.raises(GroupError, match="21 machines exceed its maximum of 20"):
        groups(koala).grow("cpu", 21)
    assert changes(door) == []


def test_only_named_machines_are_removed(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    pools = groups(koala)
    for _ in range(2):
        pools.remove("cpu", ["1", "2"])
    assert (scale_set(microsoft).capacity, sorted(scale_set(microsoft).members)) == (2, ["0", "3"])
    assert changes(door) == ["POST"]


def test_the_wildcard_for_all_machines_removes_none(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    groups(koala).remove("cpu", ["*"])
    assert changes(door) == []


def test_a_pool_never_shrinks_below_its_minimum(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    with pytest.raises(GroupError, match="1 machines would be left, but its minimum is 2"):
        groups(koala).remove("cpu", ["0", "1", "2"])
    assert changes(door) == []


@pytest.mark.parametrize("fault", ["lost", "dead"])
def test_a_retry_after_a_lost_answer_changes_nothing_more(
    koala: Cluster, microsoft: Microsoft, door: Door, fault: str
) -> None:
    door.faults = [
        once(lambda request: fault if method_of(request) == "PATCH" else None),
        once(lambda request: fault if "/delete?" in request.path else None),
    ]
    pools = groups(koala)
    pools.grow("cpu", 6)
    pools.remove("cpu", ["0", "5"])
    assert (scale_set(microsoft).capacity, sorted(scale_set(microsoft).members)) == (4, ["1", "2", "3", "4"])


def test_scale_sets_without_the_clusters_tags_are_ignored(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    ours = marks(koala)
    strangers = [
        microsoft.add("koala_workers", "another-cluster", ours | {"cluster": "koalas"}, 5),
        microsoft.add("koala_workers", "nobody", {}, 5),
        microsoft.add("koala_workers", "api-servers", {**tags(koala, "api-servers")}, 5),
        microsoft.add("koala", "pool-cpu", ours, 5),
    ]
    pools = groups(koala)
    assert pools.read()["cpu"].size == 4
    pools.grow("cpu", 7)
    pools.remove("cpu", ["4"])
    assert [each.capacity for each in strangers] == [5] * 4
    assert scale_set(microsoft).capacity == 6


def test_two_scale_sets_of_a_pool_are_reported(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    microsoft.add("koala_workers", "pool-cpu-2", marks(koala), 1)
    with pytest.raises(GroupError, match="pool-cpu and pool-cpu-2 are all marked as pool cpu"):
        groups(koala).read()


def test_all_pages_are_read(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    microsoft.page = 1
    microsoft.add("koala_workers", "a-former", marks(koala, "former"), 0)
    assert len(groups(koala).read()["cpu"].machines) == 4


@pytest.mark.parametrize("spoiled", ["virtualMachineScaleSets?", "virtualMachines?"])
def test_without_the_last_page_the_list_is_not_used(
    koala: Cluster, microsoft: Microsoft, door: Door, spoiled: str
) -> None:
    microsoft.page = 1
    microsoft.add("koala_workers", "zebra", marks(koala, "former"), 0)
    no = refused(400, "InvalidSkipToken", "no")
    door.faults = [lambda request: no if spoiled in request.path and "skiptoken" in request.path else None]
    with pytest.raises(GroupError, match="Azure refuses GET .*: InvalidSkipToken: no"):
        groups(koala).read()


@pytest.mark.parametrize("kind", ["text/html", "application/json"])
def test_an_answer_that_is_not_from_azure_is_not_used(koala: Cluster, door: Door, kind: str) -> None:
    page = Response(200, "<html>a page of some proxy", {"Content-Type": kind})
    door.faults = [lambda request: page if method_of(request) == "GET" else None]
    with pytest.raises(GroupError, match="Azure's answer can't be read: .*; it is not used"):
        groups(koala).read()


def test_a_next_page_on_another_server_gets_no_token(koala: Cluster, door: Door) -> None:
    elsewhere = json_response(200, {"value": [], "nextLink": "https://management.azure.com.example/x"})
    door.faults = [lambda request: elsewhere if method_of(request) == "GET" else None]
    with pytest.raises(GroupError, match="next page is on another server, management.azure.com.example"):
        groups(koala).read()
    assert {each.host for each in door.log} == {LOGIN, MANAGEMENT}


def test_an_endless_list_is_not_used(koala: Cluster, door: Door) -> None:
    same = json_response(200, {"value": [], "nextLink": f"https://{MANAGEMENT}/again?api-version=x"})
    door.faults = [lambda request: same if method_of(request) == "GET" else None]
    with pytest.raises(GroupError, match="list of scale sets: the cloud returns the same page repeatedly"):
        groups(koala).read()


ALLOCATION = {
    "code": "ProvisioningState/failed/AllocationFailed",
    "level": "Error",
    "message": "Allocation failed. We do not have sufficient capacity for the requested VM size in this region.",
}


def test_a_scale_set_that_got_no_machine_has_a_reason(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    scale_set(microsoft).capacity, scale_set(microsoft).state, scale_set(microsoft).statuses = 6, "Failed", [ALLOCATION]
    trouble = groups(koala).read()["cpu"].trouble
    assert trouble == f"AllocationFailed: {ALLOCATION['message']}"


def test_a_machine_that_could_not_be_created_has_a_reason(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    machine = {"provisioningState": "Failed", "instanceView": {"statuses": [ALLOCATION]}}
    scale_set(microsoft).members["3"] = machine
    group = groups(koala).read()["cpu"]
    assert (group.machines[3].state, group.trouble) == ("booting", f"AllocationFailed: {ALLOCATION['message']}")


def test_an_exhausted_quota_is_reported_now_and_for_a_while(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    message = "Operation could not be completed as it results in exceeding approved Total Regional Cores quota."
    full = refused(409, "OperationNotAllowed", message)
    door.faults = [once(lambda request: full if method_of(request) == "PATCH" else None)]
    now = [0.0]
    pools = groups(koala)
    pools._clock = lambda: now[0]
    with pytest.raises(GroupError, match=f"OperationNotAllowed: {message}"):
        pools.grow("cpu", 6)
    assert message in pools.read()["cpu"].trouble
    now[0] = 901.0
    assert pools.read()["cpu"].trouble == ""
    pools.grow("cpu", 6)
    assert scale_set(microsoft).capacity == 6


def test_a_throttled_request_waits_as_long_as_requested(
    koala: Cluster, microsoft: Microsoft, door: Door, pauses: list[float]
) -> None:
    door.faults = [
        once(lambda request: too_many(retry_after="7") if method_of(request) == "PATCH" else None),
        once(lambda request: too_many(retry_after="3") if method_of(request) == "GET" else None),
    ]
    groups(koala).grow("cpu", 5)
    assert scale_set(microsoft).capacity == 5
    assert pauses == [3, 7]


@pytest.mark.parametrize(("pause", "waited"), [("9", [9, 9]), ("600", [])])
def test_repeated_throttling_and_long_waits_end_the_retries(
    koala: Cluster, microsoft: Microsoft, door: Door, pauses: list[float], pause: str, waited: list[float]
) -> None:
    pools = groups(koala)
    door.faults = [lambda request: too_many(retry_after=pause) if method_of(request) == "PATCH" else None]
    with pytest.raises(GroupError, match="Azure throttles requests: OperationNotAllowed: .*the next pass tries again"):
        pools.grow("cpu", 5)
    assert pauses == waited
    # The error has the code of a quota, but is not about one.
    assert pools.read()["cpu"].trouble == ""


def test_a_removal_is_never_retried_automatically(koala: Cluster, door: Door, pauses: list[float]) -> None:
    def spoiled(response: Response) -> list[Any]:
        return [lambda request: response if "/delete?" in request.path else None]

    door.faults = spoiled(too_many(retry_after="1"))
    with pytest.raises(GroupError, match="throttles requests"):
        groups(koala).remove("cpu", ["1"])
    assert changes(door) == ["POST"]
    # An internal failure of Azure leaves the result unknown: the machines are read before the retry.
    door.faults = spoiled(refused(503, "ServerUnavailable", "x", retry_after="1"))
    door.log.clear()
    with pytest.raises(LostError, match="no answer from Azure, so the result is unknown: HTTP 503"):
        groups(koala).remove("cpu", ["1"])
    requests = [each.path.partition("?")[0].rpartition("/")[2] for each in door.log if each.host == MANAGEMENT]
    assert requests == ["virtualMachineScaleSets", "virtualMachines", "delete"] + ["virtualMachines", "delete"] * 2
    assert pauses == []


def test_operations_are_not_awaited(koala: Cluster, door: Door) -> None:
    """Following an operation needs another right, and takes minutes."""
    pools = groups(koala)
    pools.grow("cpu", 6)
    pools.remove("cpu", ["0"])
    assert not any("/operations/" in each.path for each in door.log)


def test_missing_rights_are_reported_with_their_document(koala: Cluster, door: Door) -> None:
    no = refused(403, "AuthorizationFailed", "does not have authorization")
    door.faults = [lambda request: no if method_of(request) == "GET" else None]
    with pytest.raises(GroupError, match="AuthorizationFailed: does not .*docs/azure-role-autoscaler.json"):
        groups(koala).read()
