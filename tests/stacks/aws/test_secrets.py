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
from stacks.aws.secrets import CONTROLLERS, ETCD, ETCD_EVENTS
from stacks.aws.store import AwsStore
from stacks.payloads import API_SERVERS, WORKERS, bundle_name, worker_payloads
from stacks.payloads import payloads as payloads_of
from tests.stacks.aws.tokens import BUCKET, INSTANCE, KEY, POLICY, PROFILE, ROLE, SECRET, VERSION, VPC

BOTH = pytest.mark.parametrize("deployed", ["small", "whole"], indirect=True)


def statements(deployed):
    """Return identity -> its policy's statements by their ID."""
    roles = {record.id: record.inputs["tags"]["role"] for record in deployed.of_type(ROLE)}
    return {
        roles[record.inputs["role"]]: {
            statement["Sid"]: statement for statement in json.loads(record.inputs["policy"])["Statement"]
        }
        for record in deployed.of_type(POLICY)
    }


def reads(deployed):
    """Return reader -> the statement that permits it to read; a host of an etcd is identified by its address."""
    by_reader, (vpc,) = {}, deployed.of_type(VPC)
    by_address = {f"{host.address}/32": host.name for role in ROLES for host in deployed.plan.etcd[role]}
    for identity, own in statements(deployed).items():
        for sid, statement in own.items():
            if sid.startswith("ReadSecrets"):
                addresses = statement["Condition"].get("IpAddress", {}).get("aws:Ec2InstanceSourcePrivateIPv4", ())
                if identity in (ETCD, ETCD_EVENTS):
                    assert statement["Condition"]["StringEquals"]["aws:Ec2InstanceSourceVpc"] == vpc.id
                    (address,) = addresses
                assert bool(addresses) == (identity in (ETCD, ETCD_EVENTS))
                reader = by_address[address] if addresses else identity
                assert reader not in by_reader
                by_reader[reader] = statement
    return by_reader


def of_workers(deployed):
    """Return the identities of workers; without pools that create no volumes there is only one."""
    pools = set(deployed.cluster.spec.pools) - {controllers_pool(deployed.cluster.spec)}
    return {CONTROLLERS, *([WORKERS] if pools else ())}


def names(deployed):
    """Return ARN of a secret -> its plain name."""
    store = AwsStore(deployed.cluster.name, "")
    return {record.outputs["arn"]: store.plain_name(record.inputs["name"]) for record in deployed.of_type(SECRET)}


def hosts(deployed):
    return {member.host for role in ROLES for member in members(deployed.cluster, role, deployed.plan)}


@BOTH
def test_a_reader_reads_only_its_payloads_and_its_bundle(deployed):
    names_, permitted, everything = (
        names(deployed),
        reads(deployed),
        (deployed.cluster, deployed.plan, source_of(deployed.cluster.spec)),
    )
    by_reader = payloads_of(
        *everything, lambda role: disk_of(deployed.cluster, role), machines.program(deployed.cluster)
    )
    expected = {reader: {payload.name} for reader, payload in by_reader.items()}
    expected |= {
        key: {payload.name for payload in worker_payloads(*everything).values()} for key in of_workers(deployed)
    }
    assert set(permitted) == {API_SERVERS, *of_workers(deployed), *hosts(deployed)}
    all_readable = []
    for identity, own in permitted.items():
        reader = WORKERS if identity in of_workers(deployed) else identity
        readable = {names_[arn] for arn in own["Resource"]}
        payloads = {name for name in readable if name.startswith("payload-")}
        assert readable == {bundle_name(reader), *({JOIN_TOKEN} if reader == WORKERS else ()), *payloads}
        assert payloads == expected[identity]
        all_readable += readable if identity != WORKERS else ()
    assert sorted(all_readable) == sorted(names_.values())


@BOTH
def test_only_api_servers_write_the_join_token_and_they_cannot_read_it(deployed):
    names_, by_identity = names(deployed), statements(deployed)
    assert {reader for reader, own in by_identity.items() if "WriteSecret" in own} == {API_SERVERS}
    write = by_identity[API_SERVERS]["WriteSecret"]
    assert (write["Action"], names_[write["Resource"]]) == ("secretsmanager:PutSecretValue", JOIN_TOKEN)
    valued = {record.inputs["secretId"] for record in deployed.of_type(VERSION)}
    assert write["Resource"] not in valued and len(valued) == len(names_) - 1


@BOTH
def test_only_hosts_of_an_etcd_with_backups_use_the_folder_of_its_repository(deployed):
    by_identity = statements(deployed)
    addresses = {f"{host.address}/32" for host in deployed.plan.etcd["main"]}
    assert {identity for identity, own in by_identity.items() if "KeepBackupsMain" in own} == {ETCD}
    assert "KeepBackupsEvents" not in by_identity[ETCD]
    (backups,) = (record for record in deployed.of_type(BUCKET) if record.inputs["tags"]["role"] == "backups")
    arn, folder = backups.outputs["arn"], f"{deployed.cluster.name}/main/*"
    keep, listing = by_identity[ETCD]["KeepBackupsMain"], by_identity[ETCD]["ListBackupsMain"]
    assert keep["Action"] == ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]
    assert (keep["Resource"], listing["Resource"]) == (f"{arn}/{folder}", arn)
    assert listing["Condition"]["StringLikeIfExists"] == {"s3:prefix": [folder]}
    for statement in (keep, listing):
        assert set(statement["Condition"]["IpAddress"]["aws:Ec2InstanceSourcePrivateIPv4"]) == addresses


@BOTH
def test_api_servers_may_only_add_new_objects_to_the_bucket_for_audit_logs(deployed):
    by_identity = statements(deployed)
    assert {identity for identity, own in by_identity.items() if "KeepAuditLog" in own} == {API_SERVERS}
    (logs,) = (record for record in deployed.of_type(BUCKET) if record.inputs["tags"]["role"] == "audit")
    put = by_identity[API_SERVERS]["KeepAuditLog"]
    assert (put["Action"], put["Resource"]) == ("s3:PutObject", f"{logs.outputs['arn']}/{deployed.cluster.name}/*")
    # It refuses to overwrite an existing object, and requests from outside the VPC ("Enforce conditional writes").
    assert put["Condition"]["Null"] == {"s3:if-none-match": "false"}
    assert "aws:SourceVpc" in put["Condition"]["StringEquals"]
    others = [statement for statement in by_identity[API_SERVERS].values() if str(statement["Action"]).find("s3:") >= 0]
    assert others == [put]


@BOTH
def test_only_api_servers_see_machines_and_only_with_credentials_of_the_vpc(deployed):
    """Apart from those that create volumes. EC2 supports no resources for this action."""
    by_identity = statements(deployed)
    assert {identity for identity, own in by_identity.items() if "SeeMachines" in own} == {API_SERVERS}
    see = by_identity[API_SERVERS]["SeeMachines"]
    assert (see["Action"], see["Resource"]) == ("ec2:DescribeInstances", "*")
    assert set(see["Condition"]["StringEquals"]) == {"aws:Ec2InstanceSourceVpc"}
    assert not [
        statement
        for statement in by_identity[API_SERVERS].values()
        if "ec2:" in str(statement["Action"]) and statement != see
    ]


def test_hosts_get_the_place_and_the_password_of_their_backups(small):
    names_, expected = names(small), bundle_name("etcd-main-1")
    (bundle,) = (
        plain(record.inputs["secretString"])
        for record in small.of_type(VERSION)
        if names_[record.inputs["secretId"]] == expected
    )
    secret = json.loads(json.loads(bundle)["etcd-main-backups.json"])
    region, account = small.cluster.spec.control_plane.region, "123456789012"
    bucket = f"{small.cluster.name}-backups-{account}"
    assert secret["url"] == f"s3:https://s3.{region}.amazonaws.com/{bucket}/{small.cluster.name}/main"
    assert secret["environment"] == {"AWS_DEFAULT_REGION": region}
    assert len(secret["password"]) == 64


@BOTH
def test_hosts_of_an_etcd_share_a_role_and_have_the_addresses_in_its_conditions(deployed):
    profiles = {record.id: record.inputs["role"] for record in deployed.of_type(PROFILE)}
    roles = {record.id: record.inputs["tags"]["role"] for record in deployed.of_type(ROLE)}
    main, events = ({str(host.address) for host in deployed.plan.etcd[role]} for role in ROLES)
    of_etcds = {ETCD, *([ETCD_EVENTS] if events - main else ())}
    assert set(roles.values()) == {API_SERVERS, *of_etcds, *of_workers(deployed)}
    by_address = {
        record.inputs["privateIp"]: roles[profiles[record.inputs["iamInstanceProfile"]]]
        for record in deployed.of_type(INSTANCE)
    }
    assert by_address == dict.fromkeys(events, ETCD_EVENTS) | dict.fromkeys(main, ETCD)


@BOTH
def test_every_permission_is_restricted_to_the_vpc_or_the_requesting_service(deployed):
    (vpc,), (key,) = deployed.of_type(VPC), deployed.of_type(KEY)
    region = deployed.cluster.spec.control_plane.region
    services = {f"{name}.{region}.amazonaws.com" for name in ("secretsmanager", "s3", "ec2")}
    for own in statements(deployed).values():
        for statement in own.values():
            actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
            assert not [action for action in actions if "*" in action]
            # "Actions, resources, and condition keys for Amazon EC2": to look is not confined to resources.
            # "Actions, resources, and condition keys for Amazon EC2": describing can't be restricted to resources.
            condition = statement["Condition"]["StringEquals"]
            if all(action.startswith("kms:") for action in actions):
                assert statement["Resource"] == key.outputs["arn"]
                assert condition["kms:ViaService"] in services
            else:
                assert vpc.id in (condition.get("aws:SourceVpc"), condition.get("aws:Ec2InstanceSourceVpc"))


@BOTH
def test_only_instances_have_an_identity_through_one_profile(deployed):
    roles = deployed.of_type(ROLE)
    for role in roles:
        (statement,) = json.loads(role.inputs["assumeRolePolicy"])["Statement"]
        assert statement["Principal"] == {"Service": "ec2.amazonaws.com"}
    assert sorted(record.inputs["role"] for record in deployed.of_type(PROFILE)) == sorted(role.id for role in roles)


@BOTH
def test_values_are_encrypted_with_the_clusters_own_key(deployed):
    (key,) = deployed.of_type(KEY)
    assert {record.inputs["kmsKeyId"] for record in deployed.of_type(SECRET)} == {key.outputs["arn"]}
    assert key.inputs["enableKeyRotation"] is True


def test_services_may_use_the_key_only_for_the_account(small, whole):
    for deployed, roles in ((small, 1), (whole, 2)):
        (key,) = deployed.of_type(KEY)
        policy = {statement["Sid"]: statement for statement in json.loads(key.inputs["policy"])["Statement"]}
        assert policy["Account"]["Principal"] == {"AWS": "arn:aws:iam::123456789012:root"}
        assert len(policy["Launch"]["Principal"]["AWS"]) == roles
        assert policy["Attach"]["Condition"] == {"Bool": {"kms:GrantIsForAWSResource": "true"}}
        assert policy["Logs"]["Condition"] == {"StringEquals": {"aws:SourceAccount": "123456789012"}}
        assert not [statement for statement in policy.values() if statement["Principal"] in ("*", {"AWS": "*"})]
