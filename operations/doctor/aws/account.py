"""Who asks, what that identity may do, and what the account must have: policies, service-linked roles, free names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from clients.clouds import CallError
from clients.clouds.aws_reader import AwsReader
from cluster.spec import Cluster
from cluster.storage import has_file
from cluster.tags import of_cluster
from operations.doctor.model import Answer, Once, Question, ok, unknown, wrong
from stacks.aws import permissions, policies
from stacks.aws.launch import PARAMETER
from stacks.aws.storage import ARTEFACTS, AUDIT, BACKUPS, LOGS
from stacks.aws.tags import bucket

_SHOWN = 6
"""Denied actions that a row names. The command that mends them covers all."""
_ROOT = ":root"
SERVICE_ROLES: Mapping[str, str] = {
    "autoscaling.amazonaws.com": "AWSServiceRoleForAutoScaling",
    "elasticloadbalancing.amazonaws.com": "AWSServiceRoleForElasticLoadBalancing",
    "ec2-nat-gateway.amazonaws.com": "AWSServiceRoleForNATGateway",
    "elasticfilesystem.amazonaws.com": "AWSServiceRoleForAmazonElasticFileSystem",
    "spot.amazonaws.com": "AWSServiceRoleForEC2Spot",
    "s2svpn.amazonaws.com": "AWSServiceRoleForVPCS2SVPN",
}
"""Service -> its service-linked role ("AWS services that work with IAM", and each service's page on the role)."""


class Account:
    """The identity that asks, and its account. Both are requested once."""

    def __init__(self, cluster: Cluster, reader: AwsReader) -> None:
        self.cluster, self.reader = cluster, reader
        self._caller = Once(lambda: reader.call("sts", "get_caller_identity"))

    @property
    def arn(self) -> str:
        return str(self._caller()["Arn"])

    @property
    def id(self) -> str:
        return str(self._caller()["Account"])

    @property
    def partition(self) -> str:
        return self.arn.split(":")[1]

    def principal(self) -> str:
        """Return the ARN that a simulation takes: of the user, or of the role behind a session."""
        kind, _, rest = self.arn.split(":")[5].partition("/")
        if kind != "assumed-role":
            return self.arn
        return str(self.reader.call("iam", "get_role", RoleName=rest.split("/")[0])["Role"]["Arn"])


def account_questions(account: Account) -> list[Question]:
    spec = account.cluster.spec
    services = [
        "autoscaling.amazonaws.com",
        "elasticloadbalancing.amazonaws.com",
        "ec2-nat-gateway.amazonaws.com",
        *(["elasticfilesystem.amazonaws.com"] if has_file(spec) else []),
        *(["spot.amazonaws.com"] if any(pool.spot for pool in spec.region_pools.values()) else []),
        *(["s2svpn.amazonaws.com"] if _certificates(account.cluster) else []),
    ]
    return [
        Question("account", "identity", lambda: _who(account), ("sts:GetCallerIdentity",)),
        Question(
            "account",
            "rights",
            lambda: _rights(account),
            ("iam:SimulatePrincipalPolicy", "iam:GetRole"),
            ("iam:SimulatePrincipalPolicy", "iam:GetRole"),
        ),
        Question(
            "account",
            "hosts' policy",
            lambda: _boundary(account),
            ("iam:GetPolicy", "iam:GetPolicyVersion"),
            ("iam:GetPolicy", "iam:GetPolicyVersion"),
        ),
        Question(
            "registrations",
            "service-linked roles",
            lambda: (_service_role(account, service) for service in services),
            ("iam:GetRole",),
            ("iam:GetRole",),
        ),
        Question("names", "buckets", lambda: _buckets(account), ("s3:HeadBucket",), ("s3:ListBucket",)),
        Question("names", "network", lambda: _network(account), ("ec2:DescribeVpcs",), ("ec2:DescribeVpcs",)),
    ]


def _who(account: Account) -> Iterator[Answer]:
    identity = f"{account.arn} in account {account.id}"
    if account.arn.endswith(_ROOT):
        yield wrong(f"{identity}: the root user, whom no policy limits", "aws configure sso")
    else:
        yield ok(identity)


def _rights(account: Account) -> Iterator[Answer]:
    if account.arn.endswith(_ROOT):
        yield unknown("the root user cannot be simulated")
        return
    principal = account.principal()
    statements = permissions.statements(_types(account.cluster))
    denied = [word for statement in statements for word in _denied(account, principal, statement)]
    total = sum(len(_listed(statement["Action"])) for statement in statements)
    if not denied:
        yield ok(f"{principal} may do all {total} actions; what resources' own policies deny is not simulated")
        return
    shown = ", ".join(denied[:_SHOWN]) + (f" and {len(denied) - _SHOWN} more" if len(denied) > _SHOWN else "")
    yield wrong(f"{len(denied)} of {total} actions denied: {shown}", *_attach(account, principal))


def _attach(account: Account, principal: str) -> list[str]:
    """Return the commands that create both policies and attach them to a user or a role."""
    kind, _, name = principal.split(":")[5].partition("/")
    name = name.rpartition("/")[2]
    commands = []
    for policy, file in (("menagerie-ec2", "aws-policy-ec2.json"), ("menagerie", "aws-policy.json")):
        arn = f"arn:{account.partition}:iam::{account.id}:policy/{policy}"
        commands.append(f"aws iam create-policy --policy-name {policy} --policy-document file://docs/{file}")
        commands.append(f"aws iam attach-{kind}-policy --{kind}-name {name} --policy-arn {arn}")
    return commands


def _denied(account: Account, principal: str, statement: Mapping[str, object]) -> Iterator[str]:
    """Yield the statement's actions that the principal may not do on resources with the cluster's names."""
    actions, arns = _listed(statement["Action"]), _arns(account, statement["Resource"])
    arguments: dict[str, Any] = {
        "PolicySourceArn": principal,
        "ActionNames": actions,
        "ContextEntries": _context(account, statement.get("Condition")),
        **({"ResourceArns": arns} if arns else {}),
    }
    allowed: set[str] = set()
    by_organisation: set[str] = set()
    marker: dict[str, str] = {}
    while True:
        page = account.reader.call("iam", "simulate_principal_policy", **arguments, **marker)
        for result in page["EvaluationResults"]:
            name = result["EvalActionName"]
            if result.get("OrganizationsDecisionDetail", {}).get("AllowedByOrganizations") is False:
                by_organisation.add(name)
            if "allowed" in (result["EvalDecision"], *_specific(result)):
                allowed.add(name)
        if not page.get("IsTruncated"):
            break
        marker = {"Marker": page["Marker"]}
    for action in actions:
        if action not in allowed:
            yield f"{action} (by the organisation)" if action in by_organisation else action


def _specific(result: Mapping[str, Any]) -> list[str]:
    return [each["EvalResourceDecision"] for each in result.get("ResourceSpecificResults", ())]


def _arns(account: Account, resource: object) -> list[str]:
    """Return a statement's resources with the names of this cluster; [] for all resources."""
    plane, name = account.cluster.spec.control_plane, account.cluster.name
    concrete = []
    for pattern in _listed(resource):
        if pattern == "*":
            return []
        service = pattern.split(":")[2]
        if service == "s3":
            use = pattern.split("-")[1]
            _, slash, path = pattern.partition("/")
            arn = f"arn:aws:s3:::{bucket(account.cluster, use, account.id)}{slash}{path.replace('*', 'any')}"
        elif service == "ssm":
            arn = f"arn:aws:ssm:{plane.region}::parameter{PARAMETER}"
        else:
            parts = pattern.split(":", 5)
            parts[3] = plane.region if parts[3] == "*" else parts[3]
            parts[4] = account.id
            arn = ":".join(parts).replace("/*", f"/{name}-any")
        concrete.append(arn.replace("arn:aws:", f"arn:{account.partition}:", 1))
    return concrete


def _context(account: Account, condition: object) -> list[dict[str, Any]]:
    """Return the values that a statement's conditions compare, as the stack's requests carry them."""
    keys = [item for tests in condition.values() for item in tests.items()] if isinstance(condition, dict) else []
    boundary = policies.boundary_arn(account.partition, account.id)
    values = {key: boundary if key == "iam:PermissionsBoundary" else str(value) for key, value in keys}
    return [
        {"ContextKeyName": key, "ContextKeyValues": [value], "ContextKeyType": "string"}
        for key, value in values.items()
    ]


def _types(cluster: Cluster) -> list[str]:
    """Return the types of resources that this cluster may need: not those of settings that its spec lacks."""
    spec = cluster.spec
    without: list[str] = []
    if not has_file(spec):
        without.append("aws:efs/")
    if not any(site.vpn for site in spec.sites.values()):
        without += ["aws:ec2/vpn", "aws:ec2/customerGateway"]
    if spec.control_plane.public is None:
        without.append("aws:ec2/eip")
    return [type_ for type_ in permissions.by_type() if not type_.startswith(tuple(without))]


def _certificates(cluster: Cluster) -> bool:
    vpns = [site.vpn for site in cluster.spec.sites.values() if site.vpn]
    return any(router.psk is None for vpn in vpns for router in vpn.routers.values())


def _boundary(account: Account) -> Iterator[Answer]:
    """The policy that bounds hosts' roles exists, and is the one of this release."""
    arn = policies.boundary_arn(account.partition, account.id)
    document = "--policy-document file://docs/aws-policy-boundary.json"
    try:
        version = account.reader.call("iam", "get_policy", PolicyArn=arn)["Policy"]["DefaultVersionId"]
    except CallError as error:
        if not error.missing:
            raise
        path, name = policies.PATH, policies.BOUNDARY
        yield wrong(f"there is no {arn}", f"aws iam create-policy --path {path} --policy-name {name} {document}")
        return
    held = account.reader.call("iam", "get_policy_version", PolicyArn=arn, VersionId=version)
    if _plain(held["PolicyVersion"]["Document"]) == json.loads(permissions.boundary()):
        yield ok(f"{arn} is as this release wants it")
    else:
        command = f"aws iam create-policy-version --policy-arn {arn} --set-as-default {document}"
        yield wrong(f"{arn} differs from docs/aws-policy-boundary.json", command)


def _plain(document: object) -> object:
    return json.loads(document) if isinstance(document, str) else document


def _service_role(account: Account, service: str) -> Answer:
    role = SERVICE_ROLES[service]
    try:
        account.reader.call("iam", "get_role", RoleName=role)
    except CallError as error:
        if not error.missing:
            raise
        return wrong(f"no {role}", f"aws iam create-service-linked-role --aws-service-name {service}", about=service)
    return ok(f"{role} exists", about=service)


def _buckets(account: Account) -> Iterator[Answer]:
    for use in (BACKUPS, AUDIT, LOGS, ARTEFACTS):
        name = bucket(account.cluster, use, account.id)
        try:
            account.reader.call("s3", "head_bucket", Bucket=name)
        except CallError as error:
            if error.missing:
                yield ok(f"{name} is free", about=use)
            elif error.refused:
                text = (
                    f"{name} is another account's, or this identity lacks s3:ListBucket, without which AWS does not say"
                )
                yield unknown(text, about=use)
            else:
                yield unknown(str(error), about=use)
            continue
        command = f"aws s3 rb s3://{name}  # refuses if anything is in it"
        yield wrong(f"{name} exists already: this cluster is built, or an earlier one left it", command, about=use)


def _network(account: Account) -> Iterator[Answer]:
    name = account.cluster.name
    filters = [{"Name": f"tag:{key}", "Values": [value]} for key, value in of_cluster(name).items()]
    vpcs = account.reader.call("ec2", "describe_vpcs", Filters=filters)["Vpcs"]
    if not vpcs:
        yield ok(f"no VPC has the tags of {name}")
        return
    ids = ", ".join(each["VpcId"] for each in vpcs)
    command = f"aws resourcegroupstaggingapi get-resources --tag-filters Key=cluster,Values={name}"
    yield wrong(f"{ids} has the tags of {name}: this cluster is built, or an earlier run left it", command)


def _listed(value: object) -> list[str]:
    return [value] if isinstance(value, str) else [str(item) for item in value] if isinstance(value, list) else []
