"""Stores, buckets, their policies, and DNS zones, closed and open."""

from __future__ import annotations

import json
from typing import Any

from tests.policies.support import Case, resource


def policy(**more: Any) -> str:
    statement = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::b/own/*", **more}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


_CLOSED = {"publicNetworkAccess": "Disabled"}

STORES = (
    Case(
        "stores-closed",
        (resource("azure-native:storage:StorageAccount", _CLOSED),),
        ({"publicNetworkAccess": "Enabled"}, {"publicNetworkAccess": None}),
    ),
    Case(
        "stores-closed",
        (resource("azure-native:storage:StorageAccount", {"networkRuleSet": {"defaultAction": "Deny"}}),),
        ({"networkRuleSet.defaultAction": "Allow"},),
    ),
    Case(
        "stores-closed",
        (resource("azure-native:keyvault:Vault", {"properties": _CLOSED}),),
        ({"properties.publicNetworkAccess": "enabled"},),
    ),
    Case(
        "stores-closed",
        (resource("azure-native:compute:Disk", {"networkAccessPolicy": "DenyAll"}),),
        ({"networkAccessPolicy": "AllowAll"}, {"networkAccessPolicy": None}),
    ),
    Case(
        "buckets-private",
        (
            resource("aws:s3/bucket:Bucket", outputs={"bucket": "b"}),
            resource(
                "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
                {
                    "bucket": "b",
                    "blockPublicAcls": True,
                    "blockPublicPolicy": True,
                    "ignorePublicAcls": True,
                    "restrictPublicBuckets": True,
                },
            ),
        ),
        (
            {"bucket": "c"},
            *({flag: False} for flag in ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls")),
            {"restrictPublicBuckets": None},
        ),
    ),
    Case(
        "audit-logs-locked",
        (
            resource("aws:s3/bucket:Bucket", {"tags": {"role": "audit"}}, outputs={"bucket": "b"}),
            resource(
                "aws:s3/bucketObjectLockConfiguration:BucketObjectLockConfiguration",
                {"bucket": "b", "rule": {"defaultRetention": {"mode": "GOVERNANCE", "days": 30}}},
            ),
        ),
        ({"bucket": "c"}, {"rule.defaultRetention.days": 29}, {"rule": None}),
    ),
    Case(
        "audit-logs-locked",
        (
            resource("azure-native:storage:BlobContainer", {"containerName": "audit-logs"}),
            resource(
                "azure-native:storage:BlobContainerImmutabilityPolicy",
                {"containerName": "audit-logs", "immutabilityPeriodSinceCreationInDays": 30},
            ),
        ),
        ({"containerName": "backups"}, {"immutabilityPeriodSinceCreationInDays": 29}),
    ),
    Case(
        "audit-logs-locked",
        (
            resource(
                "gcp:storage/bucket:Bucket",
                {"labels": {"role": "audit"}, "retentionPolicy": {"retentionPeriod": 30 * 86_400}},
            ),
        ),
        ({"retentionPolicy": None}, {"retentionPolicy.retentionPeriod": 30 * 86_400 - 1}),
    ),
    Case("buckets-private", (resource("aws:s3/bucketAcl:BucketAcl", {"acl": "private"}),), ({"acl": "public-read"},)),
    Case(
        "buckets-private",
        (
            resource(
                "gcp:storage/bucket:Bucket", {"publicAccessPrevention": "enforced", "uniformBucketLevelAccess": True}
            ),
        ),
        (
            {"publicAccessPrevention": "inherited"},
            {"publicAccessPrevention": None},
            {"uniformBucketLevelAccess": False},
        ),
    ),
    Case(
        "buckets-private",
        (resource("azure-native:storage:StorageAccount", {"allowBlobPublicAccess": False}),),
        ({"allowBlobPublicAccess": True}, {"allowBlobPublicAccess": None}),
    ),
    Case("buckets-private", (resource("azure-native:storage:BlobContainer"),), ({"publicAccess": "Container"},)),
    Case(
        "nobody-unnamed",
        (resource("aws:s3/bucketPolicy:BucketPolicy", {"policy": policy(Principal={"AWS": "arn:aws:iam::1:role/r"})}),),
        (
            {"policy": policy(Principal="*")},
            {"policy": policy(Principal={"AWS": ["*"]})},
            {"policy": policy(NotPrincipal={"AWS": "x"})},
        ),
    ),
    Case(
        "nobody-unnamed",
        (resource("aws:kms/key:Key", {"policy": policy(Principal="*", Effect="Deny")}),),
        ({"policy": policy(Principal="*")},),
    ),
    Case(
        "nobody-unnamed",
        (
            resource(
                "gcp:storage/bucketIAMMember:BucketIAMMember",
                {"member": "serviceAccount:a@p", "role": "roles/storage.objectViewer"},
            ),
        ),
        ({"member": "allUsers"}, {"member": "allAuthenticatedUsers"}),
    ),
    Case(
        "nobody-unnamed",
        (resource("gcp:kms/cryptoKeyIAMBinding:CryptoKeyIAMBinding", {"members": ["serviceAccount:a@p"]}),),
        ({"members": ["allUsers"]},),
    ),
    Case(
        "names-private",
        (resource("aws:route53/zone:Zone", {"vpcs": [{"vpcId": "v"}]}),),
        ({"vpcs": None}, {"vpcs": []}),
    ),
    Case(
        "names-private",
        (resource("gcp:dns/managedZone:ManagedZone", {"visibility": "private"}),),
        ({"visibility": "public"}, {"visibility": None}),
    ),
)
