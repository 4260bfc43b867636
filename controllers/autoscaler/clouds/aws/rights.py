"""The least rights that the autoscaler needs in AWS.

Source of the actions: "Actions, resources, and condition keys for Amazon EC2 Auto Scaling".
"""

from __future__ import annotations

import json

from cluster.tags import of_cluster

FILE = "aws-policy-autoscaler.json"
SEES = ("autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeScalingActivities")
"""AWS can't limit these to a resource."""
ACTS = ("autoscaling:SetDesiredCapacity", "autoscaling:TerminateInstanceInAutoScalingGroup")


def document(cluster: str) -> str:
    """Return a policy. It limits the rights to groups of this cluster's pools, by the tags that its stack sets."""
    tags = {**of_cluster(cluster), "role": "pool"}
    statements: list[dict[str, object]] = [
        {"Sid": "See", "Effect": "Allow", "Action": list(SEES), "Resource": "*"},
        {
            "Sid": "Act",
            "Effect": "Allow",
            "Action": list(ACTS),
            "Resource": "arn:aws:autoscaling:*:*:autoScalingGroup:*:autoScalingGroupName/*",
            "Condition": {"StringEquals": {f"aws:ResourceTag/{key}": value for key, value in tags.items()}},
        },
    ]
    return json.dumps({"Version": "2012-10-17", "Statement": statements}, indent=2) + "\n"
