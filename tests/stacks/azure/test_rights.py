"""Least privilege: what each identity may do, read from the role assignments as Azure would read them."""

from __future__ import annotations

import json

import pytest

from cluster.files import JOIN_TOKEN
from cluster.sources import source_of
from simcloud.values import plain
from stacks.azure.roles import BuiltIn
from stacks.azure.secrets import LARGEST
from stacks.payloads import API_SERVERS, WORKERS, worker_payloads

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
        self.actions = {id_: role["permissions"][0]["dataActions"] for id_, role in own.items()}
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


def test_each_reader_reads_its_own_two_values_and_no_more(account, rights):
    for host in {host.name for role in account.plan.etcd.values() for host in role}:
        reads = {scope for role, scope in rights.of[host] if role == READ}
        assert reads == {f"payload-{host}", f"secrets-{host}"}
        writes = {scope for role, scope in rights.of[host] if role != READ}
        has_backups = host.startswith("etcd-main") and account.cluster.spec.etcd.main.backup
        assert writes == ({"backups"} if has_backups else set())


def test_hosts_with_backups_may_add_them_and_neither_read_nor_delete(wide):
    rights = Rights(wide)
    for host in ("etcd-main-1", "etcd-main-2", "etcd-main-3"):
        ((actions, scope),) = {each for each in rights.of[host] if each[0] != READ}
        assert scope == "backups"
        assert {action.rpartition("/blobs/")[2] for action in actions.split()} == {"write", "add/action"}
    assert {role for role, _ in rights.of["etcd-events-1"]} == {READ}


def test_api_servers_write_the_join_token_and_do_not_read_it(rights):
    assert rights.of[API_SERVERS] == {
        (READ, f"payload-{API_SERVERS}"),
        (READ, f"secrets-{API_SERVERS}"),
        ("Microsoft.KeyVault/vaults/secrets/setSecret/action", JOIN_TOKEN),
    }


def test_workers_read_the_join_token_their_bundle_and_the_payloads_of_pools(account, rights):
    payloads = worker_payloads(account.cluster, account.plan, source_of(account.cluster.spec))
    # Pools that are told the same share a payload, which is called after the first of them.
    firsts = {payload.name: pool for pool, payload in reversed(payloads.items())}
    wanted = {f"payload-pool-{pool}" for pool in firsts.values()} | {f"secrets-{WORKERS}", JOIN_TOKEN}
    assert rights.of[WORKERS] == {(READ, scope) for scope in wanted}


def test_disks_and_storage_may_use_the_key_and_nothing_else(rights):
    assert rights.of["set of disks"] == rights.of["storage"] == {(ENCRYPT, "encryption")}
    ((role, _),) = rights.of["flow-logs"]
    assert role == BLOBS


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


def test_payloads_fit_a_secret_of_the_vault(account):
    sizes = [len(plain(each.inputs)["properties"]["value"]) for each in account.records("keyvault:Secret")]
    assert max(sizes) <= LARGEST


def test_each_machine_has_one_identity_its_reader_s(account):
    identities = {record.id: name(record) for record in account.records("managedidentity:UserAssignedIdentity")}
    for machine in account.of("compute:VirtualMachine"):
        (own,) = machine["identity"]["userAssignedIdentities"]
        assert identities[own] == machine["vmName"]
    for record in account.records("compute:VirtualMachineScaleSet"):
        (own,) = plain(record.inputs)["identity"]["userAssignedIdentities"]
        assert identities[own] == (API_SERVERS if name(record) == "api-servers" else WORKERS)


def test_the_vault_is_closed_and_nobody_can_purge_it(account):
    (vault,) = account.of("keyvault:Vault")
    properties = vault["properties"]
    assert (properties["publicNetworkAccess"], properties["networkAcls"]["defaultAction"]) == ("Disabled", "Deny")
    assert properties["enableRbacAuthorization"] is properties["enablePurgeProtection"] is True


def test_no_role_of_ours_has_a_wildcard_and_each_can_be_given_in_the_group_only(account):
    (group,) = account.records("resources:ResourceGroup")
    for role in account.of("authorization:RoleDefinition"):
        assert role["assignableScopes"] == [group.id]
        for permission in role["permissions"]:
            assert set(permission) == {"dataActions"}
            assert not any("*" in action for action in permission["dataActions"])
