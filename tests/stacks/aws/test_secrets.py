"""Who may read and write what."""

from __future__ import annotations

import json

import pytest

from cluster.files import JOIN_TOKEN
from cluster.sources import source_of
from cluster.storage import controllers_pool
from etcd.members import members
from network.addresses import ROLES
from sandbox.simcloud.values import plain
from stacks.aws import machines
from stacks.aws.etcd import disk_of
from stacks.aws.secrets import CONTROLLERS, ETCD
from stacks.aws.store import AwsStore
from stacks.payloads import API_SERVERS, WORKERS, bundle_name, worker_payloads
from stacks.payloads import payloads as payloads_of
from tests.stacks.aws.tokens import BUCKET, INSTANCE, KEY, POLICY, PROFILE, ROLE, SECRET, VERSION, VPC

BOTH = pytest.mark.parametrize("made", ["small", "whole"], indirect=True)


def statements(made):
    """Identity -> its policy's statements by their id."""
    roles = {record.id: record.inputs["tags"]["role"] for record in made.of_type(ROLE)}
    return {
        roles[record.inputs["role"]]: {one["Sid"]: one for one in json.loads(record.inputs["policy"])["Statement"]}
        for record in made.of_type(POLICY)
    }


def reads(made):
    """Who reads -> the statement by which they do: a host of an etcd is told by its address."""
    found, (vpc,) = {}, made.of_type(VPC)
    by_address = {f"{host.address}/32": host.name for role in ROLES for host in made.plan.etcd[role]}
    for identity, own in statements(made).items():
        for sid, statement in own.items():
            if sid.startswith("ReadSecrets"):
                addresses = statement["Condition"].get("IpAddress", {}).get("aws:Ec2InstanceSourcePrivateIPv4", ())
                if identity == ETCD:
                    assert statement["Condition"]["StringEquals"]["aws:Ec2InstanceSourceVpc"] == vpc.id
                    (address,) = addresses
                assert bool(addresses) == (identity == ETCD)
                reader = by_address[address] if addresses else identity
                assert reader not in found
                found[reader] = statement
    return found


def of_workers(made):
    """The identities of workers: pools that make no volumes may be none."""
    pools = set(made.cluster.spec.pools) - {controllers_pool(made.cluster.spec)}
    return {CONTROLLERS, *([WORKERS] if pools else ())}


def names(made):
    """ARN of a secret -> its plain name."""
    store = AwsStore(made.cluster.name, "")
    return {record.outputs["arn"]: store.plain_name(record.inputs["name"]) for record in made.of_type(SECRET)}


def hosts(made):
    return {member.host for role in ROLES for member in members(made.cluster, role, made.plan)}


@BOTH
def test_a_reader_reads_its_payloads_and_its_bundle_and_nothing_else(made):
    called, found, everything = names(made), reads(made), (made.cluster, made.plan, source_of(made.cluster.spec))
    by_reader = payloads_of(*everything, lambda role: disk_of(made.cluster, role), machines.program(made.cluster))
    wanted = {reader: {payload.name} for reader, payload in by_reader.items()}
    wanted |= {key: {payload.name for payload in worker_payloads(*everything).values()} for key in of_workers(made)}
    assert set(found) == {API_SERVERS, *of_workers(made), *hosts(made)}
    seen = []
    for who, own in found.items():
        reader = WORKERS if who in of_workers(made) else who
        readable = {called[arn] for arn in own["Resource"]}
        payloads = {name for name in readable if name.startswith("payload-")}
        assert readable == {bundle_name(reader), *({JOIN_TOKEN} if reader == WORKERS else ()), *payloads}
        assert payloads == wanted[who]
        seen += readable if who != WORKERS else ()
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
def test_hosts_of_an_etcd_with_backups_use_the_folder_of_their_repository_and_no_other_host_does(made):
    found = statements(made)
    addresses = {f"{host.address}/32" for host in made.plan.etcd["main"]}
    assert {identity for identity, own in found.items() if "KeepBackupsMain" in own} == {ETCD}
    assert "KeepBackupsEvents" not in found[ETCD]
    (backups,) = (record for record in made.of_type(BUCKET) if record.inputs["tags"]["role"] == "backups")
    arn, folder = backups.outputs["arn"], f"{made.cluster.name}/main/*"
    keep, listing = found[ETCD]["KeepBackupsMain"], found[ETCD]["ListBackupsMain"]
    assert keep["Action"] == ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]
    assert (keep["Resource"], listing["Resource"]) == (f"{arn}/{folder}", arn)
    assert listing["Condition"]["StringLikeIfExists"] == {"s3:prefix": [folder]}
    for statement in (keep, listing):
        assert set(statement["Condition"]["IpAddress"]["aws:Ec2InstanceSourcePrivateIPv4"]) == addresses


@BOTH
def test_api_servers_put_new_objects_into_the_bucket_of_audit_logs_and_can_do_nothing_else_with_it(made):
    found = statements(made)
    assert {identity for identity, own in found.items() if "KeepAuditLog" in own} == {API_SERVERS}
    (logs,) = (record for record in made.of_type(BUCKET) if record.inputs["tags"]["role"] == "audit")
    put = found[API_SERVERS]["KeepAuditLog"]
    assert (put["Action"], put["Resource"]) == ("s3:PutObject", f"{logs.outputs['arn']}/{made.cluster.name}/*")
    # Over an object that is there, and from outside of the VPC, it is refused ("Enforce conditional writes").
    assert put["Condition"]["Null"] == {"s3:if-none-match": "false"}
    assert "aws:SourceVpc" in put["Condition"]["StringEquals"]
    others = [each for each in found[API_SERVERS].values() if str(each["Action"]).find("s3:") >= 0]
    assert others == [put]


@BOTH
def test_api_servers_alone_see_machines_of_the_account_and_with_credentials_of_the_vpc_alone(made):
    """Beside those that make volumes. EC2 knows no resource for it."""
    found = statements(made)
    assert {identity for identity, own in found.items() if "SeeMachines" in own} == {API_SERVERS}
    see = found[API_SERVERS]["SeeMachines"]
    assert (see["Action"], see["Resource"]) == ("ec2:DescribeInstances", "*")
    assert set(see["Condition"]["StringEquals"]) == {"aws:Ec2InstanceSourceVpc"}
    assert not [each for each in found[API_SERVERS].values() if "ec2:" in str(each["Action"]) and each != see]


def test_hosts_are_told_where_their_backups_are_and_what_opens_them(small):
    called, wanted = names(small), bundle_name("etcd-main-1")
    (bundle,) = (
        plain(record.inputs["secretString"])
        for record in small.of_type(VERSION)
        if called[record.inputs["secretId"]] == wanted
    )
    known = json.loads(json.loads(bundle)["etcd-main-backups.json"])
    region, account = small.cluster.spec.control_plane.region, "123456789012"
    bucket = f"{small.cluster.name}-backups-{account}"
    assert known["url"] == f"s3:https://s3.{region}.amazonaws.com/{bucket}/{small.cluster.name}/main"
    assert known["environment"] == {"AWS_DEFAULT_REGION": region}
    assert len(known["password"]) == 64


@BOTH
def test_hosts_of_etcds_share_a_role_and_each_has_the_address_that_its_rights_go_by(made):
    profiles = {record.id: record.inputs["role"] for record in made.of_type(PROFILE)}
    roles = {record.id: record.inputs["tags"]["role"] for record in made.of_type(ROLE)}
    assert set(roles.values()) == {API_SERVERS, ETCD, *of_workers(made)}
    found = {
        record.inputs["privateIp"]: roles[profiles[record.inputs["iamInstanceProfile"]]]
        for record in made.of_type(INSTANCE)
    }
    assert found == {str(host.address): ETCD for role in ROLES for host in made.plan.etcd[role]}


@BOTH
def test_every_right_is_bound_to_the_vpc_or_to_the_service_that_asks_for_it(made):
    (vpc,), (key,) = made.of_type(VPC), made.of_type(KEY)
    region = made.cluster.spec.control_plane.region
    services = {f"{name}.{region}.amazonaws.com" for name in ("secretsmanager", "s3", "ec2")}
    for own in statements(made).values():
        for statement in own.values():
            actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
            assert not [action for action in actions if "*" in action]
            # "Actions, resources, and condition keys for Amazon EC2": to look is not confined to resources.
            assert statement["Resource"] != "*" or all(action.startswith("ec2:Describe") for action in actions)
            condition = statement["Condition"]["StringEquals"]
            if all(action.startswith("kms:") for action in actions):
                assert statement["Resource"] == key.outputs["arn"]
                assert condition["kms:ViaService"] in services
            else:
                assert vpc.id in (condition.get("aws:SourceVpc"), condition.get("aws:Ec2InstanceSourceVpc"))


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
