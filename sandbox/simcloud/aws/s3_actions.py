"""What S3's actions act on ("Actions, resources, and condition keys for Amazon S3"): the bucket, or objects in it."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Any

from sandbox.simcloud.aws.common import refused
from sandbox.simcloud.aws.documents import texts

_ON_OBJECTS = (
    *("AbortMultipartUpload", "BypassGovernanceRetention", "InitiateReplication", "ListMultipartUploadParts"),
    *("ObjectOwnerOverrideToBucketOwner", "ReplicateDelete", "ReplicateObject", "ReplicateTags", "RestoreObject"),
    *(f"Delete{what}" for what in ("Object", "ObjectTagging", "ObjectVersion", "ObjectVersionTagging")),
    *(f"Get{what}" for what in ("Object", "ObjectAcl", "ObjectAttributes", "ObjectLegalHold", "ObjectRetention")),
    *(f"Get{what}" for what in ("ObjectTagging", "ObjectTorrent", "ObjectVersion", "ObjectVersionAcl")),
    *(f"GetObjectVersion{what}" for what in ("Attributes", "ForReplication", "Tagging", "Torrent")),
    *(f"Put{what}" for what in ("Object", "ObjectAcl", "ObjectLegalHold", "ObjectRetention", "ObjectTagging")),
    *("PutObjectVersionAcl", "PutObjectVersionTagging"),
)
_SETTINGS = (
    *("AccelerateConfiguration", "AnalyticsConfiguration", "BucketAcl", "BucketCORS", "BucketLogging"),
    *("BucketNotification", "BucketObjectLockConfiguration", "BucketOwnershipControls", "BucketPolicy"),
    *("BucketPublicAccessBlock", "BucketRequestPayment", "BucketTagging", "BucketVersioning", "BucketWebsite"),
    *("EncryptionConfiguration", "IntelligentTieringConfiguration", "InventoryConfiguration"),
    *("LifecycleConfiguration", "MetricsConfiguration", "ReplicationConfiguration"),
)
_ON_BUCKETS = (
    *("CreateBucket", "DeleteBucket", "DeleteBucketPolicy", "DeleteBucketWebsite"),
    *("GetBucketLocation", "GetBucketPolicyStatus", "ListBucket", "ListBucketMultipartUploads", "ListBucketVersions"),
    *(f"{verb}{what}" for verb in ("Get", "Put") for what in _SETTINGS),
)
# The first words of all actions.
_VERB = re.compile(
    r"s3:(\*|abort|associate|bypass|create|delete|describe|dissociate|get|initiate|list|object|pause|put|replicate|restore"
    r"|submit|tag|untag|update).*"
)


def act_on_resources(statement: dict[str, Any]) -> None:
    """Refuse an action that acts on none of a statement's resources. What the tables do not have may act on both."""
    resources = texts(statement.get("Resource"))
    given = {True: any("/" in resource for resource in resources), False: any("/" not in text for text in resources)}
    for action in texts(statement.get("Action")):
        if "*" not in action and not _VERB.fullmatch(action.lower()):
            raise refused(
                "MalformedPolicy", "Policy has invalid action", f"policy: {action} is no action, such as s3:GetObject"
            )
        kinds = {True: _has(_ON_OBJECTS, action), False: _has(_ON_BUCKETS, action)}
        if resources and any(kinds.values()) and not any(kinds[kind] and given[kind] for kind in kinds):
            suited = "arn:aws:s3:::<bucket>/*" if kinds[True] else "arn:aws:s3:::<bucket>"
            raise refused(
                "MalformedPolicy",
                "Action does not apply to any resource(s) in statement",
                f"policy: {action} acts on {'objects' if kinds[True] else 'the bucket'}; add {suited}",
            )


def _has(actions: tuple[str, ...], pattern: str) -> bool:
    return any(fnmatchcase(f"s3:{action}".lower(), pattern.lower()) for action in actions)
