"""Resources inside and outside the region, with and without tags."""

from __future__ import annotations

import json

from tests.policies.support import Case, resource

PLACES = (
    Case(
        "one-region",
        (
            resource("pulumi:providers:aws", {"region": "us-east-1"}),
            resource("aws:ec2/vpc:Vpc", {"region": "us-east-1"}),
        ),
        ({"region": "eu-west-1"},),
    ),
    Case(
        "one-region",
        (resource("aws:ebs/volume:Volume", {"availabilityZone": "us-east-1b"}),),
        ({"availabilityZone": "us-east-2b"},),
    ),
    Case(
        "one-region",
        (resource("azure-native:keyvault:Vault", {"location": "East US 2"}),),
        ({"location": "eastus"}, {"location": "global"}),
    ),
    Case(
        "one-region",
        (resource("azure-native:privatedns:PrivateZone", {"location": "global"}),),
        ({"location": "westus"},),
    ),
    Case("one-region", (resource("gcp:compute/disk:Disk", {"zone": "us-central1-a"}),), ({"zone": "us-east1-b"},)),
    Case("one-region", (resource("gcp:storage/bucket:Bucket", {"location": "US-CENTRAL1"}),), ({"location": "US"},)),
    Case(
        "one-region",
        (
            resource(
                "gcp:secretmanager/secret:Secret",
                {"replication": {"userManaged": {"replicas": [{"location": "us-central1"}]}}},
            ),
        ),
        ({"replication.userManaged.replicas[].location": "us-east1"}, {"replication": {"auto": {}}}),
    ),
    Case("one-region", (resource("gcp:kms/keyRing:KeyRing", {"location": "us-central1"}),), ({"location": "global"},)),
)

_MARKS = {"menagerie": "true", "cluster": "lemur"}

TAGS = (
    Case(
        "tagged",
        (resource("aws:ec2/vpc:Vpc", {"tags": _MARKS}),),
        ({"tags": None}, {"tags.cluster": "horus"}, {"tags.menagerie": None}),
    ),
    Case(
        "tagged",
        (
            resource("aws:ec2/vpc:Vpc", {"tags": {"Name": "x"}}),
            resource("pulumi:providers:aws", {"defaultTags": json.dumps({"tags": _MARKS})}),
        ),
        ({"defaultTags": json.dumps({"tags": {"cluster": "lemur"}})}, {"defaultTags": None}),
    ),
    Case(
        "tagged",
        (
            resource(
                "aws:autoscaling/group:Group", {"tags": [{"key": key, "value": value} for key, value in _MARKS.items()]}
            ),
        ),
        ({"tags": []}, {"tags[].value": "no"}),
    ),
    Case(
        "tagged",
        (
            resource(
                "aws:ec2/launchTemplate:LaunchTemplate",
                {
                    "tags": _MARKS,
                    "tagSpecifications": [{"resourceType": kind, "tags": _MARKS} for kind in ("instance", "volume")],
                },
            ),
        ),
        (
            {"tagSpecifications": None},
            {"tagSpecifications[].resourceType": "network-interface"},
            {"tagSpecifications[].tags": {}},
        ),
    ),
    Case(
        "tagged", (resource("azure-native:keyvault:Vault", {"tags": _MARKS}),), ({"tags": None}, {"tags.cluster": None})
    ),
    Case("tagged", (resource("gcp:compute/disk:Disk", {"labels": _MARKS}),), ({"labels": None},)),
    Case(
        "tagged",
        (
            resource("gcp:compute/disk:Disk"),
            resource("pulumi:providers:gcp", {"defaultLabels": json.dumps(_MARKS)}),
        ),
        ({"defaultLabels": "{}"},),
    ),
    Case(
        "tagged",
        (
            resource(
                "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate",
                {"labels": _MARKS, "disks": [{"labels": _MARKS}]},
            ),
        ),
        ({"disks[].labels": None},),
    ),
)
