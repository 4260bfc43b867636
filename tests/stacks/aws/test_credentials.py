"""Errors before any request to AWS, and the permissions of the operator."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import botocore.session
import pytest

from stacks.aws import volume_rights
from stacks.aws.credentials import missing
from stacks.aws.permissions import ANY, boundary, by_type, documents
from stacks.aws.provider import refuse_other_partitions
from tests.stacks.aws.conftest import SMALL, changed, loaded

DOCS = Path(__file__).resolve().parents[3] / "docs"
FUNCTIONS = ("aws:ssm/getParameter:getParameter", "aws:ec2/getAmi:getAmi")
NOWHERE = Path("/nonexistent")


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, "there are no credentials for AWS"),
        ({"AWS_ACCESS_KEY_ID": "AKIA"}, "AWS_SECRET_ACCESS_KEY is not"),
        ({"AWS_SECRET_ACCESS_KEY": "x"}, "AWS_ACCESS_KEY_ID is not"),
        ({"AWS_ROLE_ARN": "arn:aws:iam::1:role/x"}, "AWS_WEB_IDENTITY_TOKEN_FILE is not"),
        ({"AWS_ROLE_ARN": "arn:x", "AWS_WEB_IDENTITY_TOKEN_FILE": "/nonexistent/token"}, "does not exist"),
        ({"AWS_PROFILE": "staging"}, "AWS_PROFILE is staging"),
        ({"AWS_EC2_METADATA_DISABLED": "true"}, "there are no credentials for AWS"),
    ],
)
def test_missing_credentials_are_reported_with_the_way_to_get_them(environment, message, tmp_path):
    (problem,) = missing({"HOME": str(tmp_path), **environment}, NOWHERE)
    assert message in problem
    assert re.search("set|aws configure|must write", problem)


def test_every_kind_of_credentials_is_found(tmp_path):
    token = tmp_path / "token"
    token.write_text("x")
    ways = (
        {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"},
        {"AWS_ROLE_ARN": "arn:x", "AWS_WEB_IDENTITY_TOKEN_FILE": str(token)},
        {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/x"},
    )
    for environment in ways:
        assert missing({"HOME": str(tmp_path), **environment}, NOWHERE) == []


def test_profiles_of_both_files_count_and_one_with_only_a_region_does_not(tmp_path):
    folder = tmp_path / ".aws"
    folder.mkdir()
    (folder / "credentials").write_text("[old]\naws_access_key_id = a\n")
    (folder / "config").write_text("[default]\nregion = x\n[profile sso]\nsso_session = y\n[profile no]\nregion = z\n")
    home = {"HOME": str(tmp_path)}
    assert missing({**home, "AWS_PROFILE": "old"}, NOWHERE) == []
    assert missing({**home, "AWS_PROFILE": "sso"}, NOWHERE) == []
    assert "they have old, sso" in missing({**home, "AWS_PROFILE": "no"}, NOWHERE)[0]
    assert missing(home, NOWHERE)
    (folder / "config").write_text("[default]\nsso_start_url = x\n")
    assert missing(home, NOWHERE) == []


def test_an_instance_has_the_credentials_of_its_profile(tmp_path):
    vendor = tmp_path / "vendor"
    vendor.write_text("Amazon EC2\n")
    assert missing({"HOME": str(tmp_path)}, vendor) == []
    assert missing({"HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true"}, vendor)


def test_a_damaged_file_has_no_profiles(tmp_path):
    damaged = tmp_path / "config"
    damaged.write_text("sso_session = nowhere\n")
    assert missing({"HOME": str(tmp_path), "AWS_CONFIG_FILE": str(damaged)}, NOWHERE)


def test_permissions_cover_exactly_the_types_that_the_stack_declares(small, whole):
    declared = {record.type for deployed in (small, whole) for record in deployed.records}
    assert declared | {ANY, *FUNCTIONS} == set(by_type())


# "Service Authorization Reference": actions whose name differs from the call that they permit, or that permit no call.
OF_NO_CALL = {
    *("elasticfilesystem:ClientMount", "elasticfilesystem:ClientRootAccess", "elasticfilesystem:ClientWrite"),
    *("iam:PassRole", "kms:ReEncryptFrom", "kms:ReEncryptTo", "logs:CreateLogDelivery", "logs:DeleteLogDelivery"),
    *("s3:DeleteObjectVersion", "s3:GetAccelerateConfiguration", "s3:GetBucketCORS", "s3:ListBucket"),
    *("s3:GetBucketObjectLockConfiguration", "s3:PutBucketObjectLockConfiguration", "s3:ListBucketVersions"),
    *("s3:GetBucketPublicAccessBlock", "s3:PutBucketPublicAccessBlock", "s3:GetReplicationConfiguration"),
    *("s3:GetEncryptionConfiguration", "s3:PutEncryptionConfiguration"),
    *("s3:GetLifecycleConfiguration", "s3:PutLifecycleConfiguration"),
}
CLIENTS = {"elasticloadbalancing": "elbv2", "elasticfilesystem": "efs"}


def test_every_action_is_a_call_of_aws_or_a_known_exception():
    place = volume_rights.Place("c", "r", "v", "k", "aws", "1")
    statements = [*volume_rights.disks(place, "w"), *volume_rights.files(place, "f"), *volume_rights.only_by_mount("f")]
    actions = {action for actions in by_type().values() for action in actions}
    actions |= {action for statement in statements for action in as_list(statement["Action"])} - {"*"}
    session = botocore.session.get_session()
    without_call = set()
    for action in actions:
        service, _, call = action.partition(":")
        if call not in session.get_service_model(CLIENTS.get(service, service)).operation_names:
            without_call.add(action)
    assert without_call == OF_NO_CALL


@pytest.mark.parametrize("region", ["cn-north-1", "us-gov-west-1", "eusc-de-east-1"])
def test_regions_of_other_partitions_are_refused(region):
    cluster = changed(loaded(SMALL), {"control_plane": {"region": region}})
    with pytest.raises(ValueError, match=rf"control_plane\.region {region}: .* belongs to another"):
        refuse_other_partitions(cluster)
    refuse_other_partitions(loaded(SMALL))


def test_the_documented_policies_match_the_table_and_fit():
    """Compare with the documented policies. MENAGERIE_UPDATE_GOLDEN=1 rewrites them; review the difference."""
    expected = {**documents(), "aws-policy-boundary.json": boundary()}
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        for name, text in expected.items():
            (DOCS / name).write_text(text)
    for name, text in expected.items():
        assert (DOCS / name).read_text() == text
        # "IAM and AWS STS quotas": a managed policy.
        assert len(re.sub(r"\s", "", text)) <= 6144, name
    listed = {
        action
        for text in documents().values()
        for statement in json.loads(text)["Statement"]
        for action in as_list(statement["Action"])
    }
    records = {"s3:GetObject", "s3:PutObject"}
    assert listed == {action for actions in by_type().values() for action in actions} | records
    assert not [action for action in listed if "*" in action]


def as_list(value):
    return value if isinstance(value, list) else [value]
