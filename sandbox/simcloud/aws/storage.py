"""Buckets of Amazon S3."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from sandbox.simcloud.aws.common import by_name, refused, tags
from sandbox.simcloud.aws.documents import actions_of, document, principals, statements, texts
from sandbox.simcloud.aws.keys import KEY_OF
from sandbox.simcloud.aws.s3_actions import act_on_resources
from sandbox.simcloud.aws.tokens import BUCKET, BUCKET_OBJECT, BUCKET_POLICY
from sandbox.simcloud.identifiers import digest
from sandbox.simcloud.rules import Call, Naming, Reason, Reference, ResourceType, Rule, Saying
from sandbox.simcloud.values import Properties, at
from sandbox.simcloud.world import Record

_VERSIONING = "aws:s3/bucketVersioning:BucketVersioning"
_LOCK = "aws:s3/bucketObjectLockConfiguration:BucketObjectLockConfiguration"
_ACCESS = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
# "General purpose bucket naming rules".
_NAME = re.compile(
    r"(?!xn--|sthree-|amzn-s3-demo-|\d+\.\d+\.\d+\.\d+$)(?!.*\.\.)(?!.*(-s3alias|--ol-s3|\.mrap|--x-s3|--table-s3)$)[a-z0-9][a-z0-9.-]+[a-z0-9]"
)
# "Amazon S3 bucket policies": 20 KB.
_POLICY_BYTES = 20480
_ACTIONS = (
    *("expiration", "transitions", "noncurrentVersionExpiration", "noncurrentVersionTransitions"),
    "abortIncompleteMultipartUpload",
)


def _outputs(call: Call) -> Properties:
    name = call.name
    return {
        "arn": f"arn:aws:s3:::{name}",
        "bucketRegion": call.region,
        "bucketDomainName": f"{name}.s3.amazonaws.com",
        "bucketRegionalDomainName": f"{name}.s3.{call.region}.amazonaws.com",
        "hostedZoneId": f"Z{digest('s3' + call.region)[:13].upper()}",
        **tags(call),
    }


def of_bucket(call: Call, token: str, bucket: str) -> Record | None:
    """Return the one resource of a type that configures a bucket."""
    return call.world.get(token, bucket)


def _emptied(call: Call) -> None:
    """Delete a bucket's objects only if forceDestroy is set, and refuse when a lock protects them."""
    objects = [record for record in call.world.of_type(BUCKET_OBJECT) if (BUCKET, call.id) in record.targets]
    if not objects:
        return
    if not call.inputs.get("forceDestroy"):
        raise refused(
            "BucketNotEmpty",
            "The bucket you tried to delete is not empty. You must delete all versions in the bucket.",
            f"{call.id} has {len(objects)} objects; empty it, or set forceDestroy and update before deleting",
        )
    lock = of_bucket(call, _LOCK, call.id)
    if lock is not None and "COMPLIANCE" in at(lock.inputs, "rule.defaultRetention.mode"):
        raise refused(
            "AccessDenied",
            "Access Denied because object protected by object lock.",
            f"the {len(objects)} objects of {call.id} cannot be deleted before their retention ends",
        )
    for record in objects:
        call.world.remove(*record.key)


def _versioned(call: Call) -> bool:
    bucket, state = call.target("bucket"), of_bucket(call, _VERSIONING, call.text("bucket"))
    own = list(at(bucket.inputs, "versioning.enabled")) if bucket else []
    is_on = state is not None and "Enabled" in at(state.inputs, "versioningConfiguration.status")
    return is_on or True in own or bool(bucket and bucket.inputs.get("objectLockEnabled"))


def _lock_is_possible(call: Call) -> None:
    if not _versioned(call):
        raise refused(
            "InvalidBucketState",
            "Versioning must be 'Enabled' on the bucket to apply a Object Lock configuration",
            "make the lock depend on the bucket's versioning, or set objectLockEnabled on the bucket",
        )
    retention: dict[str, Any] = next(at(call.inputs, "rule.defaultRetention"), {})
    if retention and bool(retention.get("days")) == bool(retention.get("years")):
        raise refused(
            "MalformedXML",
            "The XML you provided was not well-formed or did not validate against our published schema",
            "set either days or years of rule.defaultRetention, above 0",
        )


def _not_suspended(call: Call) -> None:
    is_on = "Enabled" in at(call.inputs, "versioningConfiguration.status")
    bucket = call.target("bucket")
    locked = of_bucket(call, _LOCK, call.text("bucket")) or (bucket and bucket.inputs.get("objectLockEnabled"))
    if locked and not is_on:
        raise refused(
            "InvalidBucketState",
            "An Object Lock configuration is present on this bucket, so the versioning state cannot be changed.",
            "leave versioningConfiguration.status at Enabled",
        )


def _lifecycle(call: Call) -> None:
    rules = list(at(call.inputs, "rules[]"))
    ids = [str(rule.get("id")) for rule in rules]
    if len(set(ids)) < len(ids):
        raise refused(
            "InvalidArgument",
            "Rule ID must be unique. Found same ID for more than one rule",
            f"rules: {', '.join(sorted(ids))}",
        )
    for rule in rules:
        if not any(rule.get(name) for name in _ACTIONS):
            raise refused(
                "InvalidRequest",
                "At least one action needs to be specified in a rule",
                f"rule {rule.get('id')} has none of {', '.join(_ACTIONS)}",
            )
        days = next(at(rule, "expiration.days"), None)
        for before in at(rule, "transitions[].days"):
            if days is not None and days <= before:
                raise refused(
                    "InvalidArgument",
                    "'Days' in the Expiration action for prefix '' must be greater than 'Days' in the Transition action",
                    f"rule {rule.get('id')}: {days:.0f} is not above {before:.0f}",
                )


def _is_public(statement: dict[str, Any]) -> bool:
    principal = statement.get("Principal")
    is_anyone = principal == "*" or (isinstance(principal, dict) and "*" in texts(principal.get("AWS")))
    return is_anyone and statement.get("Effect") == "Allow" and not statement.get("Condition")


def _policy(call: Call) -> None:
    text, bucket = call.text("policy"), call.text("bucket")
    policy = document(text, "policy", "MalformedPolicy")
    if len(text.encode()) > _POLICY_BYTES:
        raise refused(
            "PolicyTooLarge",
            f"Policies cannot be larger than {_POLICY_BYTES} bytes",
            f"this one has {len(text.encode())}",
        )
    for statement in statements(policy):
        principals(statement, "policy", "MalformedPolicy")
        actions_of(statement, "s3", "policy", "MalformedPolicy")
        for resource in texts(statement.get("Resource")):
            if resource.split("/")[0] != f"arn:aws:s3:::{bucket}":
                raise refused(
                    "MalformedPolicy",
                    "Policy has invalid resource",
                    f"{resource} is not arn:aws:s3:::{bucket} or below it",
                )
        act_on_resources(statement)
        block = of_bucket(call, _ACCESS, bucket)
        if _is_public(statement) and block is not None and block.inputs.get("blockPublicPolicy"):
            raise refused(
                "AccessDenied",
                "Access Denied because public policies are blocked by the BlockPublicPolicy block public access setting.",
                "name a principal, or add a condition",
            )


_bucket = ResourceType(
    token=BUCKET,
    noun="bucket",
    code="NoSuchBucket",
    identify=by_name,
    outputs=_outputs,
    where=("region",),
    naming=Naming(
        "bucket",
        _NAME,
        63,
        "it must have 3 to 63 of a-z, 0-9, dots and hyphens, start and end with a letter or digit, not be an IP address, and have no prefix or suffix that AWS keeps",
    ),
    replace_on=("bucket", "bucketPrefix", "bucketNamespace", "objectLockEnabled"),
    refuse_deletion=(_emptied,),
    says={
        Reason.TAKEN: Saying(
            "api error BucketAlreadyOwnedByYou: Your previous request to create the named bucket succeeded and you "
            "already own it.",
            "choose a name other than {name}, import the existing one, or delete it",
        ),
        Reason.MISSING: Saying(
            "api error NoSuchBucket: The specified bucket does not exist", "{path} names {value}, which does not exist"
        ),
    },
)


def _of_bucket(
    token: str,
    *refuse: Rule,
    references: Iterable[Reference] = (),
    replace_on: tuple[str, ...] = ("bucket", "expectedBucketOwner"),
) -> ResourceType:
    """Return a type that configures a bucket: it has the bucket's ID, and S3 overwrites the previous configuration."""
    return ResourceType(
        token=token,
        noun="bucket configuration",
        code="NoSuchBucket",
        identify=lambda call: call.text("bucket"),
        where=("region",),
        replace_on=replace_on,
        references=(Reference("bucket", (BUCKET,), holds=False), *references),
        refuse=refuse,
        upserts=True,
    )


_object = ResourceType(
    token=BUCKET_OBJECT,
    noun="object",
    code="NoSuchKey",
    identify=lambda call: f"{call.text('bucket')}/{call.text('key')}",
    outputs=lambda call: {"arn": f"arn:aws:s3:::{call.id}", **tags(call)},
    where=("region",),
    replace_on=("bucket", "key"),
    references=(Reference("bucket", (BUCKET,), holds=False),),
    upserts=True,
)

TYPES = (
    _bucket,
    _of_bucket(_VERSIONING, _not_suspended),
    _of_bucket(_ACCESS, replace_on=("bucket",)),
    _of_bucket(
        "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
        references=[
            Reference("rules[].applyServerSideEncryptionByDefault.kmsMasterKeyId", KEY_OF, holds=False),
        ],
    ),
    _of_bucket("aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration", _lifecycle),
    _of_bucket(_LOCK, _lock_is_possible, replace_on=("bucket", "expectedBucketOwner", "objectLockEnabled")),
    _of_bucket(BUCKET_POLICY, _policy, replace_on=("bucket",)),
    _object,
)
