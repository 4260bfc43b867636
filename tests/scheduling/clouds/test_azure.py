"""Scale sets of Azure: the documented HTTP, with answers that are spoiled on their way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cluster.load import load_cluster
from cluster.spec import Cluster
from scheduling.autoscaler.clouds.azure.groups import AzureGroups
from scheduling.autoscaler.clouds.http import Http
from scheduling.autoscaler.groups import GroupError
from stacks.azure.tags import autoscaler_tags, tags
from tests.scheduling.clouds.door import Asked, Door, Told, once, served, told
from tests.scheduling.clouds.fakes import TOKEN, Microsoft, Set

ROOT = Path(__file__).resolve().parents[3]
POOL = ("koala_workers", "pool-cpu")


@pytest.fixture(scope="module")
def koala() -> Cluster:
    return load_cluster(ROOT / "docs/examples/azure-small.yaml")


@pytest.fixture
def microsoft(koala: Cluster) -> Microsoft:
    """With the scale set of the cluster's pool, as the stack makes it, of four machines."""
    made = Microsoft(secret="a-secret")
    made.add(*POOL, marks(koala), 4)
    return made


def marks(cluster: Cluster, pool: str = "cpu") -> dict[str, str]:
    return {**tags(cluster, f"pool-{pool}"), **autoscaler_tags(cluster, pool, cluster.spec.pools["cpu"])}


@pytest.fixture
def door(microsoft: Microsoft) -> Iterator[Door]:
    with served(Door(microsoft.answer)) as made:
        microsoft.url = made.url
        yield made


def groups(cluster: Cluster, door: Door, nodes: Mapping[str, str] | None = None, **more: Any) -> AzureGroups:
    environment = {
        "ARM_CLIENT_ID": "a-client",
        "ARM_CLIENT_SECRET": "a-secret",
        "ARM_TENANT_ID": "a-tenant",
        "ARM_SUBSCRIPTION_ID": "a-sub",
        "ARM_ENDPOINT": door.url,
        "AZURE_AUTHORITY_HOST": door.url,
    }
    return AzureGroups(cluster, Http(pause=lambda _: None), lambda: nodes or {}, environment, **more)


def kept(microsoft: Microsoft) -> Set:
    return microsoft.sets[POOL]


def changes(door: Door) -> list[str]:
    return [asked.method for asked in door.log if asked.method == "PATCH" or "/delete?" in asked.path]


def test_a_scale_set_is_read_with_its_machines(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    # The metadata service and the resource manager spell one id differently.
    at = "/subscriptions/a-sub/resourceGroups/KOALA_WORKERS/providers/Microsoft.Compute/virtualMachineScaleSets"
    node = {f"azure://{at}/pool-cpu/virtualMachines/1": "cpu-000001"}
    kept(microsoft).members["3"]["provisioningState"] = "Deleting"
    kept(microsoft).members["2"]["provisioningState"] = "Creating"
    group = groups(koala, door, node).read()["cpu"]
    assert (group.size, group.least, group.most, group.trouble) == (4, 2, 20, "")
    assert [(each.id, each.node, each.state, each.zone) for each in group.machines] == [
        ("0", "", "running", "2"),
        ("1", "cpu-000001", "running", "2"),
        ("2", "", "booting", "2"),
        ("3", "", "leaving", "2"),
    ]
    assert str(group.machines[0].since) == "2026-11-01 00:00:00+00:00"


def test_a_scale_set_grows_once_and_never_shrinks_by_it(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    seen = groups(koala, door)
    for size in (6, 6, 3):
        seen.grow("cpu", size)
    assert kept(microsoft).capacity == 6
    assert changes(door) == ["PATCH"]


def test_it_never_grows_above_its_most(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    with pytest.raises(GroupError, match="21 machines are more than its 20"):
        groups(koala, door).grow("cpu", 21)
    assert changes(door) == []


def test_named_machines_go_and_no_others(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    seen = groups(koala, door)
    for _ in range(2):
        seen.remove("cpu", ["1", "2"])
    assert (kept(microsoft).capacity, sorted(kept(microsoft).members)) == (2, ["0", "3"])
    assert changes(door) == ["POST"]


def test_a_word_that_means_all_machines_is_no_machine(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    groups(koala, door).remove("cpu", ["*"])
    assert changes(door) == []


def test_no_fewer_are_left_than_the_spec_keeps(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    with pytest.raises(GroupError, match="1 machines would be left, and it keeps 2"):
        groups(koala, door).remove("cpu", ["0", "1", "2"])
    assert changes(door) == []


@pytest.mark.parametrize("fault", ["lost", "dead"])
def test_a_lost_answer_changes_nothing_more_when_asked_again(
    koala: Cluster, microsoft: Microsoft, door: Door, fault: str
) -> None:
    door.faults = [
        once(lambda asked: fault if asked.method == "PATCH" else None),
        once(lambda asked: fault if "/delete?" in asked.path else None),
    ]
    seen = groups(koala, door)
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
    seen = groups(koala, door)
    assert seen.read()["cpu"].size == 4
    seen.grow("cpu", 7)
    seen.remove("cpu", ["4"])
    assert [each.capacity for each in strangers] == [5] * 4
    assert kept(microsoft).capacity == 6


def test_two_of_a_pool_are_told(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    microsoft.add("koala_workers", "pool-cpu-2", marks(koala), 1)
    with pytest.raises(GroupError, match="pool-cpu and pool-cpu-2 both say that they are pool cpu"):
        groups(koala, door).read()


def test_all_pages_are_read(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    microsoft.page = 1
    microsoft.add("koala_workers", "a-former", marks(koala, "former"), 0)
    assert len(groups(koala, door).read()["cpu"].machines) == 4


@pytest.mark.parametrize("spoiled", ["virtualMachineScaleSets?", "virtualMachines?"])
def test_without_the_last_page_nothing_is_believed(
    koala: Cluster, microsoft: Microsoft, door: Door, spoiled: str
) -> None:
    microsoft.page = 1
    microsoft.add("koala_workers", "zebra", marks(koala, "former"), 0)
    refused = told(400, {"error": {"code": "InvalidSkipToken", "message": "no"}})
    door.faults = [lambda asked: refused if spoiled in asked.path and "skiptoken" in asked.path else None]
    with pytest.raises(GroupError, match="Azure refuses GET .*: InvalidSkipToken: no"):
        groups(koala, door).read()


def test_a_next_page_elsewhere_gets_no_token(koala: Cluster, door: Door) -> None:
    elsewhere = told(200, {"value": [], "nextLink": "https://management.azure.com.example/x"})
    door.faults = [lambda asked: elsewhere if asked.method == "GET" else None]
    with pytest.raises(GroupError, match="no next page .* that can be read"):
        groups(koala, door).read()


ALLOCATION = {
    "code": "ProvisioningState/failed/AllocationFailed",
    "level": "Error",
    "message": "Allocation failed. We do not have sufficient capacity for the requested VM size in this region.",
}


def test_a_scale_set_that_got_no_machine_says_why(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    kept(microsoft).capacity, kept(microsoft).state, kept(microsoft).statuses = 6, "Failed", [ALLOCATION]
    trouble = groups(koala, door).read()["cpu"].trouble
    assert trouble == f"AllocationFailed: {ALLOCATION['message']}"


def test_a_machine_that_could_not_be_made_says_why(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    machine = {"provisioningState": "Failed", "instanceView": {"statuses": [ALLOCATION]}}
    kept(microsoft).members["3"] = machine
    group = groups(koala, door).read()["cpu"]
    assert (group.machines[3].state, group.trouble) == ("booting", f"AllocationFailed: {ALLOCATION['message']}")


def test_a_quota_that_is_used_up_is_told_now_and_for_a_while(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    message = "Operation could not be completed as it results in exceeding approved Total Regional Cores quota."
    full = told(409, {"error": {"code": "OperationNotAllowed", "message": message}})
    door.faults = [once(lambda asked: full if asked.method == "PATCH" else None)]
    now = [0.0]
    seen = groups(koala, door, clock=lambda: now[0])
    with pytest.raises(GroupError, match=f"OperationNotAllowed: {message}"):
        seen.grow("cpu", 6)
    assert message in seen.read()["cpu"].trouble
    now[0] = 901.0
    assert seen.read()["cpu"].trouble == ""
    seen.grow("cpu", 6)
    assert kept(microsoft).capacity == 6


def test_who_is_told_to_slow_down_waits_as_long_as_told(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    door.faults = [
        once(lambda asked: told(429, {"error": {"code": "TooManyRequests"}}) if asked.method == "PATCH" else None)
    ]
    groups(koala, door).grow("cpu", 5)
    assert kept(microsoft).capacity == 5


def test_a_token_that_ended_early_is_got_anew(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    seen = groups(koala, door)
    seen.read()
    door.faults = [once(lambda asked: told(401, {"error": {"code": "ExpiredAuthenticationToken"}}))]
    assert seen.read()["cpu"].size == 4
    assert sum("oauth2" in asked.path for asked in door.log) == 2


def test_rights_that_are_missing_are_named_with_where_they_are(koala: Cluster, door: Door) -> None:
    refused = told(403, {"error": {"code": "AuthorizationFailed", "message": "does not have authorization"}})
    door.faults = [lambda asked: refused if asked.method == "GET" else None]
    with pytest.raises(GroupError, match="AuthorizationFailed: does not .*docs/azure-role-autoscaler.json"):
        groups(koala, door).read()


def test_a_secret_that_is_wrong_is_told_with_the_way_out(koala: Cluster, microsoft: Microsoft, door: Door) -> None:
    microsoft.secret = "another"
    with pytest.raises(GroupError, match="refuses these credentials: HTTP 401 .*AADSTS7000215.*az login"):
        groups(koala, door).read()


def test_without_credentials_it_is_said_how_to_get_some(koala: Cluster) -> None:
    with pytest.raises(GroupError, match="no credentials for Azure: .*az login"):
        AzureGroups(koala, Http(), dict, {"PATH": "/nowhere"}).read()


def test_a_pod_proves_who_it_is_by_its_federated_token(
    koala: Cluster, microsoft: Microsoft, door: Door, tmp_path: Path
) -> None:
    microsoft.secret = "e.y.J"
    file = tmp_path / "token"
    file.write_text("e.y.J\n")
    environment = {
        "AZURE_CLIENT_ID": "a-client",
        "AZURE_TENANT_ID": "a-tenant",
        "AZURE_FEDERATED_TOKEN_FILE": str(file),
        "AZURE_AUTHORITY_HOST": f"{door.url}/",
        "AZURE_SUBSCRIPTION_ID": "a-sub",
        "ARM_ENDPOINT": door.url,
    }
    assert AzureGroups(koala, Http(), dict, environment).read()["cpu"].size == 4


def test_a_machine_of_azure_has_its_own(koala: Cluster, door: Door) -> None:
    def metadata(asked: Asked) -> Told | None:
        if not asked.path.startswith("/metadata/identity/"):
            return None
        assert asked.headers["Metadata"] == "true"
        return told(200, {"access_token": TOKEN, "expires_in": "3599"})

    door.faults = [metadata]
    environment = {
        "ARM_USE_MSI": "true",
        "ARM_MSI_ENDPOINT": door.url,
        "ARM_SUBSCRIPTION_ID": "a-sub",
        "ARM_ENDPOINT": door.url,
    }
    assert AzureGroups(koala, Http(), dict, environment).read()["cpu"].size == 4
