"""Who may read and write what."""

from __future__ import annotations

import json

import pytest

from cluster.files import JOIN_TOKEN
from cluster.sources import source_of
from etcd.members import members
from network.addresses import ROLES
from stacks.aws.etcd import disk_of
from stacks.aws.store import AwsStore
from stacks.payloads import API_SERVERS, WORKERS, bundle_name, worker_payloads
from stacks.payloads import payloads as payloads_of
from tests.stacks.aws.tokens import BUCKET, KEY, POLICY, PROFILE, ROLE, SECRET, VERSION, VPC

BOTH = pytest.mark.parametrize("made", ["small", "whole"], indirect=True)


def statements(made):
    """Reader -> its policy's statements by their id."""
    roles = {record.id: record.inputs["tags"]["role"] for record in made.of_type(ROLE)}
    return {
        roles[record.inputs["role"]]: {one["Sid"]: one for one in json.loads(record.inputs["policy"])["Statement"]}
        for record in made.of_type(POLICY)
    }


def names(made):
    """ARN of a secret -> its plain name."""
    store = AwsStore(made.cluster.name, "")
    return {record.outputs["arn"]: store.plain_name(record.inputs["name"]) for record in made.of_type(SECRET)}


def hosts(made):
    return {member.host for role in ROLES for member in members(made.cluster, role, made.plan)}


@BOTH
def test_a_reader_reads_its_payloads_and_its_bundle_and_nothing_else(made):
    called, found, everything = names(made), statements(made), (made.cluster, made.plan, source_of(made.cluster.spec))
    by_reader = payloads_of(*everything, lambda role: disk_of(made.cluster, role))
    wanted = {reader: {payload.name} for reader, payload in by_reader.items()}
    wanted[WORKERS] = {payload.name for payload in worker_payloads(*everything).values()}
    assert set(found) == {API_SERVERS, WORKERS, *hosts(made)}
    seen = []
    for reader, own in found.items():
        readable = {called[arn] for arn in own["ReadSecrets"]["Resource"]}
        payloads = {name for name in readable if name.startswith("payload-")}
        token = {JOIN_TOKEN} if reader == WORKERS else set()
        assert readable == {bundle_name(reader), *token, *payloads}
        assert payloads == wanted[reader]
        seen += readable
    assert sorted(seen) == sorted(called.values())


@BOTH
def test_api_servers_alone_write_the_join_token_and_cannot_read_it(made):
    called, found = names(made), statements(made)
    assert {reader for reader, own in found.items() if "WriteSecret" in own} == {API_SERVERS}
    write = found[API_SERVERS]["WriteSecret"]
    assert (write["Action"], called[write["Resource"]]) == ("secretsmanager:PutSecretValue", JOIN_TOKEN)
    valued = {record.inputs["secretId"] for record in made.of_type(VERSION)}
    assert write["Resource"] not in valued and len(valued) == len(called) - 1


@BOTH
def test_hosts_of_an_etcd_with_backups_add_to_the_cluster_s_folder_and_no_other_host_does(made):
    found = statements(made)
    writers = {member.host for member in members(made.cluster, "main", made.plan)}
    assert {reader for reader, own in found.items() if "WriteBackups" in own} == writers
    (backups,) = (record for record in made.of_type(BUCKET) if record.inputs["tags"]["role"] == "backups")
    for reader in writers:
        write = found[reader]["WriteBackups"]
        assert write["Action"] == "s3:PutObject"
        assert write["Resource"] == f"{backups.outputs['arn']}/backups/{made.cluster.name}/*"


@BOTH
def test_every_right_is_bound_to_the_vpc_or_to_the_service_that_asks_for_it(made):
    (vpc,), (key,) = made.of_type(VPC), made.of_type(KEY)
    region = made.cluster.spec.control_plane.region
    services = {f"{name}.{region}.amazonaws.com" for name in ("secretsmanager", "s3")}
    for own in statements(made).values():
        for statement in own.values():
            actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
            assert not [action for action in actions if "*" in action]
            assert statement["Resource"] != "*"
            condition = statement["Condition"]["StringEquals"]
            if all(action.startswith("kms:") for action in actions):
                assert statement["Resource"] == key.outputs["arn"]
                assert condition["kms:ViaService"] in services
            else:
                assert condition == {"aws:SourceVpc": vpc.id}


@BOTH
def test_an_identity_is_carried_by_instances_alone_and_by_one_profile(made):
    roles = made.of_type(ROLE)
    for role in roles:
        (statement,) = json.loads(role.inputs["assumeRolePolicy"])["Statement"]
        assert statement["Principal"] == {"Service": "ec2.amazonaws.com"}
    assert sorted(record.inputs["role"] for record in made.of_type(PROFILE)) == sorted(role.id for role in roles)


@BOTH
def test_values_are_under_the_cluster_s_own_key(made):
    (key,) = made.of_type(KEY)
    assert {record.inputs["kmsKeyId"] for record in made.of_type(SECRET)} == {key.outputs["arn"]}
    assert key.inputs["enableKeyRotation"] is True


def test_the_key_lets_services_use_it_for_the_account_alone(small, whole):
    for made, roles in ((small, 1), (whole, 2)):
        (key,) = made.of_type(KEY)
        policy = {one["Sid"]: one for one in json.loads(key.inputs["policy"])["Statement"]}
        assert policy["Account"]["Principal"] == {"AWS": "arn:aws:iam::123456789012:root"}
        assert len(policy["Launch"]["Principal"]["AWS"]) == roles
        assert policy["Attach"]["Condition"] == {"Bool": {"kms:GrantIsForAWSResource": "true"}}
        assert policy["Logs"]["Condition"] == {"StringEquals": {"aws:SourceAccount": "123456789012"}}
        assert not [one for one in policy.values() if one["Principal"] in ("*", {"AWS": "*"})]
