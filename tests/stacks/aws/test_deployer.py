"""The identity that runs `up` with the documented policies can't exceed them: evaluated by moto, and on real stacks."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from pathlib import Path

import pulumi
import pulumi_aws as aws
import pytest
from moto.iam import policy_conditions
from moto.iam.access_control import IAMPolicy, PermissionResult

from cluster.load import load_cluster
from operations.provisioning.journal import FOLDER
from operations.record.model import CURRENT, HISTORY
from operations.record.store import CLOCK
from sandbox.simcloud.server import simulated_clouds
from sandbox.simcloud.world import World
from stacks.automation import ClusterStack
from stacks.aws import policies
from stacks.aws.secrets import host_role
from tests.programs import program
from tests.stacks.aws.tokens import ROLE

DOCS = Path(__file__).resolve().parents[3] / "docs"
ACCOUNT = "111122223333"
BOUND = {"iam:PermissionsBoundary": policies.boundary_arn("aws", ACCOUNT)}
OURS = f"arn:aws:iam::{ACCOUNT}:role/menagerie/horus-etcd-role-1234567"
THEIRS = f"arn:aws:iam::{ACCOUNT}:role/admin-of-others"
UNSAID = {"iam:PermissionsBoundary": "", "iam:PassedToService": ""}
"""To AWS a missing key has no value; moto would ignore the condition."""
TO_EC2 = {"iam:PassedToService": "ec2.amazonaws.com"}


@pytest.fixture
def may(monkeypatch: pytest.MonkeyPatch):
    """may(action, resource, context): whether the documented policies permit it to the identity that runs `up`."""
    like = {"ArnLike": lambda expected, actual: fnmatchcase(actual, expected)}
    monkeypatch.setattr(policy_conditions, "CONDITION_OPERATIONS", {**policy_conditions.CONDITION_OPERATIONS, **like})
    documents = [json.loads((DOCS / name).read_text()) for name in ("aws-policy.json", "aws-policy-ec2.json")]

    def is_permitted(action: str, resource: str, context: dict[str, str] | None = None) -> bool:
        # One statement at a time, as AWS does: moto treats an Allow whose condition fails as a Deny.
        single_statements = [
            {"policy_document": json.dumps({**document, "Statement": [statement]})}
            for document in documents
            for statement in document["Statement"]
        ]
        results = [
            IAMPolicy(statement).is_action_permitted(action, resource, None, {**UNSAID, **(context or {})})
            for statement in single_statements
        ]
        return PermissionResult.PERMITTED in results

    return is_permitted


@pytest.mark.parametrize(
    ("action", "resource", "context"),
    [
        ("iam:PutRolePolicy", THEIRS, {}),
        ("iam:PutRolePolicy", THEIRS, BOUND),
        ("iam:PutRolePolicy", OURS, {}),
        ("iam:PutRolePolicy", OURS, {"iam:PermissionsBoundary": "arn:aws:iam::aws:policy/AdministratorAccess"}),
        ("iam:CreateRole", OURS, {}),
        ("iam:CreateRole", THEIRS, BOUND),
        ("iam:PutRolePermissionsBoundary", OURS, {"iam:PermissionsBoundary": f"arn:aws:iam::{ACCOUNT}:policy/wide"}),
        ("iam:DeleteRolePermissionsBoundary", OURS, BOUND),
        ("iam:AttachRolePolicy", OURS, BOUND),
        ("iam:UpdateAssumeRolePolicy", THEIRS, {}),
        ("iam:CreatePolicyVersion", BOUND["iam:PermissionsBoundary"], {}),
        ("iam:PassRole", THEIRS, TO_EC2),
        ("iam:PassRole", OURS, {"iam:PassedToService": "lambda.amazonaws.com"}),
        ("iam:AddRoleToInstanceProfile", f"arn:aws:iam::{ACCOUNT}:instance-profile/theirs", {}),
    ],
)
def test_running_up_does_not_grant_administrator_rights(may, action, resource, context):
    assert not may(action, resource, context)


@pytest.mark.parametrize(
    ("action", "context"), [("iam:CreateRole", BOUND), ("iam:PutRolePolicy", BOUND), ("iam:PassRole", TO_EC2)]
)
def test_permissions_that_up_needs_for_hosts_roles_are_allowed(may, action, context):
    assert may(action, OURS, context)


@pytest.mark.parametrize("action", ["s3:GetObject", "s3:PutObject"])
def test_an_operator_reads_and_writes_records_and_no_other_object(may, action):
    for ours in (CURRENT, f"{HISTORY}/1", CLOCK, f"{FOLDER}/horus-gpu-1"):
        assert may(action, f"arn:aws:s3:::horus-artefacts-{ACCOUNT}/{ours}")
    for theirs in (
        f"horus-artefacts-{ACCOUNT}/programs/etcd",
        f"horus-backups-{ACCOUNT}/operations/1",
        "state/operations/1",
    ):
        assert not may(action, f"arn:aws:s3:::{theirs}")


@pytest.mark.parametrize("deployed", ["small", "whole"], indirect=True)
def test_the_roles_of_a_new_cluster_are_bounded_and_below_our_path(deployed):
    roles = deployed.of_type(ROLE)
    assert roles
    for role in roles:
        assert role.inputs["path"] == policies.PATH
        assert role.inputs["permissionsBoundary"].endswith(f":policy{policies.PATH}{policies.BOUNDARY}")


@pytest.mark.parametrize("deployed", ["small", "whole"], indirect=True)
def test_the_boundary_permits_everything_that_hosts_roles_grant(deployed):
    """Checks action by action: a new kind of permission must be in both."""
    bound = json.loads((DOCS / "aws-policy-boundary.json").read_text())["Statement"]
    for record in deployed.of_type("aws:iam/rolePolicy:RolePolicy"):
        for statement in json.loads(record.inputs["policy"])["Statement"]:
            for action in listed(statement["Action"]):
                fits = [bounding for bounding in bound if action in bounding["Action"]]
                assert fits, action
                for resource in listed(statement["Resource"]):
                    assert any(
                        fnmatchcase(resource, pattern) for bounding in fits for pattern in listed(bounding["Resource"])
                    ), resource


def test_the_boundary_permits_no_granting_of_rights():
    actions = {
        action
        for statement in json.loads((DOCS / "aws-policy-boundary.json").read_text())["Statement"]
        for action in listed(statement["Action"])
    }
    assert "s3:PutObject" in actions
    assert not [
        action for action in actions if action.startswith(("iam:", "sts:")) or "*" in action or "Policy" in action
    ]


def test_existing_roles_keep_their_place_when_the_path_is_added(tmp_path, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "PULUMI_CONFIG_PASSPHRASE"):
        monkeypatch.setenv(name, "tests")
    cluster = load_cluster(DOCS.parent / "examples" / "horus" / "cluster.yaml")
    now = {"bounded": False}

    def declare() -> None:
        own = pulumi.ResourceOptions(provider=aws.Provider("aws", region="eu-west-1"))
        if now["bounded"]:
            host_role("etcd", {"role": "etcd"}, BOUND["iam:PermissionsBoundary"], own)
            host_role("new", {"role": "new"}, BOUND["iam:PermissionsBoundary"], own)
        else:
            aws.iam.Role("etcd", assume_role_policy=policies.TRUST_OF_HOSTS, tags={"role": "etcd"}, opts=own)

    world = World()
    with simulated_clouds(world, clouds=["aws"]) as simulated:
        monkeypatch.setenv("PULUMI_DEBUG_PROVIDERS", simulated["PULUMI_DEBUG_PROVIDERS"])
        stack = ClusterStack(cluster, declare, program("pulumi"), tmp_path)
        stack.up()
        (before,) = [record.id for record in world.of_type(ROLE)]
        now["bounded"] = True
        summary, _ = stack.up()
    assert summary.changes == {"create": 1, "same": 3}
    places = {record.inputs["tags"]["role"]: (record.id, record.inputs.get("path")) for record in world.of_type(ROLE)}
    assert places["etcd"] == (before, None)
    assert places["new"][1] == policies.PATH


def listed(value: object) -> list[str]:
    return value if isinstance(value, list) else [str(value)]
