"""The questions about a subscription of Azure, over the documented HTTP of Resource Manager."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cluster.spec import Cluster
from operations.doctor.model import State
from stacks.azure.hosts import DEBIAN
from stacks.azure.permissions import ACTIONS, ALWAYS, FEATURES, resource_providers
from tests.doctor.fake_azure import FAMILY, OWNER, REGION, Subscription, size, token, usage
from tests.doctor.support import ROOT, answers, example, not_ok, rights_of
from tests.scheduling.clouds.door import Door, Request, Response, json_response
from tests.scheduling.clouds.fake_azure import MANAGEMENT, refused, split, too_many


@pytest.fixture(scope="module")
def koala() -> Cluster:
    return example("azure-small")


def test_a_ready_subscription_is_ok_and_is_only_read(koala: Cluster, azure_door: Door) -> None:
    outcomes = answers(koala)
    assert not_ok(outcomes) == {}
    assert outcomes["account: identity"].finding == "a-client in research (a-sub), which is Enabled"
    assert outcomes[f"quotas: vCPUs: {FAMILY}"].finding == f"200 left of 200 vCPUs in {REGION}"
    assert outcomes[f"quotas: vCPUs: {FAMILY}"].needed.startswith("36 vCPUs at the start, 184 at most: API servers")
    assert outcomes[f"images: image: {DEBIAN}"].finding == "0.20261101.1, amd64, V2"
    assert {each.method for each in azure_door.log if each.host == MANAGEMENT} == {"GET"}


RIGHTS = {
    r"": "Microsoft.Resources/subscriptions/read",
    r"/providers/Microsoft.Authorization/permissions": "Microsoft.Authorization/permissions/read",
    r"/providers/Microsoft\.\w+": "Microsoft.Resources/subscriptions/providers/read",
    r"/providers/Microsoft.Features/providers/Microsoft.Compute/features/\w+": "Microsoft.Features/providers/features/read",
    r"/resourceGroups/NetworkWatcherRG/providers/Microsoft.Network/networkWatchers/\w+": "Microsoft.Network/networkWatchers/read",
    r"/resourcegroups/\w+": "Microsoft.Resources/subscriptions/resourceGroups/read",
    r"/providers/Microsoft.Compute/skus": "Microsoft.Compute/skus/read",
    r"/providers/(Microsoft\.\w+)/locations/\w+/usages": r"\1/locations/usages/read",
    r"/providers/Microsoft.Compute/locations/\w+/publishers/\S+/versions(/[\d.]+)?": (
        "Microsoft.Compute/locations/publishers/artifacttypes/offers/skus/versions/read"
    ),
}
"""Path below the subscription -> the right that Azure's reference names for it ("Azure permissions")."""


def right_of(request: Request) -> str:
    path = split(request)[0].removeprefix("/subscriptions/a-sub")
    return next(re.sub(f"^{pattern}$", right, path) for pattern, right in RIGHTS.items() if re.fullmatch(pattern, path))


def test_the_rights_are_those_that_the_requests_need(koala: Cluster, azure_door: Door) -> None:
    answers(koala)
    used = {right_of(request) for request in azure_door.log if request.host == MANAGEMENT}
    own_images = {right for right in rights_of(koala) if "/images" in right}
    assert used == rights_of(koala) - own_images


def test_every_registration_is_in_the_guide() -> None:
    page = (ROOT / "docs/start/azure.md").read_text()
    assert [name for name in resource_providers() if f"az provider register --namespace {name}\n" not in page] == []
    assert [name for name in FEATURES if f"--name {name}\n" not in page] == []


def test_a_missing_action_is_wrong_with_the_commands_that_grant_it(
    koala: Cluster, subscription: Subscription, azure_door: Door
) -> None:
    subscription.roles = [{"actions": ["*"], "notActions": ["Microsoft.Authorization/*/Write"]}]
    answer = answers(koala, "rights")["account: rights"]
    assert answer.state is State.WRONG
    assert "Microsoft.Authorization/roleAssignments/write" in answer.finding
    assert '-m stacks.azure.permissions role a-sub)"' in answer.mend[0]
    assert answer.mend[1].startswith("az role assignment create --assignee an-object")


def test_roles_add_up_and_the_operators_role_is_enough(
    koala: Cluster, subscription: Subscription, azure_door: Door
) -> None:
    every = sorted({*ALWAYS, *(action for actions in ACTIONS.values() for action in actions)})
    half = len(every) // 2
    subscription.roles = [{"actions": [each.upper() for each in every[:half]]}, {"actions": every[half:]}]
    assert answers(koala, "rights")["account: rights"].state is State.OK
    subscription.roles = [{"actions": every[1:]}]
    assert answers(koala, "rights")["account: rights"].finding.endswith(every[0])


def test_an_owner_who_cannot_write_records_gets_the_command_that_grants_it(
    koala: Cluster, subscription: Subscription, azure_door: Door
) -> None:
    subscription.roles = [OWNER]
    outcomes = answers(koala, "rights")
    assert outcomes["account: rights"].state is State.OK
    answer = outcomes["account: rights: records"]
    assert answer.state is State.WRONG
    (command,) = answer.mend
    assert command.startswith('az role assignment create --assignee an-object --role "Storage Blob Data Contributor"')
    assert command.endswith('--condition "$(.venv/bin/python -m stacks.azure.permissions records)"')


@pytest.mark.parametrize("name", ["Microsoft.KeyVault", "EncryptionAtHost"])
def test_a_missing_registration_is_wrong_with_its_command(
    koala: Cluster, subscription: Subscription, azure_door: Door, name: str
) -> None:
    subscription.unregistered = {name}
    (answer,) = [a for a in answers(koala, "resource providers", "features").values() if a.state is not State.OK]
    assert (answer.state, answer.about) == (State.WRONG, name)
    assert answer.mend[0].startswith(("az provider register --namespace", "az feature register --namespace"))
    assert name in answer.mend[0]


def test_a_quota_that_is_too_small_is_wrong_with_its_arithmetic(
    koala: Cluster, subscription: Subscription, azure_door: Door
) -> None:
    subscription.compute = [usage(FAMILY.upper(), 100, 60), usage("cores", 1000)]
    answer = answers(koala, "vCPUs")[f"quotas: vCPUs: {FAMILY.upper()}"]
    assert answer.state is State.WRONG
    assert answer.finding == f"40 left of 100 vCPUs in {REGION}: enough to start, too few to grow"
    assert answer.mend == (
        (
            f"az quota update --resource-name {FAMILY} --scope "
            f"/subscriptions/a-sub/providers/Microsoft.Compute/locations/{REGION} --limit-object value=244"
        ),
    )


def test_a_quota_that_is_not_listed_is_unknown(koala: Cluster, subscription: Subscription, azure_door: Door) -> None:
    subscription.compute = [usage("cores", 1000)]
    answer = answers(koala, "vCPUs")[f"quotas: vCPUs: {FAMILY}"]
    assert (answer.state, answer.needed[:9]) == (State.UNKNOWN, "184 at mo")


def test_a_size_that_is_restricted_or_absent_is_wrong(
    koala: Cluster, subscription: Subscription, azure_door: Door
) -> None:
    restricted = size("Standard_D4s_v5", FAMILY, 4)
    place = {"locations": [REGION], "zones": ["2"]}
    restricted["restrictions"] = [
        {"type": "Zone", "values": [REGION], "restrictionInfo": place, "reasonCode": "NotAvailableForSubscription"}
    ]
    subscription.sizes = [restricted]
    outcomes = answers(koala, "sizes")
    assert (
        outcomes["places: sizes: Standard_D4s_v5 for API servers"].finding == "not offered in 2; it is offered in 1, 3"
    )
    assert outcomes["places: sizes: Standard_D8s_v5 for pool cpu"].finding == "not offered in 1, 2, 3"
    assert {answer.state for answer in outcomes.values()} == {State.WRONG}


def test_a_missing_image_and_one_of_another_architecture_are_wrong(
    koala: Cluster, subscription: Subscription, azure_door: Door
) -> None:
    subscription.architecture = "Arm64"
    (answer,) = answers(koala, "image").values()
    assert answer.state is State.WRONG
    assert answer.finding.startswith("it is for arm64, which API servers (Standard_D4s_v5)")
    subscription.images = set()
    (answer,) = answers(koala, "image").values()
    assert (answer.state, answer.finding) == (State.WRONG, f"there is no such image for {REGION}")
    assert answer.mend[0].startswith(f"az vm image list --location {REGION} --publisher Debian")


def test_taken_names_and_a_missing_network_watcher_are_wrong(
    koala: Cluster, subscription: Subscription, azure_door: Door
) -> None:
    subscription.groups, subscription.watched = {"koala": {}, "koala_workers": {"cluster": "koala"}}, False
    outcomes = answers(koala, "resource groups", "network watcher")
    assert {answer.state for answer in outcomes.values()} == {State.WRONG}
    assert "with this cluster's tags" in outcomes["names: resource groups: koala_workers"].finding
    assert outcomes["registrations: network watcher"].mend == (
        f"az network watcher configure --locations {REGION} --enabled true -g NetworkWatcherRG",
    )


def test_a_disabled_subscription_is_wrong(koala: Cluster, subscription: Subscription, azure_door: Door) -> None:
    subscription.state = "Warned"
    assert answers(koala, "identity")["account: identity"].state is State.WRONG


def test_a_refused_call_is_unknown_with_the_right_that_is_lacking_and_the_others_go_on(
    koala: Cluster, azure_door: Door
) -> None:
    def denied(request: Request) -> Response | None:
        lists = "/skus?" in request.path or "/permissions?" in request.path
        return refused(403, "AuthorizationFailed", "The client does not have authorization.") if lists else None

    azure_door.faults = [denied]
    outcomes = answers(koala)
    unknown = {name for name, answer in outcomes.items() if answer.state is State.UNKNOWN}
    assert unknown == {"account: rights", "quotas: vCPUs", "places: sizes", "images: image"}
    assert outcomes["account: rights"].finding.endswith("; it needs Microsoft.Authorization/permissions/read")
    assert outcomes["account: identity"].state is State.OK


def test_throttled_calls_are_repeated_and_then_unknown(koala: Cluster, azure_door: Door, pauses: list[float]) -> None:
    azure_door.faults = [lambda request: too_many(retry_after="1") if "/usages?" in request.path else None]
    outcomes = answers(koala, "networks", "identity")
    assert (outcomes["quotas: networks"].state, "throttles" in outcomes["quotas: networks"].finding) == (
        State.UNKNOWN,
        True,
    )
    assert sum("/usages?" in request.path for request in azure_door.log) == 3
    assert outcomes["account: identity"].state is State.OK


def test_further_pages_are_requested_only_from_the_same_server(koala: Cluster, azure_door: Door) -> None:
    def elsewhere(request: Request) -> Response | None:
        page = {"value": [], "nextLink": "https://elsewhere.example/next"}
        return json_response(200, page) if "/usages?" in request.path else None

    azure_door.faults = [elsewhere]
    assert "another server" in answers(koala, "networks")["quotas: networks"].finding
    assert "elsewhere.example" not in {request.host for request in azure_door.log}


def test_the_subscription_is_the_one_that_the_azure_cli_chose(
    koala: Cluster, azure_door: Door, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ARM_SUBSCRIPTION_ID")
    (home / ".azure").mkdir()
    text = '{"subscriptions": [{"id": "another"}, {"id": "a-sub", "isDefault": true}]}'
    (home / ".azure/azureProfile.json").write_text(text, encoding="utf-8-sig")
    assert "(a-sub)" in answers(koala, "identity")["account: identity"].finding


def test_a_person_is_named_by_the_token(koala: Cluster, subscription: Subscription, azure_door: Door) -> None:
    subscription.tokens = [token(upn="ada@example.org", oid="x")]
    assert answers(koala, "identity")["account: identity"].finding.startswith("ada@example.org in research")
