"""Buckets: closed, encrypted, versioned, and backups that nobody takes back."""

from __future__ import annotations

import json

import pytest

from stacks.aws.storage import ARTEFACTS, AUDIT, BACKUPS, LOGS, kept_days
from stacks.aws.tags import bucket
from stacks.names import short
from tests.stacks.aws.tokens import BUCKET, KEY

BOTH = pytest.mark.parametrize("made", ["small", "whole"], indirect=True)


def of(made, kind, use):
    """What one resource type says of a bucket."""
    suffix = f"aws:s3/bucket{kind}:Bucket{kind}"
    (found,) = (record.inputs for record in made.of_type(suffix) if record.urn.endswith(f"-{use}"))
    return found


@BOTH
def test_every_bucket_is_closed_encrypted_and_versioned(made):
    (key,) = made.of_type(KEY)
    assert len(made.of_type(BUCKET)) == 4
    for use in (BACKUPS, AUDIT, LOGS, ARTEFACTS):
        access = of(made, "PublicAccessBlock", use)
        flags = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
        assert all(access[flag] is True for flag in flags)
        (rule,) = of(made, "ServerSideEncryptionConfiguration", use)["rules"]
        by_default = rule["applyServerSideEncryptionByDefault"]
        assert (by_default["sseAlgorithm"], by_default["kmsMasterKeyId"]) == ("aws:kms", key.outputs["arn"])
        assert of(made, "Versioning", use)["versioningConfiguration"] == {"status": "Enabled"}
        first, *_ = json.loads(of(made, "Policy", use)["policy"])["Statement"]
        assert (first["Effect"], first["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})


def test_backups_are_locked_for_as_long_as_the_spec_keeps_them(small, whole):
    for made, days in ((small, 14), (whole, 10)):
        assert kept_days(made.cluster) == days
        assert of(made, "ObjectLockConfiguration", BACKUPS)["rule"]["defaultRetention"] == {
            "mode": "GOVERNANCE",
            "days": days,
        }
        (rule,) = of(made, "LifecycleConfiguration", BACKUPS)["rules"]
        assert rule["expiration"] == {"expiredObjectDeleteMarker": True}
        assert rule["noncurrentVersionExpiration"] == {"noncurrentDays": days}


@BOTH
def test_audit_logs_are_locked_for_as_long_as_the_spec_says_and_then_removed(made):
    lock = of(made, "ObjectLockConfiguration", AUDIT)
    assert lock["rule"]["defaultRetention"] == {"mode": "GOVERNANCE", "days": 30}
    (rule,) = of(made, "LifecycleConfiguration", AUDIT)["rules"]
    assert (rule["expiration"], rule["noncurrentVersionExpiration"]) == ({"days": 30}, {"noncurrentDays": 1})


def test_without_backups_the_lock_holds_for_thirty_days(small):
    etcd = small.cluster.spec.etcd
    bare = etcd.model_copy(update={"main": etcd.main.model_copy(update={"backup": None})})
    spec = small.cluster.spec.model_copy(update={"etcd": bare})
    assert kept_days(small.cluster.model_copy(update={"spec": spec})) == 30


def test_artefacts_stay_until_somebody_deletes_them(small):
    (rule,) = of(small, "LifecycleConfiguration", ARTEFACTS)["rules"]
    assert rule["expiration"] == {"expiredObjectDeleteMarker": True}
    assert rule["noncurrentVersionExpiration"] == {"noncurrentDays": 30}


@BOTH
def test_every_connection_of_the_vpc_is_logged_by_the_account_s_own_log_delivery(made):
    (log,) = (record.inputs for record in made.of_type("aws:ec2/flowLog:FlowLog"))
    (logs,) = (record for record in made.of_type(BUCKET) if record.inputs["tags"]["role"] == LOGS)
    assert (log["logDestination"], log["trafficType"]) == (logs.outputs["arn"], "ALL")
    allowed = [one for one in json.loads(of(made, "Policy", LOGS)["policy"])["Statement"] if one["Effect"] == "Allow"]
    assert {one["Principal"]["Service"] for one in allowed} == {"delivery.logs.amazonaws.com"}
    assert all(one["Condition"]["StringEquals"]["aws:SourceAccount"] == "123456789012" for one in allowed)


def test_long_names_are_shortened_to_what_aws_takes_and_stay_apart(whole):
    for record in whole.of_type(BUCKET):
        assert len(record.inputs["bucket"]) <= 63
    assert bucket(whole.cluster, BACKUPS, "1" * 12).endswith("-backups-111111111111")
    assert short("abc", 3) == "abc"
    first, second = short("a" * 70 + "b", 32), short("a" * 70 + "c", 32)
    assert first != second and len(first) == len(second) == 32
    assert short("a" * 70 + "b", 32) == first
