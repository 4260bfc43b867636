"""Buckets: closed, encrypted, versioned, and backups that nobody can delete early."""

from __future__ import annotations

import json

import pytest

from stacks.aws.storage import ARTEFACTS, AUDIT, BACKUPS, LOGS
from stacks.aws.tags import bucket
from stacks.backups import kept_days
from stacks.names import short
from tests.stacks.aws.tokens import BUCKET, KEY

BOTH = pytest.mark.parametrize("deployed", ["small", "whole"], indirect=True)


def of(deployed, kind, use):
    """Return the inputs of the resource of one type for a bucket."""
    suffix = f"aws:s3/bucket{kind}:Bucket{kind}"
    (inputs,) = (record.inputs for record in deployed.of_type(suffix) if record.urn.endswith(f"-{use}"))
    return inputs


@BOTH
def test_every_bucket_is_closed_encrypted_and_versioned(deployed):
    (key,) = deployed.of_type(KEY)
    assert len(deployed.of_type(BUCKET)) == 4
    for use in (BACKUPS, AUDIT, LOGS, ARTEFACTS):
        access = of(deployed, "PublicAccessBlock", use)
        flags = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
        assert all(access[flag] is True for flag in flags)
        (rule,) = of(deployed, "ServerSideEncryptionConfiguration", use)["rules"]
        by_default = rule["applyServerSideEncryptionByDefault"]
        assert (by_default["sseAlgorithm"], by_default["kmsMasterKeyId"]) == ("aws:kms", key.outputs["arn"])
        assert of(deployed, "Versioning", use)["versioningConfiguration"] == {"status": "Enabled"}
        first, *_ = json.loads(of(deployed, "Policy", use)["policy"])["Statement"]
        assert (first["Effect"], first["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})


def test_backups_are_locked_for_the_time_in_the_spec(small, whole):
    for deployed, days in ((small, 14), (whole, 10)):
        assert kept_days(deployed.cluster) == days
        assert of(deployed, "ObjectLockConfiguration", BACKUPS)["rule"]["defaultRetention"] == {
            "mode": "GOVERNANCE",
            "days": days,
        }
        (rule,) = of(deployed, "LifecycleConfiguration", BACKUPS)["rules"]
        assert rule["expiration"] == {"expiredObjectDeleteMarker": True}
        assert rule["noncurrentVersionExpiration"] == {"noncurrentDays": days}


@BOTH
def test_audit_logs_are_locked_for_the_time_in_the_spec_and_then_removed(deployed):
    lock = of(deployed, "ObjectLockConfiguration", AUDIT)
    assert lock["rule"]["defaultRetention"] == {"mode": "GOVERNANCE", "days": 30}
    (rule,) = of(deployed, "LifecycleConfiguration", AUDIT)["rules"]
    assert (rule["expiration"], rule["noncurrentVersionExpiration"]) == ({"days": 30}, {"noncurrentDays": 1})


def test_without_backups_the_lock_holds_for_thirty_days(small):
    etcd = small.cluster.spec.etcd
    bare = etcd.model_copy(update={"main": etcd.main.model_copy(update={"backup": None})})
    spec = small.cluster.spec.model_copy(update={"etcd": bare})
    assert kept_days(small.cluster.model_copy(update={"spec": spec})) == 30


def test_artefacts_stay_until_they_are_deleted(small):
    (rule,) = of(small, "LifecycleConfiguration", ARTEFACTS)["rules"]
    assert rule["expiration"] == {"expiredObjectDeleteMarker": True}
    assert rule["noncurrentVersionExpiration"] == {"noncurrentDays": 30}


@BOTH
def test_every_connection_of_the_vpc_is_logged_by_the_accounts_log_delivery(deployed):
    (log,) = (record.inputs for record in deployed.of_type("aws:ec2/flowLog:FlowLog"))
    (logs,) = (record for record in deployed.of_type(BUCKET) if record.inputs["tags"]["role"] == LOGS)
    assert (log["logDestination"], log["trafficType"]) == (logs.outputs["arn"], "ALL")
    allowed = [
        statement
        for statement in json.loads(of(deployed, "Policy", LOGS)["policy"])["Statement"]
        if statement["Effect"] == "Allow"
    ]
    assert {statement["Principal"]["Service"] for statement in allowed} == {"delivery.logs.amazonaws.com"}
    assert all(statement["Condition"]["StringEquals"]["aws:SourceAccount"] == "123456789012" for statement in allowed)


def test_long_names_are_shortened_to_the_limits_of_aws_and_stay_unique(whole):
    for record in whole.of_type(BUCKET):
        assert len(record.inputs["bucket"]) <= 63
    assert bucket(whole.cluster, BACKUPS, "1" * 12).endswith("-backups-111111111111")
    assert short("abc", 3) == "abc"
    first, second = short("a" * 70 + "b", 32), short("a" * 70 + "c", 32)
    assert first != second and len(first) == len(second) == 32
    assert short("a" * 70 + "b", 32) == first
