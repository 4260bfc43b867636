"""What the autoscaler must be allowed to do in each cloud, and no more: texts that the clouds' own programs take.

They stand in docs/ for a cluster of the name CLUSTER, which is to be replaced. Actions by "Actions, resources, and condition
keys for Amazon EC2 Auto Scaling", "Azure permissions for Compute" and "Compute Engine IAM roles and permissions".
"""

from __future__ import annotations

import json

AWS_SEES = ("autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeScalingActivities")
"""AWS knows no resource of these."""
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
    """Name of a file in docs/ -> its text."""
    return {
        "aws-policy-autoscaler.json": _aws(cluster),
        "azure-role-autoscaler.json": _azure(cluster),
        "gcp-role-autoscaler.yaml": _gcp(),
    }


def _aws(cluster: str) -> str:
    """Groups of pools of this cluster alone, by the tags that its stack gives them."""
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
    """Azure's roles know no tags: the group of resources that holds the cluster's pools and nothing else is the fence."""
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
        "# What the autoscaler does in a project, and no more:\n"
        "#   gcloud iam roles create menagerieAutoscaler --project=PROJECT --file=docs/gcp-role-autoscaler.yaml\n"
        "title: Menagerie autoscaler\n"
        "description: Grows and shrinks the groups of clusters' pools.\n"
        "stage: GA\n"
        "includedPermissions:\n"
    ) + "".join(f"  - {permission}\n" for permission in GCP)
