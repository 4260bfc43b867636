"""Least privilege: what each identity may do, derived from the role assignments as Azure evaluates them."""

from __future__ import annotations

import json
import re

import pytest

from cluster.files import JOIN_TOKEN
from cluster.storage import controllers_pool
from etcd.backups import prefix
from sandbox.simcloud.values import plain
from stacks.azure.machines import READ_MACHINES
from stacks.azure.permissions import RECORDS_CONTAINER
from stacks.azure.rights import USE_BLOBS, BuiltIn, only_below, only_in
from stacks.azure.secrets import LARGEST
from stacks.azure.tags import files_name, scale_set_name
from stacks.azure.volumes import CONTROLLERS, MAKE_DISKS, MAKE_SHARES
from stacks.cloud_store import API_SERVERS, WORKERS

READ, ENCRYPT, BLOBS = (
    BuiltIn.KEY_VAULT_SECRETS_USER,
    BuiltIn.KEY_VAULT_CRYPTO_SERVICE_ENCRYPTION_USER,
    BuiltIn.STORAGE_BLOB_DATA_CONTRIBUTOR,
)


class Rights:
    """(role, name of the scope) of each identity, by the identity's name in the program."""

    def __init__(self, account):
        own = {
            plain(definition.inputs)["roleDefinitionId"]: plain(definition.inputs)
            for definition in account.records("authorization:RoleDefinition")
        }
        self.scopes = {record.id: record for record in account.world}
        self.actions = {
            id_: [*role["permissions"][0].get("actions", ()), *role["permissions"][0].get("dataActions", ())]
            for id_, role in own.items()
        }
        holders = {
            record.outputs["principalId"]: name(record)
            for record in account.records("managedidentity:UserAssignedIdentity")
        }
        (disks,) = account.records("compute:DiskEncryptionSet")
        holders[disks.outputs["identity"]["principalId"]] = "set of disks"
        self.of: dict[str, set[tuple[str, str]]] = {holder: set() for holder in holders.values()}
        for record in account.records("authorization:RoleAssignment"):
            assignment = plain(record.inputs)
            role = assignment["roleDefinitionId"].rpartition("/")[2]
            role_name = role if role in [*BuiltIn] else " ".join(self.actions[role])
            self.of[holders[assignment["principalId"]]].add((role_name, name(self.scopes[assignment["scope"]])))


def name(record):
    return record.urn.rpartition("::")[2]


@pytest.fixture(scope="session")
def rights(account):
    return Rights(account)


def test_each_etcd_host_reads_only_its_own_bundle(account, rights):
    for host in {host.name for role in account.plan.etcd.values() for host in role}:
        reads = {scope for role, scope in rights.of[host] if role == READ}
        assert reads == {f"secrets-{host}"}
        writes = {scope for role, scope in rights.of[host] if role != READ}
        has_backups = host.startswith("etcd-main") and account.cluster.spec.etcd.main.backup
        assert writes == ({"backups"} if has_backups else set())


def test_hosts_with_backups_use_their_blobs_but_cannot_delete_versions(wide):
    rights = Rights(wide)
    for host in ("etcd-main-1", "etcd-main-2", "etcd-main-3"):
        ((actions, scope),) = {right for right in rights.of[host] if right[0] != READ}
        assert scope == "backups"
        blobs = {action.rpartition("/blobs/")[2] for action in actions.split() if "/blobs/" in action}
        assert blobs == {"read", "write", "add/action", "delete"}
    assert {role for role, _ in rights.of["etcd-events-1"]} == {READ}


def test_a_host_uses_only_blobs_of_its_own_etcd(wide):
    """Checks scope and condition of each assignment on the container: a folder belongs to one etcd of a cluster, as for restic."""
    (container,) = [
        assignment.id
        for assignment in wide.records("storage:BlobContainer")
        if assignment.id.endswith("/containers/backups")
    ]
    assignments = {
        name(assignment): plain(assignment.inputs) for assignment in wide.records("authorization:RoleAssignment")
    }
    on_backups = {key: assignment for key, assignment in assignments.items() if assignment["scope"] == container}
    assert on_backups
    for key, assignment in on_backups.items():
        host, _, what = key.rpartition("-")
        role = host.split("-")[1]
        assert what == "backups"
        assert assignment["condition"] == only_below([prefix(wide.cluster.name, role)])
        assert assignment["conditionVersion"] == "2.0"
        assert re.findall(r"StringStartsWith '([^']*)'", assignment["condition"]) == [f"{wide.cluster.name}/{role}/"]


def test_the_condition_covers_every_action_on_blobs_except_listing():
    condition = only_below(["koala/main", "koala/events"])
    actions = re.findall(r"!\(([^)]*)\)", condition)
    assert [re.findall(r"ActionMatches\{'([^']*)'\}", action)[0] for action in actions] == list(USE_BLOBS)
    assert [action for action in actions if "AND NOT" in action] == [
        f"ActionMatches{{'{USE_BLOBS[0]}'}} AND NOT SubOperationMatches{{'Blob.List'}}"
    ]
    # A blob of main whose name starts with events' is not events': the folder ends with a slash.
    assert re.findall(r"StringStartsWith '([^']*)'", condition) == ["koala/main/", "koala/events/"]
    assert condition.count("(") == condition.count(")")


def test_operators_may_use_the_blobs_of_records_and_of_no_other_container(wide):
    names = {plain(record.inputs)["containerName"] for record in wide.records("storage:BlobContainer")}
    assert {name for name in names if f"'{name}'" in only_in(RECORDS_CONTAINER)} == {RECORDS_CONTAINER}
    condition = only_in(RECORDS_CONTAINER)
    assert re.findall(r"!\(ActionMatches\{'([^']*)'\}\)", condition) == list(USE_BLOBS)
    assert condition.endswith(f":name] StringEquals '{RECORDS_CONTAINER}'))")
    assert condition.count("(") == condition.count(")")


def test_api_servers_may_only_write_the_join_token_add_audit_logs_and_see_machines(rights):
    assert rights.of[API_SERVERS] == {
        (READ, f"secrets-{API_SERVERS}"),
        ("Microsoft.KeyVault/vaults/secrets/setSecret/action", JOIN_TOKEN),
        ("Microsoft.Storage/storageAccounts/blobServices/containers/blobs/add/action", "audit-logs"),
        (" ".join(READ_MACHINES), "workers-group"),
    }


def test_workers_read_only_the_join_token(wide):
    assert Rights(wide).of[WORKERS] == {(READ, JOIN_TOKEN)}


def test_only_the_controllers_pool_may_create_volumes_and_read_the_encryption_set(account, rights):
    granted = {scope: role for role, scope in rights.of[CONTROLLERS] if role == " ".join(MAKE_DISKS)}
    assert set(granted) == {"workers-group", "disks"}
    others = [role for holder, pairs in rights.of.items() if holder != CONTROLLERS for role, _ in pairs]
    others.remove(" ".join(READ_MACHINES))
    assert not any("Microsoft.Compute/" in role or "/shares/" in role for role in others)
    rest = rights.of[CONTROLLERS] - {(role, scope) for scope, role in granted.items()} - {(READ, JOIN_TOKEN)}
    shares = {(" ".join(MAKE_SHARES), files_name(account.cluster))}
    assert rest == (shares if account.cluster.spec.storage.file else set())


def test_the_group_that_controllers_may_change_has_neither_etcd_nor_api_servers(account):
    group = f"/resourceGroups/{account.cluster.name}_workers/providers/"
    inside = [record for record in account.world if group in record.id]
    kinds = (":VirtualMachineScaleSet", ":ProximityPlacementGroup", ":RoleAssignment")
    assert any(record.type.endswith(":VirtualMachineScaleSet") for record in inside)
    for record in inside:
        assert record.type.endswith(kinds) and name(record) != "api-servers", record.urn


def test_machines_of_one_pool_have_the_controllers_identity(account):
    pool = controllers_pool(account.cluster.spec)
    (identity,) = (
        record.id for record in account.records("managedidentity:UserAssignedIdentity") if name(record) == CONTROLLERS
    )
    scale_sets = [
        name(record)
        for record in account.records("compute:VirtualMachineScaleSet")
        if identity in plain(record.inputs)["identity"]["userAssignedIdentities"]
    ]
    assert scale_sets == [scale_set_name(pool)]


def test_services_of_azure_may_only_use_the_key_and_write_flow_logs(account, rights):
    (storage,) = (
        record for record in account.records("storage:StorageAccount") if record.inputs["kind"] == "StorageV2"
    )
    assert rights.of["set of disks"] == {(ENCRYPT, "encryption")}
    assert rights.of["storage"] == {(ENCRYPT, "encryption"), (BLOBS, name(storage))}


def test_a_bundle_contains_only_its_readers_secrets(account):
    bundles = {
        name(record): json.loads(plain(record.inputs)["properties"]["value"])
        for record in account.records("keyvault:Secret")
        if name(record).startswith("secrets-")
    }
    assert "kubernetes-ca.key" in bundles[f"secrets-{API_SERVERS}"]
    for reader, values in bundles.items():
        if reader != f"secrets-{API_SERVERS}":
            assert not {"kubernetes-ca.key", "service-account.key", "encryption-config.yaml"} & set(values)
        keys = {key for key in values if key.endswith((".key", "-server.crt", "-peer.crt")) and key.startswith("etcd-")}
        member = reader.removeprefix("secrets-").replace("etcd-main", "etcd-").replace("etcd-events", "etcd-")
        assert all(key.startswith(("etcd-main", "etcd-events", "etcd-client")) for key in keys)
        if member.startswith("etcd--"):
            assert keys, reader
            number = member.rpartition("-")[2]
            assert all(key.split("-")[2] == number for key in keys)


def test_values_in_the_vault_fit_a_secret(account):
    sizes = [len(plain(record.inputs)["properties"]["value"]) for record in account.records("keyvault:Secret")]
    assert max(sizes) <= LARGEST


def test_each_machine_has_only_its_readers_identity(account):
    identities = {record.id: name(record) for record in account.records("managedidentity:UserAssignedIdentity")}
    for machine in account.of("compute:VirtualMachine"):
        (own,) = machine["identity"]["userAssignedIdentities"]
        assert identities[own] == machine["vmName"]
    for record in account.records("compute:VirtualMachineScaleSet"):
        (own,) = plain(record.inputs)["identity"]["userAssignedIdentities"]
        expected = {"api-servers": API_SERVERS, scale_set_name(controllers_pool(account.cluster.spec)): CONTROLLERS}
        assert identities[own] == expected.get(name(record), WORKERS)


def test_the_vault_is_closed_and_nobody_can_purge_it(account):
    (vault,) = account.of("keyvault:Vault")
    properties = vault["properties"]
    assert (properties["publicNetworkAccess"], properties["networkAcls"]["defaultAction"]) == ("Disabled", "Deny")
    assert properties["enableRbacAuthorization"] is properties["enablePurgeProtection"] is True


def test_our_roles_have_no_wildcard_and_can_be_assigned_only_in_the_groups(account):
    groups = {record.id for record in account.records("resources:ResourceGroup")}
    for role in account.of("authorization:RoleDefinition"):
        assert set(role["assignableScopes"]) <= groups
        for permission in role["permissions"]:
            actions = [*permission.get("actions", ()), *permission.get("dataActions", ())]
            assert actions
            assert not any("*" in action for action in actions)
