"""Permissions, narrow and broad."""

from __future__ import annotations

from tests.policies.rows_stores import policy
from tests.policies.support import Case, resource

_SCOPE = "/subscriptions/s/resourceGroups/g/providers/Microsoft.KeyVault/vaults/v/secrets/x"
_ROLES = "/subscriptions/s/providers/Microsoft.Authorization/roleDefinitions"
_OWN = "5f8a1a52-6c0c-5f0e-9f4e-0d6a8a0f5c11"
_READER_OF_SECRETS = f"{_ROLES}/4633458b-17de-408a-b874-0445c86b69e6"

_TAG, NAME = "ec2:ResourceTag/cluster", "lemur"
_VOLUMES = {
    "Action": "ec2:DeleteVolume",
    "Resource": "arn:aws:ec2:eu-west-1:1:volume/*",
    "Condition": {"StringEquals": {_TAG: NAME}},
}

IDENTITIES = (
    Case(
        "no-wildcards",
        (resource("aws:iam/rolePolicy:RolePolicy", {"policy": policy()}),),
        (
            {"policy": policy(Action="*")},
            {"policy": policy(Action=["s3:GetObject", "s3:Put*"])},
            {"policy": policy(Resource="*")},
            {"policy": policy(Resource=["arn:aws:s3:::b/own/*", "arn:aws:s3:::*"])},
            {"policy": policy(Resource="arn:aws:s3:::b/*")},
            {"policy": policy(NotAction="iam:PassRole")},
        ),
    ),
    Case(
        "no-wildcards",
        (resource("aws:iam/policy:Policy", {"policy": policy(Action=["ec2:DescribeInstances"], Resource="*")}),),
        (
            {"policy": policy(Action=["ec2:DescribeInstances", "ec2:RunInstances"], Resource="*")},
            {"policy": policy(Action=["ec2:DescribeInstanceAttribute"], Resource="*")},
        ),
    ),
    Case(
        "no-wildcards",
        (resource("aws:iam/rolePolicy:RolePolicy", {"policy": policy(**_VOLUMES)}),),
        (
            {"policy": policy(**{**_VOLUMES, "Condition": {"StringEquals": {_TAG: "another"}}})},
            {"policy": policy(**{**_VOLUMES, "Condition": {"StringLike": {_TAG: NAME}}})},
            {"policy": policy(**{**_VOLUMES, "Condition": {"StringEquals": {"ec2:ResourceTag/role": NAME}}})},
        ),
    ),
    Case(
        "no-wildcards",
        (
            resource(
                "aws:kms/key:Key",
                {"policy": policy(Action="kms:*", Principal={"AWS": "arn:aws:iam::1:root"}, Resource="*")},
            ),
        ),
        ({"policy": policy(Action="kms:*", Principal={"AWS": "arn:aws:iam::1:role/r"}, Resource="*")},),
    ),
    Case(
        "no-wildcards",
        (
            resource(
                "azure-native:authorization:RoleDefinition",
                {"permissions": [{"actions": ["Microsoft.Compute/disks/read"]}]},
            ),
        ),
        ({"permissions[].actions": ["*"]}, {"permissions[].dataActions": ["Microsoft.KeyVault/vaults/secrets/*"]}),
    ),
    Case(
        "no-broad-roles",
        (resource("aws:iam/rolePolicyAttachment:RolePolicyAttachment", {"policyArn": "arn:aws:iam::1:policy/own"}),),
        ({"policyArn": "arn:aws:iam::aws:policy/AdministratorAccess"},),
    ),
    Case(
        "no-broad-roles",
        (resource("aws:iam/role:Role", {"managedPolicyArns": []}),),
        ({"managedPolicyArns": ["arn:aws:iam::aws:policy/ReadOnlyAccess"]},),
    ),
    Case(
        "no-broad-roles",
        (
            resource(
                "azure-native:authorization:RoleAssignment", {"roleDefinitionId": _READER_OF_SECRETS, "scope": _SCOPE}
            ),
        ),
        (
            {"roleDefinitionId": f"{_ROLES}/8e3af657-a8ff-443c-a75c-2fe8c4bcb635"},
            {"roleDefinitionId": f"{_ROLES}/B24988AC-6180-42A0-AB88-20F7382DD24C"},
            {"scope": "/subscriptions/s"},
            {"scope": "/subscriptions/s/resourceGroups/g"},
            {"scope": "/providers/Microsoft.Management/managementGroups/m"},
        ),
    ),
    Case(
        "no-broad-roles",
        (
            resource(
                "azure-native:authorization:RoleAssignment",
                {"roleDefinitionId": f"{_ROLES}/{_OWN}", "scope": "/subscriptions/s/resourceGroups/workers"},
            ),
            resource(
                "azure-native:authorization:RoleDefinition",
                {"roleDefinitionId": _OWN, "permissions": [{"actions": ["Microsoft.Compute/disks/write"]}]},
            ),
        ),
        (
            {"roleDefinitionId": "another"},
            {"permissions[].actions": ["Microsoft.Compute/disks/write", "Microsoft.Compute/virtualMachines/write"]},
            {"permissions[].dataActions": ["Microsoft.KeyVault/vaults/secrets/getSecret/action"]},
        ),
    ),
    Case(
        "no-broad-roles",
        (
            resource(
                "gcp:secretmanager/secretIamMember:SecretIamMember", {"role": "roles/secretmanager.secretAccessor"}
            ),
        ),
        ({"role": "roles/secretmanager.admin"}, {"role": "roles/owner"}),
    ),
    Case(
        "no-broad-roles",
        (resource("gcp:projects/iAMMember:IAMMember", {"role": "projects/p/roles/own"}),),
        (
            {"role": "roles/editor"},
            {"role": "roles/secretmanager.secretAccessor"},
            {"role": "roles/compute.instanceAdmin.v1"},
        ),
    ),
    Case(
        "no-broad-roles",
        (resource("gcp:projects/iAMMember:IAMMember", {"role": "roles/logging.logWriter"}),),
        ({"role": "roles/logging.admin"},),
    ),
    Case(
        "own-identities",
        (resource("gcp:compute/instance:Instance", {"serviceAccount": {"email": "etcd@p.iam.gserviceaccount.com"}}),),
        ({"serviceAccount": {}}, {"serviceAccount.email": "123-compute@developer.gserviceaccount.com"}),
    ),
)
