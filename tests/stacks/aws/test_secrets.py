"""Who may read what, and that the engine keeps it so."""

from __future__ import annotations

import json
from dataclasses import replace

import pulumi
import pytest

from cluster.artefacts import ArtefactSource, catalogue
from network import addresses
from network.subnets import etcd_hosts
from stacks.automation import StackError
from stacks.aws.network import Network
from stacks.aws.secrets import API_SERVERS, Secrets, readable
from stacks.aws.store import AwsStore
from stacks.aws.tags import provider
from stacks.payloads import payloads
from stacks.pki import Pki

SECRET = "aws:secretsmanager/secret:Secret"
VERSION = "aws:secretsmanager/secretVersion:SecretVersion"
KEY = "aws:kms/key:Key"
POLICY = "aws:iam/rolePolicy:RolePolicy"


def placed(cluster):
    """The plan and payloads of a cluster on AWS."""
    source = ArtefactSource(None, {each.source: "0" * 64 for each in catalogue().values()})
    plan = replace(addresses.plan(cluster), etcd=etcd_hosts(cluster))
    return plan, payloads(cluster, plan, source)


def secrets(cluster):
    def program():
        plan, made = placed(cluster)
        opts = pulumi.ResourceOptions(provider=provider(cluster))
        Secrets(cluster, Network(cluster, opts), readable(cluster, plan, Pki(cluster, plan), made), opts)

    return program


def asked_for(cluster):
    """Reader -> the names that its hosts ask their store for: that of their payload, and those in it."""
    plan, made = placed(cluster)
    return {
        API_SERVERS if host in plan.api_servers else host.name: {
            made[host.name].name,
            *(secret["name"] for secret in json.loads(made[host.name].text)["secrets"]),
        }
        for host in plan.hosts()
    }


def readers(account):
    """Reader -> names of the secrets that its policy names."""
    prefix = f"{account.cluster.name}-"
    names = {record.outputs["arn"]: record.inputs["name"] for record in account.world.of_type(SECRET)}
    store = AwsStore(account.cluster.name)
    found = {}
    for record in account.world.of_type(POLICY):
        read, _ = json.loads(record.inputs["policy"])["Statement"]
        own = {store.plain_name(names[arn]) for arn in read["Resource"]}
        found[record.urn.rpartition("::")[2].removeprefix(prefix)] = own
    return found


@pytest.fixture(scope="module")
def stored(lemur, opened, tmp_path_factory):
    """Lemur's account with its secrets in it."""
    with opened(lemur, tmp_path_factory.mktemp("stored")) as made:
        made.program = secrets(lemur)
        made.up()
        yield made


def test_a_host_s_identity_reads_what_the_host_asks_for_and_nothing_else(stored, lemur):
    assert readers(stored) == asked_for(lemur)
    (vpc,) = stored.world.of_type("aws:ec2/vpc:Vpc")
    (key,) = stored.world.of_type(KEY)
    for record in stored.world.of_type(POLICY):
        read, decrypt = json.loads(record.inputs["policy"])["Statement"]
        assert (read["Action"], decrypt["Action"]) == ("secretsmanager:GetSecretValue", "kms:Decrypt")
        assert read["Condition"] == {"StringEquals": {"aws:SourceVpc": vpc.id}}
        assert decrypt["Resource"] == key.outputs["arn"]
        assert decrypt["Condition"] == {"StringEquals": {"kms:ViaService": "secretsmanager.us-east-1.amazonaws.com"}}


def test_an_identity_is_carried_by_instances_alone_and_by_one_profile(stored):
    roles = stored.world.of_type("aws:iam/role:Role")
    for role in roles:
        (statement,) = json.loads(role.inputs["assumeRolePolicy"])["Statement"]
        assert statement["Principal"] == {"Service": "ec2.amazonaws.com"}
    profiles = [record.inputs["role"] for record in stored.world.of_type("aws:iam/instanceProfile:InstanceProfile")]
    assert sorted(profiles) == sorted(role.id for role in roles)


def test_values_are_ciphertext_in_the_state_and_under_the_cluster_s_own_key(stored):
    (key,) = stored.world.of_type(KEY)
    assert {record.inputs["kmsKeyId"] for record in stored.world.of_type(SECRET)} == {key.outputs["arn"]}
    assert len(stored.world.of_type(VERSION)) == len(stored.world.of_type(SECRET)) > 30
    texts = [path.read_text(errors="replace") for path in (stored.folder / "pulumi").rglob("*") if path.is_file()]
    assert any("BEGIN CERTIFICATE" in text for text in texts)
    assert not any("PRIVATE KEY" in text for text in texts)


def test_a_change_replaces_payloads_alone_and_the_key_outlives_a_destroy(account, lemur, build):
    account.program = secrets(lemur)
    account.up()
    assert set(account.preview()) == {"same"}
    before = asked_for(lemur)
    spec = lemur.spec.model_dump(mode="json")
    changed = build({**spec, "etcd": _slower(spec["etcd"])}, {})
    account.program = secrets(changed)
    old = {f"lemur-{name}" for own in before.values() for name in own if name.startswith("payload-")}
    assert set() < account.replaced() <= old
    account.up()
    assert readers(account) == asked_for(changed) != before
    with pytest.raises(StackError, match="lemur-secrets"):
        account.stack.destroy()
    assert account.world.of_type(KEY)


def _slower(etcd):
    return {**etcd, "main": {**etcd["main"], "heartbeat_interval": "200ms"}}


class Names:
    """Stands in for `Pki`: the values are nobody's business here."""

    def for_api_server(self):
        return {"kubernetes-ca.key": "x"}

    def for_member(self, name):
        return {f"{name}-peer.key": "x"}


def test_hosts_of_the_two_etcds_read_nothing_of_each_other(jackal):
    plan, made = placed(jackal)
    found = readable(jackal, plan, Names(), made)
    names = [host.name for role in plan.etcd.values() for host in role]
    assert len(names) == 8
    assert {reader: set(own) for reader, own in found.items()} == {
        API_SERVERS: {"kubernetes-ca.key", made["api-1"].name},
        **{name: {f"{name}-peer.key", made[name].name} for name in names},
    }
