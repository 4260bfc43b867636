"""Identities may do what they need, on the resources they need it for, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cluster.spec import Cluster
from stacks.policies.model import Resource, Rule, Violation
from stacks.policies.stores import POLICIES, statements
from stacks.policies.values import at, first, is_hidden, of_types, text

GRANTS: Mapping[str, tuple[str, ...]] = {
    "aws:iam/groupPolicy:GroupPolicy": ("policy",),
    "aws:iam/policy:Policy": ("policy",),
    "aws:iam/role:Role": ("inlinePolicies[].policy",),
    "aws:iam/rolePolicy:RolePolicy": ("policy",),
    "aws:iam/userPolicy:UserPolicy": ("policy",),
}
"""Type -> properties with AWS policies that grant permissions."""

_BUILT_IN_OF_AWS: Mapping[str, tuple[str, ...]] = {
    "aws:iam/policyAttachment:PolicyAttachment": ("policyArn",),
    "aws:iam/role:Role": ("managedPolicyArns[]",),
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": ("policyArn",),
    "aws:iam/userPolicyAttachment:UserPolicyAttachment": ("policyArn",),
}
_ROOT = re.compile(r"arn:[\w-]+:iam::\d+:root")
""""Default key policy", AWS KMS: it leaves the decision to the account's policies; without it nobody could change a key
again."""
_FOR_PEOPLE = ("aws:iam/accessKey:AccessKey", "aws:iam/user:User", "gcp:serviceaccount/key:Key")

OBJECTS = re.compile(r"arn:[\w-]+:s3:::[^*?/]+/[^*?]*[^*?/]/\*")
"""Objects in a folder of a bucket: their names are not known when the policy is written, and S3 has no other way to
name them ("Policy resources for Amazon S3")."""

_TAG = re.compile(r"(aws|ec2):ResourceTag/cluster|aws:RequestTag/cluster", re.IGNORECASE)
"""Condition keys by which a policy names resources that are created while the cluster runs, such as volumes
("Controlling access to AWS resources using tags")."""

WITHOUT_RESOURCE = re.compile(
    r"ec2:Describe(?!\w*Attribute$)[A-Za-z]+|ecr:GetAuthorizationToken|autoscaling:Describe[A-Za-z]+"
)
"""Actions of AWS that cannot be restricted to resources ("Actions, resources, and condition keys", Service Authorization
Reference). DescribeInstanceAttribute and similar actions apply to one resource, and return its user data."""

_OF_DISKS = re.compile(
    r"Microsoft\.Compute/(disks/(read|write|delete)|diskEncryptionSets/read"
    r"|virtualMachineScaleSets/(read|virtualMachines/(read|write)))"
)

BROAD_OF_AZURE: Mapping[str, str] = {
    "8e3af657-a8ff-443c-a75c-2fe8c4bcb635": "Owner",
    "b24988ac-6180-42a0-ab88-20f7382dd24c": "Contributor",
    "acdd72a7-3385-48ef-bd42-f606fba81ae7": "Reader",
    "18d7d88d-d35e-4fb5-a5c3-7773c20a72d9": "User Access Administrator",
    "f58310d9-a9f6-439a-9e8d-f62e7b41a168": "Role Based Access Control Administrator",
    "00482a5a-887f-4fb3-b363-3b7fe8e74483": "Key Vault Administrator",
    "14b46e9e-c2b7-41b4-b07b-48a6ebf60603": "Key Vault Crypto Officer",
    "b86a8fe4-44ce-4948-aee5-eccb2c155cd7": "Key Vault Secrets Officer",
    "b7e6dc6d-f1e8-4753-8033-0f276bb0955b": "Storage Blob Data Owner",
    "17d1049b-9a84-46fb-8f53-869881c3d3ab": "Storage Account Contributor",
    "4d97b98b-1d4f-4787-a291-c67834d212e7": "Network Contributor",
    "9980e02c-c2be-4d73-94e8-173b1dc7cf3c": "Virtual Machine Contributor",
}
"""IDs of roles ("Azure built-in roles") that change or read far more than one resource -> their names."""

_OF_A_PROJECT = re.compile(r"gcp:(projects|folders|organizations)/i[aA][mM]\w*:\w+")
BROAD_OF_GOOGLE = re.compile(r"roles/(owner|editor|viewer|browser|\w+\.\w*[aA]dmin(\.v1)?|iam\.serviceAccount\w+)")
"""Basic roles, roles that administer a service, and roles that allow impersonation ("IAM basic and predefined roles
reference")."""
NARROW_OF_GOOGLE = re.compile(r"roles/(logging\.logWriter|monitoring\.metricWriter)")
"""Roles with few permissions that can only be granted on a project."""
_DEFAULT_ACCOUNT = re.compile(r"\d+-compute@developer\.gserviceaccount\.com")
_MACHINES_OF_GOOGLE = (
    "gcp:compute/instance:Instance",
    "gcp:compute/instanceTemplate:InstanceTemplate",
    "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate",
)


def _broken(rule: str, resource: Resource, what: str, way_out: str) -> Violation:
    return Violation(rule, resource, f"{resource.type} {resource.name} {what}", way_out)


def _wildcards(cluster: Cluster, resources: Sequence[Resource]) -> Iterator[Violation]:
    for resource in resources:
        for what in _allowed_widely(resource, cluster.name):
            yield _broken("no-wildcards", resource, f"allows {what}", "name each action and each resource")


def _allowed_widely(resource: Resource, cluster: str) -> Iterator[str]:
    for path in GRANTS.get(resource.type, ()):
        for policy in at(resource.inputs, path):
            for statement in statements(policy):
                yield from _wide(statement, cluster)
    if resource.type in POLICIES:
        for statement in statements(first(resource.inputs, POLICIES[resource.type])):
            yield from _all_of_a_service(statement)
    if resource.type == "azure-native:authorization:RoleDefinition":
        actions_by_kind = (at(resource.inputs, f"permissions[].{kind}[]") for kind in ("actions", "dataActions"))
        yield from (str(action) for actions in actions_by_kind for action in actions if "*" in str(action))


def _all_of_a_service(statement: Mapping[str, Any]) -> Iterator[str]:
    """Yield actions of a key or bucket policy that grant everything to anyone except the account that owns it."""
    principal = statement.get("Principal")
    principals = _listed(principal.get("AWS") if isinstance(principal, Mapping) else principal)
    if statement.get("Effect") == "Allow" and not (principals and all(_ROOT.fullmatch(name) for name in principals)):
        yield from (action for action in _listed(statement.get("Action")) if action.rpartition(":")[2] == "*")


def _wide(statement: Mapping[str, Any], cluster: str) -> Iterator[str]:
    """Yield where a statement of AWS allows more than named actions on named resources."""
    if statement.get("Effect") != "Allow":
        return
    yield from (f"all but {name}" for name in ("NotAction", "NotResource") if name in statement)
    actions, resources = _listed(statement.get("Action")), _listed(statement.get("Resource"))
    yield from (f"{action}" for action in actions if "*" in action or "?" in action)
    if actions and all(WITHOUT_RESOURCE.fullmatch(action) for action in actions):
        return
    if not any(_TAG.fullmatch(key) and value == cluster for key, value in _equal_to(statement)):
        yield from _unnamed(actions, resources)


def _equal_to(statement: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the pairs that a statement's condition requires to be equal."""
    condition = statement.get("Condition")
    pairs = condition.get("StringEquals") if isinstance(condition, Mapping) else None
    yield from pairs.items() if isinstance(pairs, Mapping) else ()


def _unnamed(actions: list[str], resources: list[str]) -> Iterator[str]:
    wide = (name for name in resources if ("*" in name or "?" in name) and not OBJECTS.fullmatch(name))
    yield from (f"{', '.join(actions)} on {name}" for name in wide)


def _listed(value: Any) -> list[str]:
    return [] if value is None else list(map(str, value if isinstance(value, list) else [value]))


def _broad(_: Cluster, resources: Sequence[Resource]) -> Iterator[Violation]:
    yield from _broad_of_aws(resources)
    yield from _broad_of_azure(resources)
    for resource in resources:
        role = text(resource.inputs, "role")
        if not resource.type.startswith("gcp:") or not role.startswith("roles/"):
            continue
        on_all = bool(_OF_A_PROJECT.fullmatch(resource.type)) and not NARROW_OF_GOOGLE.fullmatch(role)
        if on_all or BROAD_OF_GOOGLE.fullmatch(role):
            where = " on the whole project" if on_all else ""
            way = "grant a role on the one resource, or a custom role with the permissions that are used"
            yield _broken("no-broad-roles", resource, f"grants {role}{where}", way)


def _broad_of_aws(resources: Sequence[Resource]) -> Iterator[Violation]:
    way = "write a policy for the cluster"
    for resource in of_types(resources, _BUILT_IN_OF_AWS):
        for path in _BUILT_IN_OF_AWS[resource.type]:
            for arn in at(resource.inputs, path):
                if ":iam::aws:policy/" in str(arn):
                    yield _broken("no-broad-roles", resource, f"grants {arn}, which AWS may extend", way)


def _broad_of_azure(resources: Sequence[Resource]) -> Iterator[Violation]:
    for resource in of_types(resources, ("azure-native:authorization:RoleAssignment",)):
        role, scope = text(resource.inputs, "roleDefinitionId"), text(resource.inputs, "scope")
        if name := BROAD_OF_AZURE.get(role.rpartition("/")[2].lower()):
            way = "grant a role for this one purpose, or a custom role of the cluster"
            yield _broken("no-broad-roles", resource, f"grants {name}", way)
        # For a subscription, resource group or management group: only scopes of single resources contain a provider below it.
        below = scope.lower().partition("/resourcegroups/")[2]
        if scope and not is_hidden(scope) and "/providers/" not in below and not _makes_disks(role, below, resources):
            yield _broken("no-broad-roles", resource, f"applies to all of {scope}", "name the one resource in scope")


def _makes_disks(role: str, group: str, resources: Sequence[Resource]) -> bool:
    """Whether a role of the stack permits only creating disks for volumes and attaching them: such disks have no scope
    before they exist. group: the resource group in which it may."""
    for definition in of_types(resources, ("azure-native:authorization:RoleDefinition",)):
        actions = [str(action) for action in at(definition.inputs, "permissions[].actions[]") if not is_hidden(action)]
        id_ = first(definition.inputs, "roleDefinitionId")
        is_it = is_hidden(id_) or role.rpartition("/")[2] == str(id_)
        others = [action for action in at(definition.inputs, "permissions[].dataActions[]") if not is_hidden(action)]
        if is_it and group and not others:
            return all(_OF_DISKS.fullmatch(action) for action in actions)
    return False


def _own(_: Cluster, resources: Sequence[Resource]) -> Iterator[Violation]:
    for resource in of_types(resources, _FOR_PEOPLE):
        way = "use the machine's identity; it needs no key"
        yield _broken("own-identities", resource, "is a credential that does not expire", way)
    for machine in of_types(resources, _MACHINES_OF_GOOGLE):
        # "Service accounts", Compute Engine: without an email it is the project's default account, often an editor.
        for account in at(machine.inputs, "serviceAccount"):
            email = first(account, "email")
            if not email or _DEFAULT_ACCOUNT.fullmatch(str(email)):
                way = "name a service account of the stack in serviceAccount.email"
                yield _broken("own-identities", machine, "runs as the project's default service account", way)


RULES = (
    Rule(
        "no-wildcards",
        "Permissions name each action and each resource.",
        _wildcards,
        "Exceptions: objects in a folder of an AWS bucket, AWS resources that must carry the cluster's tag, and AWS "
        "actions that cannot be restricted to resources (ec2:Describe…). In a key or bucket policy, Resource is always that "
        "key or bucket, whatever it says.",
    ),
    Rule(
        "no-broad-roles",
        "No identity has a role on a whole account, subscription, resource group or project, or a built-in role of the "
        "cloud that permits far more than one thing.",
        _broad,
        "Clouds add permissions to their built-in roles. Two small ones of Google Cloud exist on projects only: "
        "logging.logWriter, monitoring.metricWriter.",
    ),
    Rule(
        "own-identities",
        "Machines have identities of the stack; there are no users and no keys that do not expire.",
        _own,
    ),
)
