"""The whole stack: unchanged on a second run, changed without losing data, protected, and destroyed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sandbox.simcloud.values import plain
from stacks.azure.permissions import ACTIONS, only_our_roles
from tests.stacks.azure.conftest import SLOW_GRANTS, changed

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "azure.md"
KEEPS = {"resources:ResourceGroup", "compute:Disk", "compute:VirtualMachine", "compute:DiskEncryptionSet"}
KEEPS |= {"keyvault:Vault", "keyvault:Key", "storage:StorageAccount", "storage:BlobContainer"}
KEEPS |= {"network:NetworkInterface"}
OWNER = "8e3af657-a8ff-443c-a75c-2fe8c4bcb635"
"""Azure's role that permits everything ("Azure built-in roles")."""


@pytest.fixture
def other(koala):
    """other(changes): what an update to a changed spec would do to koala."""
    cluster = koala.cluster

    def plan(**changes):
        koala.cluster = changed(cluster, **changes)
        return koala.preview(refresh=False)

    yield plan
    koala.cluster = cluster


def test_a_first_up_waits_for_role_assignments_and_then_succeeds(koala):
    waits = [text for text in koala.reported if "waits until a grant works" in text]
    of_accounts = [text for text in waits if "the identity of storage has the role Key Vault Crypto" in text]
    of_disks = [text for text in waits if "the identity of disks has the role Key Vault Crypto" in text]
    assert len(of_accounts) == len(of_disks) == SLOW_GRANTS
    assert waits == [text for text in waits if text in (*of_accounts, *of_disks)]


def test_everything_that_uses_the_key_waits_until_its_grant_works(account):
    hooks = {
        kind: {
            tuple(resource.get("resourceHooks", {}).get("OnError", ()))
            for resource in account.state().values()
            if resource["type"] == f"azure-native:{kind}"
        }
        for kind in ("storage:StorageAccount", "network:FlowLog", "compute:Disk", "compute:VirtualMachine")
    }
    assert hooks["storage:StorageAccount"] == {("waits-for-storage-key",)}
    assert hooks["network:FlowLog"] == {("waits-for-flow-logs",)}
    assert hooks["compute:Disk"] | hooks["compute:VirtualMachine"] == {("waits-for-disks-key",)}


def test_a_second_plan_is_empty(account):
    recording = account.preview()
    assert [step.urn for step in recording.steps] == []


def test_the_page_says_how_many_resources_a_small_cluster_has(koala):
    own = [resource for resource in koala.state().values() if resource["type"].startswith("azure-native:")]
    assert f"`examples/azure-small` has {len(own)} resources of Azure" in PAGE.read_text()


def test_the_operators_role_covers_every_declared_type(koala, wide):
    declared = {record.type for account in (koala, wide) for record in account.world}
    assert {type_ for type_ in declared if type_.startswith("azure-native:")} == set(ACTIONS)


def test_the_operators_condition_names_every_role_and_principal_type_that_the_stack_assigns(koala, wide):
    for account in (koala, wide):
        assignments = [plain(record.inputs) for record in account.records("authorization:RoleAssignment")]
        subscription = assignments[0]["roleDefinitionId"].split("/")[2]
        condition = only_our_roles(subscription, [account.cluster.name])
        allowed = [set(match.split(", ")) for match in re.findall(r"GuidEquals \{([^}]*)\}", condition)]
        assert len(allowed) == 2
        roles = {assignment["roleDefinitionId"].rpartition("/")[2] for assignment in assignments}
        assert all(roles <= roles_ for roles_ in allowed)
        assert OWNER not in condition
        assert {assignment["principalType"] for assignment in assignments} == {"ServicePrincipal"}
        assert condition.count("PrincipalType] ForAnyOfAnyValues:StringEqualsIgnoreCase {'ServicePrincipal'}") == 2


def test_resources_with_data_are_protected_and_contents_of_the_vault_are_retained(account):
    ours = [resource_ for resource_ in account.state().values() if resource_["type"].startswith("azure-native:")]
    for resource in ours:
        kind = resource["type"].removeprefix("azure-native:")
        if kind in KEEPS:
            assert resource.get("protect"), resource["urn"]
        assert bool(resource.get("retainOnDelete")) == (kind in ("keyvault:Secret", "keyvault:Key")), resource["urn"]


def test_more_of_everything_and_new_payloads_lose_nothing(other):
    pool = {"machine": "Standard_D8s_v5", "min": 3, "max": 40, "labels": {"example.org/kind": "cpu"}}
    recording = other(
        etcd__main__members=5,
        etcd__events__members=5,
        control_plane__api_servers=4,
        control_plane__operators=["10.20.0.0/24", "10.30.0.0/24"],
        network__max_pods=200,
        network__flannel__vni=7,
        pools={"cpu": pool, "more": {"machine": "Standard_D4s_v5", "max": 3}},
    )
    (grown,) = (step for step in recording.steps if step.name == "pool-cpu")
    # The autoscaler sets it as soon as the pool is created.
    assert not any(path.startswith("sku") for path in grown.properties)
    lost = {(step.operation, step.name) for step in recording.steps if step.loses}
    assert recording.complaints == []
    assert lost == set()
    steps = {(step.operation, step.name) for step in recording.steps}
    assert {("create", name) for name in ("etcd-main-4", "etcd-main-5", "etcd-events-4", "pool-more")} <= steps
    assert {("update", name) for name in ("api-servers", "pool-cpu", "network")} <= steps
    assert not {("update", f"etcd-main-{number}") for number in (1, 2, 3)} & steps


def test_api_servers_follow_a_new_payload_and_members_do_not(other):
    recording = other(network__max_pods=200, etcd__main__quota="6GiB")
    kinds = {step.type.rpartition(":")[2] for step in recording.steps}
    assert "VirtualMachineScaleSet" in kinds
    assert "VirtualMachine" not in kinds


def test_a_protected_member_is_not_removed(other):
    recording = other(etcd__main__members=1, etcd__events__members=1)
    kept = {complaint.urn.rpartition("::")[2] for complaint in recording.complaints if "protected" in complaint.text}
    assert kept == {"etcd-main-2", "etcd-main-3"}


def test_a_stack_is_planned_created_as_planned_and_destroyed_without_protection(tmp_path, koala, opened):
    """With the smallest possible stack: only the control plane."""
    hybrid = changed(koala.cluster, name="hybrid", pools={}, profile="development", etcd__main__members=1)
    hybrid = changed(hybrid, etcd__events__members=1, control_plane__api_servers=1)
    with opened(hybrid, tmp_path) as account:
        planned = {step.urn for step in account.preview().steps if step.operation == "create"}
        changes = account.up()
        assert set(changes) == {"create"}
        assert changes["create"] == len(planned) - 1  # the stack itself
        account.unprotect()
        account.destroy()
        assert list(account.world) == []
