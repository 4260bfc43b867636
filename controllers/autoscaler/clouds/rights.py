"""The least rights that the autoscaler needs in each cloud, as documents for the clouds' own tools.

The copies in docs/ are for a cluster with the name CLUSTER, to be replaced. Sources of the actions: "Actions, resources, and
condition keys for Amazon EC2 Auto Scaling", "Azure permissions for Compute" and "Compute Engine IAM roles and permissions".
"""

from __future__ import annotations

import json

AWS_SEES = ("autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeScalingActivities")
"""AWS can't limit these to a resource."""
AWS_ACTS = ("autoscaling:SetDesiredCapacity", "autoscaling:TerminateInstanceInAutoScalingGroup")
AZURE = tuple(
    f"Microsoft.Compute/virtualMachineScaleSets/{what}"
    for what in (
        "read",
        "write",
        "delete/action",
        "instanceView/read",
        "virtualMachines/read",
        "virtualMachines/instanceView/read",
    )
)
GCP = (
    "compute.instanceGroupManagers.get",
    "compute.instanceGroupManagers.list",
    "compute.instanceGroupManagers.update",
    "compute.instanceTemplates.list",
)


def documents(cluster: str) -> dict[str, str]:
    """Return name of a file in docs/ -> its text."""
    return {
        "aws-policy-autoscaler.json": _aws(cluster),
        "azure-role-autoscaler.json": _azure(cluster),
        "gcp-role-autoscaler.yaml": _gcp(),
    }


def _aws(cluster: str) -> str:
    """Limit the rights to groups of this cluster's pools, by the tags that its stack sets."""
    tags = {"menagerie": "true", "cluster": cluster, "role": "pool"}
    statements: list[dict[str, object]] = [
        {"Sid": "See", "Effect": "Allow", "Action": list(AWS_SEES), "Resource": "*"},
        {
            "Sid": "Act",
            "Effect": "Allow",
            "Action": list(AWS_ACTS),
            "Resource": "arn:aws:autoscaling:*:*:autoScalingGroup:*:autoScalingGroupName/*",
            "Condition": {"StringEquals": {f"aws:ResourceTag/{key}": value for key, value in tags.items()}},
        },
    ]
    return json.dumps({"Version": "2012-10-17", "Statement": statements}, indent=2) + "\n"


def _azure(cluster: str) -> str:
    """Limit the role to the resource group that holds only the cluster's pools: Azure's roles can't use tags."""
    role = {
        "Name": f"Menagerie autoscaler of {cluster}",
        "IsCustom": True,
        "Description": "Grows and shrinks the scale sets of a cluster's pools.",
        "Actions": list(AZURE),
        "NotActions": [],
        "AssignableScopes": [f"/subscriptions/SUBSCRIPTION/resourceGroups/{cluster}_workers"],
    }
    return json.dumps(role, indent=2) + "\n"


def _gcp() -> str:
    return (
        "# Exactly the permissions that the autoscaler needs in a project:\n"
        "#   gcloud iam roles create menagerieAutoscaler --project=PROJECT --file=docs/gcp-role-autoscaler.yaml\n"
        "title: Menagerie autoscaler\n"
        "description: Grows and shrinks the groups of clusters' pools.\n"
        "stage: GA\n"
        "includedPermissions:\n"
    ) + "".join(f"  - {permission}\n" for permission in GCP)
