"""Least privilege: what each identity may do, read from the role assignments as Azure would read them."""

from __future__ import annotations

import json
import re

import pytest

from cluster.files import JOIN_TOKEN
from cluster.storage import controllers_pool
from etcd.backups import prefix
from sandbox.simcloud.values import plain
from stacks.azure.machines import READ_MACHINES
from stacks.azure.roles import USE_BLOBS, BuiltIn, only_below
from stacks.azure.secrets import LARGEST
from stacks.azure.tags import files_name, scale_set_name
from stacks.azure.volumes import CONTROLLERS, MAKE_DISKS, MAKE_SHARES
from stacks.payloads import API_SERVERS, WORKERS

READ, ENCRYPT, BLOBS = (
    BuiltIn.KEY_VAULT_SECRETS_USER,
    BuiltIn.KEY_VAULT_CRYPTO_SERVICE_ENCRYPTION_USER,
    BuiltIn.STORAGE_BLOB_DATA_CONTRIBUTOR,
)


class Rights:
    """(role, name of the scope) of each identity, by the identity's name in the program."""

    def __init__(self, account):
        own = {
            plain(each.inputs)["roleDefinitionId"]: plain(each.inputs)
            for each in account.records("authorization:RoleDefinition")
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
            given = plain(record.inputs)
            role = given["roleDefinitionId"].rpartition("/")[2]
            called = role if role in [*BuiltIn] else " ".join(self.actions[role])
            self.of[holders[given["principalId"]]].add((called, name(self.scopes[given["scope"]])))


def name(record):
    return record.urn.rpartition("::")[2]


@pytest.fixture(scope="session")
def rights(account):
    return Rights(account)


def test_each_etcd_host_reads_its_own_bundle_and_no_more(account, rights):
    for host in {host.name for role in account.plan.etcd.values() for host in role}:
        reads = {scope for role, scope in rights.of[host] if role == READ}
        assert reads == {f"secrets-{host}"}
        writes = {scope for role, scope in rights.of[host] if role != READ}
        has_backups = host.startswith("etcd-main") and account.cluster.spec.etcd.main.backup
        assert writes == ({"backups"} if has_backups else set())


def test_hosts_with_backups_use_their_blobs_but_may_delete_no_version_of_one(wide):
    rights = Rights(wide)
    for host in ("etcd-main-1", "etcd-main-2", "etcd-main-3"):
        ((actions, scope),) = {each for each in rights.of[host] if each[0] != READ}
        assert scope == "backups"
        blobs = {action.rpartition("/blobs/")[2] for action in actions.split() if "/blobs/" in action}
        assert blobs == {"read", "write", "add/action", "delete"}
    assert {role for role, _ in rights.of["etcd-events-1"]} == {READ}


def test_a_host_uses_blobs_of_its_own_etcd_alone(wide):
    """Scope and condition of each assignment on the container: a folder is a cluster's etcd, as restic is told."""
    (container,) = [one.id for one in wide.records("storage:BlobContainer") if one.id.endswith("/containers/backups")]
    found = {name(one): plain(one.inputs) for one in wide.records("authorization:RoleAssignment")}
    on_backups = {key: one for key, one in found.items() if one["scope"] == container}
    assert on_backups
    for key, one in on_backups.items():
        host, _, what = key.rpartition("-")
        role = host.split("-")[1]
        assert what == "backups"
        assert one["condition"] == only_below([prefix(wide.cluster.name, role)])
        assert one["conditionVersion"] == "2.0"
        assert re.findall(r"StringStartsWith '([^']*)'", one["condition"]) == [f"{wide.cluster.name}/{role}/"]


def test_every_action_on_blobs_is_under_the_condition_but_to_list_their_names():
    condition = only_below(["koala/main", "koala/events"])
    actions = re.findall(r"!\(([^)]*)\)", condition)
    assert [re.findall(r"ActionMatches\{'([^']*)'\}", each)[0] for each in actions] == list(USE_BLOBS)
    assert [each for each in actions if "AND NOT" in each] == [
        f"ActionMatches{{'{USE_BLOBS[0]}'}} AND NOT SubOperationMatches{{'Blob.List'}}"
    ]
    # A blob of main's with events' in its name's beginning is not events': the folder ends with a slash.
    assert re.findall(r"StringStartsWith '([^']*)'", condition) == ["koala/main/", "koala/events/"]
    assert condition.count("(") == condition.count(")")


def test_api_servers_write_the_join_token_add_audit_logs_and_see_machines_of_pools_and_no_more(rights):
    assert rights.of[API_SERVERS] == {
        (READ, f"secrets-{API_SERVERS}"),
        ("Microsoft.KeyVault/vaults/secrets/setSecret/action", JOIN_TOKEN),
        ("Microsoft.Storage/storageAccounts/blobServices/containers/blobs/add/action", "audit-logs"),
        (" ".join(READ_MACHINES), "workers-group"),
    }


def test_workers_read_the_join_token_and_nothing_else(wide):
    assert Rights(wide).of[WORKERS] == {(READ, JOIN_TOKEN)}


def test_the_controllers_pool_alone_may_make_volumes_in_the_workers_group_and_read_the_set_of_disks(account, rights):
    given = {scope: role for role, scope in rights.of[CONTROLLERS] if role == " ".join(MAKE_DISKS)}
    assert set(given) == {"workers-group", "disks"}
    others = [role for holder, pairs in rights.of.items() if holder != CONTROLLERS for role, _ in pairs]
    others.remove(" ".join(READ_MACHINES))
    assert not any("Microsoft.Compute/" in role or "/shares/" in role for role in others)
    rest = rights.of[CONTROLLERS] - {(role, scope) for scope, role in given.items()} - {(READ, JOIN_TOKEN)}
    shares = {(" ".join(MAKE_SHARES), files_name(account.cluster))}
    assert rest == (shares if account.cluster.spec.storage.file else set())


def test_what_the_controllers_may_change_holds_neither_etcd_nor_api_servers(account):
    for record in account.world:
        inside = f"/resourceGroups/{account.cluster.name}_workers/providers/" in record.id
        kinds = (":VirtualMachineScaleSet", ":ProximityPlacementGroup", ":RoleAssignment")
        workers = record.type.endswith(kinds) and name(record) != "api-servers"
        assert not inside or workers, record.urn


def test_machines_of_one_pool_have_the_controllers_identity(account):
    pool = controllers_pool(account.cluster.spec)
    (identity,) = (
        each.id for each in account.records("managedidentity:UserAssignedIdentity") if name(each) == CONTROLLERS
    )
    having = [
        name(each)
        for each in account.records("compute:VirtualMachineScaleSet")
        if identity in plain(each.inputs)["identity"]["userAssignedIdentities"]
    ]
    assert having == [scale_set_name(pool)]


def test_services_of_azure_may_use_the_key_and_write_flow_logs_and_nothing_else(account, rights):
    (storage,) = (each for each in account.records("storage:StorageAccount") if each.inputs["kind"] == "StorageV2")
    assert rights.of["set of disks"] == {(ENCRYPT, "encryption")}
    assert rights.of["storage"] == {(ENCRYPT, "encryption"), (BLOBS, name(storage))}


def test_a_bundle_holds_what_its_reader_may_know_and_no_other_s(account):
    bundles = {
        name(each): json.loads(plain(each.inputs)["properties"]["value"])
        for each in account.records("keyvault:Secret")
        if name(each).startswith("secrets-")
    }
    assert "kubernetes-ca.key" in bundles[f"secrets-{API_SERVERS}"]
    for reader, values in bundles.items():
        if reader != f"secrets-{API_SERVERS}":
            assert not {"kubernetes-ca.key", "service-account.key", "encryption-config.yaml"} & set(values)
        keys = {key for key in values if key.endswith((".key", "-server.crt", "-peer.crt")) and key.startswith("etcd-")}
        mine = reader.removeprefix("secrets-").replace("etcd-main", "etcd-").replace("etcd-events", "etcd-")
        assert all(key.startswith(("etcd-main", "etcd-events", "etcd-client")) for key in keys)
        if mine.startswith("etcd--"):
            number = mine.rpartition("-")[2]
            assert all(key.split("-")[2] == number for key in keys)


def test_what_the_vault_holds_fits_a_secret(account):
    sizes = [len(plain(each.inputs)["properties"]["value"]) for each in account.records("keyvault:Secret")]
    assert max(sizes) <= LARGEST


def test_each_machine_has_one_identity_its_reader_s(account):
    identities = {record.id: name(record) for record in account.records("managedidentity:UserAssignedIdentity")}
    for machine in account.of("compute:VirtualMachine"):
        (own,) = machine["identity"]["userAssignedIdentities"]
        assert identities[own] == machine["vmName"]
    for record in account.records("compute:VirtualMachineScaleSet"):
        (own,) = plain(record.inputs)["identity"]["userAssignedIdentities"]
        wanted = {"api-servers": API_SERVERS, scale_set_name(controllers_pool(account.cluster.spec)): CONTROLLERS}
        assert identities[own] == wanted.get(name(record), WORKERS)


def test_the_vault_is_closed_and_nobody_can_purge_it(account):
    (vault,) = account.of("keyvault:Vault")
    properties = vault["properties"]
    assert (properties["publicNetworkAccess"], properties["networkAcls"]["defaultAction"]) == ("Disabled", "Deny")
    assert properties["enableRbacAuthorization"] is properties["enablePurgeProtection"] is True


def test_no_role_of_ours_has_a_wildcard_and_each_can_be_given_in_the_groups_only(account):
    groups = {record.id for record in account.records("resources:ResourceGroup")}
    for role in account.of("authorization:RoleDefinition"):
        assert set(role["assignableScopes"]) <= groups
        for permission in role["permissions"]:
            actions = [*permission.get("actions", ()), *permission.get("dataActions", ())]
            assert actions
            assert not any("*" in action for action in actions)
