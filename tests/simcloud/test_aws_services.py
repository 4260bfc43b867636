"""Identities, keys, secrets, buckets and DNS of AWS."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from sandbox.simcloud.aws import tokens
from sandbox.simcloud.rules import RefusalError
from tests.simcloud.aws_support import (
    HOSTS,
    LIFECYCLE,
    LOCK,
    PUBLIC_ACCESS,
    READS,
    ROLE_POLICY,
    SECRET_VERSION,
    VERSIONING,
    Region,
    policy,
)

Inputs = Callable[[Region], dict[str, Any]]
ENABLED = {"versioningConfiguration": {"status": "Enabled"}}
KEEP = {"rule": {"defaultRetention": {"mode": "COMPLIANCE", "days": 30}}}


@pytest.fixture
def region(api: Any) -> Region:
    return Region(api("aws"))


def _secret(region: Region, called: str = "ca", **inputs: Any) -> Any:
    return region.make(tokens.SECRET, called, name=f"menagerie/{called}", kmsKeyId=region.key.outputs["arn"], **inputs)


def _zone(region: Region, called: str = "zone") -> Any:
    return region.make(tokens.ZONE, called, name="apes.internal", vpcs=[{"vpcId": region.vpc.id}])


def _record(region: Region, **inputs: Any) -> dict[str, Any]:
    given = {"zoneId": _zone(region).id, "name": "api", "type": "A", "ttl": 60, "records": ["10.0.1.10"]}
    return {name: value for name, value in {**given, **inputs}.items() if value is not None}


def _alias(region: Region, **target: Any) -> dict[str, Any]:
    balancer = region.balancer().outputs
    alias = {"name": balancer["dnsName"], "zoneId": balancer["zoneId"], "evaluateTargetHealth": True, **target}
    return _record(region, ttl=None, records=None, aliases=[alias])


def _reads(**more: Any) -> Inputs:
    return lambda r: {"name": "reads", "role": r.role.id, "policy": policy({**READS, **more})}


def test_identities_have_arns_and_permanent_unique_ids(region: Region) -> None:
    region.make(ROLE_POLICY, "reads", **_reads()(region))
    profile = region.make(tokens.PROFILE, name="hosts", role=region.role.id)
    assert region.role.outputs["arn"] == "arn:aws:iam::123456789012:role/hosts"
    assert profile.outputs["arn"] == "arn:aws:iam::123456789012:instance-profile/hosts"
    unique = region.role.outputs["uniqueId"]
    assert unique.startswith("AROA")
    assert region.aws.update(region.role, description="new").outputs["uniqueId"] == unique
    region.instance(iamInstanceProfile=profile.id)
    region.template(iamInstanceProfile={"arn": profile.outputs["arn"]})


def test_identities_have_no_region(api: Any, region: Region) -> None:
    away = api("aws", region.aws.world, region="us-east-2")
    away.create(ROLE_POLICY, name="reads", role=region.role.id, policy=policy(READS))
    with pytest.raises(RefusalError, match="EntityAlreadyExists: role with name hosts already exists"):
        away.create(tokens.ROLE, name="hosts", assumeRolePolicy=policy(HOSTS))


def test_a_key_is_known_by_its_id_its_arn_and_its_alias(region: Region) -> None:
    alias = region.make(tokens.KEY_ALIAS, name="alias/apes", targetKeyId=region.key.id)
    assert alias.outputs["targetKeyArn"] == region.key.outputs["arn"]
    for called in (region.key.id, region.key.outputs["arn"], alias.outputs["arn"], "alias/apes"):
        region.volume(f"disk-{called}", encrypted=True, kmsKeyId=called)


def test_a_key_policy_may_name_the_administrator(region: Region) -> None:
    root = {"AWS": "arn:aws:iam::123456789012:root"}
    region.make(tokens.KEY, policy=policy({"Effect": "Allow", "Principal": root, "Action": "kms:*", "Resource": "*"}))


def test_a_value_is_a_version_of_its_secret(region: Region) -> None:
    secret = _secret(region)
    assert secret.id == secret.outputs["arn"]
    assert secret.id.startswith("arn:aws:secretsmanager:eu-west-1:123456789012:secret:menagerie/ca-")
    version = region.make(SECRET_VERSION, secretId=secret.id, secretString="x" * 65536)
    assert version.id == f"{secret.id}|{version.outputs['versionId']}"


def test_a_deleted_secret_keeps_its_name_unless_its_recovery_window_is_0(region: Region) -> None:
    kept, gone = _secret(region, "kept"), _secret(region, "gone", recoveryWindowInDays=0)
    for secret in (kept, gone):
        region.aws.delete(secret)
    _secret(region, "gone")
    region.refuses(
        "InvalidRequestException.*already scheduled for deletion.; restore arn.*recoveryWindowInDays 0",
        tokens.SECRET,
        name="menagerie/kept",
    )


def test_a_bucket_has_domain_names_and_is_deleted_despite_its_configuration(region: Region) -> None:
    assert region.bucket.outputs["arn"] == "arn:aws:s3:::apes-logs"
    assert region.bucket.outputs["bucketRegionalDomainName"] == "apes-logs.s3.eu-west-1.amazonaws.com"
    region.make(VERSIONING, bucket=region.bucket.id, **ENABLED)
    region.make(LOCK, bucket=region.bucket.id, **KEEP)
    region.make(LIFECYCLE, bucket=region.bucket.id, rules=[{"id": "a", "expiration": {"days": 90}}])
    region.aws.delete(region.bucket)


@pytest.mark.parametrize(
    ("mode", "force", "words"),
    [
        ("", False, "BucketNotEmpty.*has 1 objects"),
        ("COMPLIANCE", True, "AccessDenied: Access Denied because object protected by object lock"),
    ],
)
def test_a_bucket_with_objects_cannot_be_deleted(region: Region, mode: str, force: bool, words: str) -> None:
    bucket = region.aws.update(region.bucket, forceDestroy=force)
    region.make(tokens.BUCKET_OBJECT, bucket=bucket.id, key="backup-1")
    if mode:
        region.make(VERSIONING, bucket=bucket.id, **ENABLED)
        region.make(LOCK, bucket=bucket.id, rule={"defaultRetention": {"mode": mode, "days": 1}})
    with pytest.raises(RefusalError, match=words):
        region.aws.delete(bucket)


def test_a_bucket_with_force_destroy_is_deleted_with_its_objects(region: Region) -> None:
    bucket = region.aws.update(region.bucket, forceDestroy=True)
    region.make(tokens.BUCKET_OBJECT, bucket=bucket.id, key="log-1")
    region.aws.delete(bucket)
    assert region.aws.world.of_type(tokens.BUCKET_OBJECT) == []


def test_the_full_name_of_a_record_ends_with_its_zone_s_name(region: Region) -> None:
    record = region.make(tokens.RECORD, **_record(region))
    assert record.outputs["fqdn"] == "api.apes.internal"
    assert record.id == f"{record.inputs['zoneId']}_api_A"
    whole = region.make(tokens.RECORD, "whole", **{**record.inputs, "name": "etcd.apes.internal"})
    assert whole.outputs["fqdn"] == "etcd.apes.internal"


def test_a_record_may_be_an_alias_of_a_balancer(region: Region) -> None:
    assert region.make(tokens.RECORD, **_alias(region)).outputs["fqdn"] == "api.apes.internal"


def test_a_zone_with_records_cannot_be_deleted_without_force_destroy(region: Region) -> None:
    record = region.make(tokens.RECORD, **_record(region))
    (zone,) = region.aws.world.of_type(tokens.ZONE)
    assert zone.outputs["zoneId"] == zone.id
    with pytest.raises(RefusalError, match=f"HostedZoneNotEmpty.*{record.id}"):
        region.aws.delete(zone)
    region.aws.delete(region.aws.update(zone, forceDestroy=True))
    assert region.aws.world.of_type(tokens.RECORD) == []


def test_a_private_zone_cannot_lose_its_last_vpc(region: Region) -> None:
    with pytest.raises(RefusalError, match="LastVPCAssociation"):
        region.aws.update(_zone(region), vpcs=None)


def test_a_role_in_use_cannot_be_deleted(region: Region) -> None:
    profile = region.make(tokens.PROFILE, name="hosts", role=region.role.id)
    with pytest.raises(RefusalError, match="DeleteConflict"):
        region.aws.delete(region.role)
    region.aws.delete(profile)
    rights = region.make(ROLE_POLICY, **_reads()(region))
    with pytest.raises(RefusalError, match="DeleteConflict.*must delete policies first"):
        region.aws.delete(region.role)
    region.aws.delete(rights)
    region.aws.delete(region.role)


REFUSED: list[tuple[str, str, Inputs, str]] = [
    ("a role with a name of 65 characters", tokens.ROLE,
     lambda _: {"name": "r" * 65, "assumeRolePolicy": policy(HOSTS)}, "65 characters.*at most 64"),
    ("a role with a space in its name", tokens.ROLE, lambda _: {"name": "a b", "assumeRolePolicy": policy(HOSTS)},
     "it may have only a-z"),
    ("a role without a principal", tokens.ROLE,
     lambda _: {"name": "r", "assumeRolePolicy": policy({**HOSTS, "Principal": {}})}, "field Principal cannot be empty"),
    ("a trust policy with a resource", tokens.ROLE,
     lambda _: {"name": "r", "assumeRolePolicy": policy({**HOSTS, "Resource": "*"})}, "Has prohibited field Resource"),
    ("a trust policy that is too long", tokens.ROLE,
     lambda _: {"name": "r", "assumeRolePolicy": policy(HOSTS, Id="x" * 2048)}, "quota for ACLSizePerRole: 2048"),
    ("a policy that is not JSON", ROLE_POLICY, lambda r: {"name": "p", "role": r.role.id, "policy": "{'a'}"}, "invalid Json"),
    ("a policy without a statement", ROLE_POLICY, lambda r: {"name": "p", "role": r.role.id, "policy": "{}"},
     "Syntax errors in policy"),
    ("a policy with an unknown version", ROLE_POLICY,
     lambda r: {"name": "p", "role": r.role.id, "policy": policy(READS, Version="2024-01-01")}, "valid version string"),
    ("a policy with an invalid effect", ROLE_POLICY, _reads(Effect="allow"), "Effect must be Allow or Deny"),
    ("a policy without actions", ROLE_POLICY, _reads(Action=[]), "must contain actions"),
    ("a policy with an action without a service", ROLE_POLICY, _reads(Action="GetObject"), "prefaced by a vendor"),
    ("a policy without resources", ROLE_POLICY, _reads(Resource=[]), "must contain resources"),
    ("a policy with a resource that is not an ARN", ROLE_POLICY, _reads(Resource="apes-logs"), "must be in ARN format"),
    ("a policy with a principal", ROLE_POLICY, _reads(Principal="*"), "should not specify a principal"),
    ("a policy with an id that has a hyphen", ROLE_POLICY, _reads(Sid="a-b"), "must be alpha-numeric"),
    ("a policy with an id twice", ROLE_POLICY,
     lambda r: {"name": "p", "role": r.role.id, "policy": policy({**READS, "Sid": "a"}, {**READS, "Sid": "a"})},
     "in a single policy must be unique"),
    ("policies that together exceed a role's limit", ROLE_POLICY,
     lambda r: (r.make(ROLE_POLICY, "x", **_reads(Resource=["arn:aws:s3:::" + "a" * 6000])(r)),
                {"name": "p", "role": r.role.id, "policy": policy({**READS, "Resource": "arn:" + "b" * 5000})})[1],
     "Maximum policy size of 10240 bytes exceeded for role hosts"),
    ("a policy of a missing role", ROLE_POLICY, lambda _: {"name": "p", "role": "nobody", "policy": policy(READS)},
     "NoSuchEntity: The role with name nobody cannot be found"),
    ("a profile of a missing role", tokens.PROFILE, lambda _: {"name": "p", "role": "nobody"}, "NoSuchEntity"),
    ("a profile twice", tokens.PROFILE,
     lambda r: r.make(tokens.PROFILE, "x", name="p", role=r.role.id).inputs, "Instance Profile p already exists"),
    ("a key with a deletion window of 6 days", tokens.KEY, lambda _: {"deletionWindowInDays": 6}, "range .7 - 30., got 6"),
    ("a key that rotates every month", tokens.KEY, lambda _: {"rotationPeriodInDays": 30}, "range .90 - 2560., got 30"),
    ("a key that locks everybody out", tokens.KEY,
     lambda _: {"policy": policy({"Effect": "Allow", "Principal": "*", "Action": "kms:Decrypt", "Resource": "*"})},
     "will not allow you to update the key policy"),
    ("a key's policy of more than 32 KiB", tokens.KEY,
     lambda _: {"policy": policy({"Effect": "Allow", "Principal": "*", "Action": "kms:*"}, Id="x" * 32768)},
     "LimitExceededException: Policy is longer than 32768 bytes"),
    ("a key's policy that is not JSON", tokens.KEY, lambda _: {"policy": "{"}, "MalformedPolicyDocumentException"),
    ("an alias without its prefix", tokens.KEY_ALIAS, lambda r: {"name": "apes", "targetKeyId": r.key.id},
     'must begin with "alias/"'),
    ("an alias with AWS's prefix", tokens.KEY_ALIAS, lambda r: {"name": "alias/aws/ebs", "targetKeyId": r.key.id},
     'not with "alias/aws/"'),
    ("an alias twice", tokens.KEY_ALIAS,
     lambda r: r.make(tokens.KEY_ALIAS, "x", name="alias/apes", targetKeyId=r.key.id).inputs,
     "alias with the name arn:aws:kms:eu-west-1:123456789012:alias/apes already exists"),
    ("an alias of a missing key", tokens.KEY_ALIAS, lambda _: {"name": "alias/apes", "targetKeyId": "1"},
     "Key '1' does not exist"),
    ("a secret twice", tokens.SECRET, lambda r: _secret(r).inputs, "the secret menagerie/ca already exists"),
    ("a secret with a space in its name", tokens.SECRET, lambda _: {"name": "a b"}, "it may have only"),
    ("a secret with a window of 3 days", tokens.SECRET, lambda _: {"name": "a", "recoveryWindowInDays": 3},
     "range .7 - 30., got 3"),
    ("a secret with a missing key", tokens.SECRET, lambda _: {"name": "a", "kmsKeyId": "1"},
     "Key '1' does not exist"),
    ("a value of 64 KiB and a byte", SECRET_VERSION,
     lambda r: {"secretId": _secret(r).id, "secretString": "x" * 65537}, "length less than or equal to 65536"),
    ("a value of a missing secret", SECRET_VERSION, lambda _: {"secretId": "a", "secretString": "x"},
     "can't find the specified secret"),
    ("two values at once", SECRET_VERSION,
     lambda r: {"secretId": _secret(r).id, "secretString": "x", "secretBinary": "eA=="}, "conflicts with"),
    ("a bucket with a capital in its name", tokens.BUCKET, lambda _: {"bucket": "Apes"}, "it must have 3 to 63"),
    ("a bucket with a name like an address", tokens.BUCKET, lambda _: {"bucket": "10.0.0.1"}, "not be an IP address"),
    ("a bucket twice", tokens.BUCKET, lambda _: {"bucket": "apes-logs"}, "BucketAlreadyOwnedByYou"),
    ("versions of a missing bucket", VERSIONING, lambda _: {"bucket": "nowhere", **ENABLED}, "NoSuchBucket"),
    ("a lock without versions", LOCK, lambda r: {"bucket": r.bucket.id, **KEEP}, "Versioning must be 'Enabled'"),
    ("a lock for days and years", LOCK,
     lambda r: {"bucket": r.make(VERSIONING, "x", bucket=r.bucket.id, **ENABLED).id,
                "rule": {"defaultRetention": {"mode": "GOVERNANCE", "days": 1, "years": 1}}}, "MalformedXML"),
    ("suspended versions under a lock", VERSIONING,
     lambda r: (r.make(VERSIONING, "x", bucket=r.bucket.id, **ENABLED), r.make(LOCK, "y", bucket=r.bucket.id, **KEEP),
                {"bucket": r.bucket.id, "versioningConfiguration": {"status": "Suspended"}})[2],
     "Object Lock configuration is present on this bucket"),
    ("a lifecycle rule without an action", LIFECYCLE, lambda r: {"bucket": r.bucket.id, "rules": [{"id": "a"}]},
     "At least one action"),
    ("a lifecycle rule twice", LIFECYCLE,
     lambda r: {"bucket": r.bucket.id, "rules": [{"id": "a", "expiration": {"days": 1}}] * 2}, "Rule ID must be unique"),
    ("an expiration before a transition", LIFECYCLE,
     lambda r: {"bucket": r.bucket.id,
                "rules": [{"id": "a", "expiration": {"days": 30}, "transitions": [{"days": 30}]}]},
     "must be greater than 'Days' in the Transition action"),
    ("a bucket's policy for another bucket", tokens.BUCKET_POLICY,
     lambda r: {"bucket": r.bucket.id,
                "policy": policy({**READS, "Principal": "*", "Resource": "arn:aws:s3:::other/*"})}, "invalid resource"),
    ("a bucket's policy without a principal", tokens.BUCKET_POLICY, lambda r: {"bucket": r.bucket.id, "policy": policy(READS)},
     "Missing required field Principal"),
    ("a bucket's policy of more than 20 KiB", tokens.BUCKET_POLICY,
     lambda r: {"bucket": r.bucket.id, "policy": policy({**READS, "Principal": "*"}, Id="x" * 20480)}, "PolicyTooLarge"),
    ("a bucket's policy that is not JSON", tokens.BUCKET_POLICY, lambda r: {"bucket": r.bucket.id, "policy": "{"},
     "MalformedPolicy"),
    ("a public policy of a private bucket", tokens.BUCKET_POLICY,
     lambda r: {"bucket": r.make(PUBLIC_ACCESS, "x", bucket=r.bucket.id, blockPublicPolicy=True).id,
                "policy": policy({**READS, "Principal": "*", "Resource": "arn:aws:s3:::apes-logs/*"})},
     "AccessDenied.*BlockPublicPolicy"),
    ("a zone with an invalid name", tokens.ZONE, lambda _: {"name": "apes..internal"}, "InvalidDomainName"),
    ("a zone twice in a VPC", tokens.ZONE, lambda r: _zone(r).inputs, "ConflictingDomainExists"),
    ("a zone of a missing VPC", tokens.ZONE, lambda _: {"name": "a.internal", "vpcs": [{"vpcId": "vpc-1"}]}, "InvalidVpcID"),
    ("a record in a missing zone", tokens.RECORD, lambda r: _record(r, zoneId="Z1"), "No hosted zone found with ID: Z1"),
    ("a record twice", tokens.RECORD, lambda r: r.make(tokens.RECORD, "x", **_record(r)).inputs, "already exists"),
    ("a record without a value", tokens.RECORD, lambda r: _record(r, records=None), "one of .alias,records. must be"),
    ("a record without a TTL", tokens.RECORD, lambda r: _record(r, ttl=None), "set ttl"),
    ("a record with an invalid address", tokens.RECORD, lambda r: _record(r, records=["10.0.1"]),
     "ARRDATAIllegalIPv4Address"),
    ("an alias of a missing target", tokens.RECORD, lambda r: _alias(r, name="nowhere.elb.eu-west-1.amazonaws.com"),
     "Tried to create an alias that targets nowhere"),
    ("an alias in another zone", tokens.RECORD, lambda r: _alias(r, zoneId="Z1"),
     "does not lie within the target zone"),
    ("an alias with a TTL", tokens.RECORD, lambda r: {**_alias(r), "ttl": 60}, "conflicts with alias"),
]  # fmt: skip


@pytest.mark.parametrize(("token", "inputs", "words"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_invalid_service_resources_are_refused(region: Region, token: str, inputs: Inputs, words: str) -> None:
    region.refuses(words, token, "refused", **inputs(region))


def test_white_space_does_not_count_towards_the_size_of_a_policy(region: Region) -> None:
    text = json.dumps(json.loads(policy(READS)), indent=1) + " " * 10240
    region.make(ROLE_POLICY, name="reads", role=region.role.id, policy=text)


@pytest.mark.parametrize(
    ("token", "old", "new", "paths"),
    [
        (tokens.ROLE, {"name": "a"}, {"name": "b"}, ["name"]),
        (tokens.ROLE, {"path": "/a/"}, {"path": "/b/"}, ["path"]),
        (tokens.ROLE, {"assumeRolePolicy": "a"}, {"assumeRolePolicy": "b"}, []),
        (ROLE_POLICY, {"role": "a"}, {"role": "b"}, ["role"]),
        (ROLE_POLICY, {"policy": "a"}, {"policy": "b"}, []),
        (tokens.PROFILE, {"role": "a"}, {"role": "b"}, []),
        (tokens.PROFILE, {"name": "a"}, {"name": "b"}, ["name"]),
        (tokens.KEY, {"policy": "a", "deletionWindowInDays": 7}, {"policy": "b", "deletionWindowInDays": 30}, []),
        (tokens.KEY, {"keyUsage": "a"}, {"keyUsage": "b"}, ["keyUsage"]),
        (tokens.KEY_ALIAS, {"name": "alias/a"}, {"name": "alias/b"}, ["name"]),
        (tokens.KEY_ALIAS, {"targetKeyId": "a"}, {"targetKeyId": "b"}, []),
        (tokens.SECRET, {"kmsKeyId": "a"}, {"kmsKeyId": "b"}, []),
        (tokens.SECRET, {"name": "a"}, {"name": "b"}, ["name"]),
        (SECRET_VERSION, {"secretString": "a"}, {"secretString": "b"}, ["secretString"]),
        (tokens.BUCKET, {"bucket": "a"}, {"bucket": "b"}, ["bucket"]),
        (tokens.BUCKET, {"objectLockEnabled": False}, {"objectLockEnabled": True}, ["objectLockEnabled"]),
        (tokens.BUCKET, {"forceDestroy": False}, {"forceDestroy": True}, []),
        (VERSIONING, {"bucket": "a"}, {"bucket": "b"}, ["bucket"]),
        (LOCK, {"rule": {"a": 1}}, {"rule": {"a": 2}}, []),
        (LIFECYCLE, {"rules": [{"id": "a"}]}, {"rules": [{"id": "b"}]}, []),
        (tokens.BUCKET_POLICY, {"policy": "a"}, {"policy": "b"}, []),
        (PUBLIC_ACCESS, {"bucket": "a"}, {"bucket": "b"}, ["bucket"]),
        (tokens.ZONE, {"name": "a"}, {"name": "b"}, ["name"]),
        (tokens.ZONE, {"vpcs": [{"vpcId": "a"}]}, {"vpcs": [{"vpcId": "b"}]}, []),
        (tokens.RECORD, {"name": "a"}, {"name": "b"}, ["name"]),
        (tokens.RECORD, {"type": "A"}, {"type": "AAAA"}, []),
        (tokens.RECORD, {"records": ["10.0.1.1"]}, {"records": ["10.0.1.2"]}, []),
    ],
)
def test_which_changes_replace_service_resources(api: Any, token: str, old: Any, new: Any, paths: list[str]) -> None:
    assert api("aws").replaces(token, old, new) == paths
