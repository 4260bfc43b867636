"""Stored data can't be reached from the internet, and no permission is granted to everybody."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cluster.spec import Cluster
from stacks.policies.model import Resource, Rule, Violation
from stacks.policies.values import at, first, is_hidden, is_on, is_one_of, names_of, of_types, text

_BLOCKS = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
_BLOCK = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
_BUCKET_OF_AWS = "aws:s3/bucket:Bucket"
_BUCKET_OF_GOOGLE = "gcp:storage/bucket:Bucket"

CLOSED: Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "azure-native:compute:Disk": (
        ("publicNetworkAccess", ("disabled",)),
        ("networkAccessPolicy", ("denyall", "allowprivate")),
    ),
    "azure-native:keyvault:Vault": (
        ("properties.publicNetworkAccess", ("disabled",)),
        ("properties.networkAcls.defaultAction", ("deny",)),
    ),
    "azure-native:storage:StorageAccount": (
        ("publicNetworkAccess", ("disabled",)),
        ("networkRuleSet.defaultAction", ("deny",)),
    ),
}
"""Type -> properties with values that close it to the internet; one of them is enough."""

POLICIES: Mapping[str, str] = {
    "aws:iam/role:Role": "assumeRolePolicy",
    "aws:kms/key:Key": "policy",
    "aws:kms/keyPolicy:KeyPolicy": "policy",
    "aws:s3/bucketPolicy:BucketPolicy": "policy",
    "aws:secretsmanager/secret:Secret": "policy",
    "aws:secretsmanager/secretPolicy:SecretPolicy": "policy",
    "aws:sns/topicPolicy:TopicPolicy": "policy",
    "aws:sqs/queuePolicy:QueuePolicy": "policy",
}
"""Type -> its policy that grants access. A VPC endpoint's policy is not listed: it only restricts what others allow."""

_EVERYBODY = frozenset({"allusers", "allauthenticatedusers"})
"""Google's words; the second means everybody with an account of any kind."""
_PUBLIC_ACLS = ("public-read", "public-read-write", "authenticated-read")


def _broken(rule: str, resource: Resource, what: str, way_out: str) -> Violation:
    return Violation(rule, resource, f"{resource.type} {resource.name} {what}", way_out)


def _closed(_: Cluster, resources: Sequence[Resource]) -> Iterator[Violation]:
    for resource in of_types(resources, CLOSED):
        if not any(_is_set_to(resource, path, values) for path, values in CLOSED[resource.type]):
            path, values = CLOSED[resource.type][0]
            way = f"set {path} to {values[0].capitalize()} and create a private endpoint"
            yield _broken("stores-closed", resource, "can be reached from the internet", way)


def _is_set_to(resource: Resource, path: str, values: tuple[str, ...]) -> bool:
    value = first(resource.inputs, path)
    return is_hidden(value) or str(value).lower() in values


def _buckets(_: Cluster, resources: Sequence[Resource]) -> Iterator[Violation]:
    blocks = of_types(resources, (_BLOCK,))
    for bucket in of_types(resources, (_BUCKET_OF_AWS,)):
        own = [block for block in blocks if is_one_of(first(block.inputs, "bucket"), names_of(bucket))]
        if not any(all(_is_set(block, flag) for flag in _BLOCKS) for block in own):
            way = f"give it a BucketPublicAccessBlock with all of {', '.join(_BLOCKS)}"
            yield _broken("buckets-private", bucket, "could be made public", way)
    for bucket in of_types(resources, (_BUCKET_OF_GOOGLE,)):
        prevention = first(bucket.inputs, "publicAccessPrevention")
        if prevention != "enforced" and not is_hidden(prevention):
            way = "set publicAccessPrevention to enforced"
            yield _broken("buckets-private", bucket, "could be made public", way)
        if not _is_set(bucket, "uniformBucketLevelAccess"):
            way = "set uniformBucketLevelAccess to true"
            yield _broken("buckets-private", bucket, "has objects that could each be made public", way)
    for account in of_types(resources, ("azure-native:storage:StorageAccount",)):
        allowed = first(account.inputs, "allowBlobPublicAccess")
        if allowed is not False and not is_hidden(allowed):
            way = "set allowBlobPublicAccess to false"
            yield _broken("buckets-private", account, "could have public containers", way)
    yield from _opened(resources)


def _opened(resources: Sequence[Resource]) -> Iterator[Violation]:
    """Yield resources that themselves make a bucket public."""
    for resource in of_types(resources, ("azure-native:storage:BlobContainer",)):
        access = text(resource.inputs, "publicAccess")
        if access not in ("", "None") and not is_hidden(access):
            yield _broken("buckets-private", resource, f"is public ({access})", "omit publicAccess")
    for resource in of_types(resources, ("aws:s3/bucketAcl:BucketAcl", _BUCKET_OF_AWS)):
        if text(resource.inputs, "acl") in _PUBLIC_ACLS:
            yield _broken("buckets-private", resource, f"is {resource.inputs['acl']}", "omit acl")


def _is_set(resource: Resource, flag: str) -> bool:
    value = first(resource.inputs, flag)
    return is_on(value) or is_hidden(value)


def _everybody(_: Cluster, resources: Sequence[Resource]) -> Iterator[Violation]:
    for resource in resources:
        if resource.type.startswith("gcp:"):
            members = [*at(resource.inputs, "member"), *at(resource.inputs, "members[]")]
            for member in members:
                if str(member).lower() in _EVERYBODY:
                    way = "name the service account that needs it"
                    yield _broken("nobody-unnamed", resource, f"grants {resource.inputs.get('role')} to {member}", way)
    for resource in of_types(resources, POLICIES):
        for statement in statements(first(resource.inputs, POLICIES[resource.type])):
            if statement.get("Effect") == "Allow" and _is_anybody(statement) and not statement.get("Condition"):
                way = "name the principals, or restrict the statement with a Condition"
                yield _broken("nobody-unnamed", resource, f"allows anybody {_listed(statement.get('Action'))}", way)


def statements(policy: Any) -> list[Mapping[str, Any]]:
    """Return the statements of an AWS policy, given as text or parsed; none if it is hidden."""
    if isinstance(policy, str):
        try:
            policy = json.loads(policy)
        except ValueError:
            return []
    listed_ = policy.get("Statement") if isinstance(policy, Mapping) else None
    return [
        statement
        for statement in (listed_ if isinstance(listed_, list) else [listed_])
        if isinstance(statement, Mapping)
    ]


def _is_anybody(statement: Mapping[str, Any]) -> bool:
    principal = statement.get("Principal")
    principals = principal.get("AWS") if isinstance(principal, Mapping) else principal
    return "NotPrincipal" in statement or "*" in (principals if isinstance(principals, list) else [principals])


def _listed(actions: Any) -> str:
    return ", ".join(map(str, actions)) if isinstance(actions, list) else str(actions)


def _names(_: Cluster, resources: Sequence[Resource]) -> Iterator[Violation]:
    for zone in resources:
        way = ""
        if zone.type == "aws:route53/zone:Zone" and not zone.inputs.get("vpcs"):
            way = "give it vpcs"
        visible = text(zone.inputs, "visibility")
        if zone.type == "gcp:dns/managedZone:ManagedZone" and visible != "private" and not is_hidden(visible):
            way = "set visibility to private"
        if zone.type == "azure-native:dns:Zone":
            way = "use azure-native:privatedns:PrivateZone"
        if way:
            yield _broken("names-private", zone, "publishes its names to the whole internet", way)


RULES = (
    Rule(
        "stores-closed",
        "Key vaults, storage accounts and disks of Azure cannot be reached from the internet.",
        _closed,
        "Azure gives each of them a public endpoint by default. Endpoints of AWS and Google Cloud belong to the services; "
        "permissions close them (nobody-unnamed, no-wildcards).",
    ),
    Rule("buckets-private", "No bucket, container or object is public, and none can be made public.", _buckets),
    Rule(
        "nobody-unnamed",
        "No permission is granted to everybody, or to everybody with an account in the cloud.",
        _everybody,
    ),
    Rule("names-private", "DNS zones are visible only inside the cluster's network.", _names),
)
