"""IAM, key and bucket policies, as texts. Pure: creates no resources."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

Statement = Mapping[str, object]

PATH = "/menagerie/"
"""Path of hosts' roles and their profiles: the identity that runs `up` has rights on no others."""
BOUNDARY = "menagerie-hosts"
"""The policy below that path that limits what any host's role may do. An administrator creates it once per account."""

_VERSION = "2012-10-17"
_LOG_DELIVERY = "delivery.logs.amazonaws.com"
_USE = ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"]


@dataclass(frozen=True)
class AddressedHost:
    """A machine with its own address, by which a policy distinguishes it from others with the same role."""

    name: str
    address: IPv4Address

    @property
    def sid(self) -> str:
        """Return the name for use in a statement's ID, which has only letters and digits."""
        return "".join(part.title() for part in self.name.split("-"))


def document(*statements: Statement) -> str:
    return json.dumps({"Version": _VERSION, "Statement": statements})


TRUST_OF_HOSTS = document(
    {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}
)


def boundary_arn(partition: str, account: str) -> str:
    return f"arn:{partition}:iam::{account}:policy{PATH}{BOUNDARY}"


def read_secrets(arns: Sequence[str], vpc: str, host: AddressedHost | None = None) -> Statement:
    """Permit reading these secrets and no others, only from inside the VPC. host: and only by that host."""
    return {
        "Sid": f"ReadSecrets{host.sid if host else ''}",
        "Effect": "Allow",
        "Action": "secretsmanager:GetSecretValue",
        "Resource": sorted(arns),
        "Condition": _inside(vpc, [host] if host else ()),
    }


def decrypt_secrets(key: str, region: str) -> Statement:
    """Permit decryption to Secrets Manager, which requests it in the host's name and not from the VPC."""
    return _use_key("Decrypt", ["kms:Decrypt"], key, f"secretsmanager.{region}")


def write_secret(arn: str, key: str, vpc: str, region: str) -> list[Statement]:
    """Permit writing a new value of one secret, from inside the VPC."""
    write = {
        "Sid": "WriteSecret",
        "Effect": "Allow",
        "Action": "secretsmanager:PutSecretValue",
        "Resource": arn,
        "Condition": {"StringEquals": {"aws:SourceVpc": vpc}},
    }
    return [write, _use_key("Encrypt", ["kms:GenerateDataKey"], key, f"secretsmanager.{region}")]


def keep_backups(
    bucket: str, folders: Mapping[str, Sequence[AddressedHost]], key: str, vpc: str, region: str
) -> list[Statement]:
    """Permit a restic repository in each folder to its hosts, from inside the VPC. bucket: its ARN.

    Deleting an object only hides it: its versions stay, and deleting those is another action, which nobody here has.
    Without ListBucket S3 answers "denied" for missing objects, where restic must learn that they are missing; GetObject
    and HeadBucket name no prefix. So a host that may list one folder also sees the names in the others, which are hashes.
    """
    statements: list[Statement] = []
    for folder, hosts in folders.items():
        inside, name = _inside(vpc, hosts), "".join(part.title() for part in folder.rpartition("/")[2].split("-"))
        actions = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]
        statements += [
            {
                "Sid": f"KeepBackups{name}",
                "Effect": "Allow",
                "Action": actions,
                "Resource": f"{bucket}/{folder}/*",
                "Condition": inside,
            },
            {
                "Sid": f"ListBackups{name}",
                "Effect": "Allow",
                "Action": "s3:ListBucket",
                "Resource": bucket,
                "Condition": {**inside, "StringLikeIfExists": {"s3:prefix": [f"{folder}/*"]}},
            },
        ]
    return [*statements, _use_key("EncryptBackups", ["kms:GenerateDataKey", "kms:Decrypt"], key, f"s3.{region}")]


def keep_audit_log(bucket: str, cluster: str, key: str, vpc: str, region: str) -> list[Statement]:
    """Permit new objects of a cluster, from inside the VPC, and nothing else: no reading, listing or deleting, and no
    overwriting ("Enforce conditional writes on Amazon S3 buckets"). bucket: its ARN."""
    put = {
        "Sid": "KeepAuditLog",
        "Effect": "Allow",
        "Action": "s3:PutObject",
        "Resource": f"{bucket}/{cluster}/*",
        "Condition": {**_inside(vpc, ()), "Null": {"s3:if-none-match": "false"}},
    }
    return [put, _use_key("EncryptAuditLog", ["kms:GenerateDataKey"], key, f"s3.{region}")]


def see_machines(vpc: str) -> Statement:
    """Permit describing all machines of the account, in all regions: describing actions support neither resources nor EC2's
    own conditions ("Actions, resources, and condition keys for Amazon EC2"). Only with credentials of a machine in the VPC,
    because requests to EC2 go over the internet."""
    return {
        "Sid": "SeeMachines",
        "Effect": "Allow",
        "Action": "ec2:DescribeInstances",
        "Resource": "*",
        "Condition": {"StringEquals": {"aws:Ec2InstanceSourceVpc": vpc}},
    }


def _inside(vpc: str, hosts: Sequence[AddressedHost]) -> dict[str, dict[str, object]]:
    """Return a condition: requested from inside the VPC, with credentials issued to one of these hosts ("AWS global condition
    context keys": the VPC and the primary private address of the instance that received them)."""
    if not hosts:
        return {"StringEquals": {"aws:SourceVpc": vpc}}
    return {
        "StringEquals": {"aws:SourceVpc": vpc, "aws:Ec2InstanceSourceVpc": vpc},
        "IpAddress": {"aws:Ec2InstanceSourcePrivateIPv4": [f"{host.address}/32" for host in hosts]},
    }


def _use_key(sid: str, actions: list[str], key: str, service: str) -> Statement:
    return {
        "Sid": sid,
        "Effect": "Allow",
        "Action": actions,
        "Resource": key,
        "Condition": {"StringEquals": {"kms:ViaService": f"{service}.amazonaws.com"}},
    }


def of_key(partition: str, account: str, launchers: Sequence[str]) -> str:
    """Leave decisions to the account's own policies, except for services that start machines and write logs on their own.

    launchers: names of service-linked roles. Sources: "Required AWS KMS key policy for use with encrypted volumes";
    "Publish flow logs to Amazon S3", key policy for use with SSE-KMS. All statements apply to this key only.
    """
    roles = [f"arn:{partition}:iam::{account}:role/aws-service-role/{name}" for name in launchers]
    return document(
        {
            "Sid": "Account",
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:{partition}:iam::{account}:root"},
            "Action": "kms:*",
            "Resource": "*",
        },
        {"Sid": "Launch", "Effect": "Allow", "Principal": {"AWS": roles}, "Action": _USE, "Resource": "*"},
        {
            "Sid": "Attach",
            "Effect": "Allow",
            "Principal": {"AWS": roles},
            "Action": "kms:CreateGrant",
            "Resource": "*",
            "Condition": {"Bool": {"kms:GrantIsForAWSResource": "true"}},
        },
        {
            "Sid": "Logs",
            "Effect": "Allow",
            "Principal": {"Service": _LOG_DELIVERY},
            "Action": _USE,
            "Resource": "*",
            "Condition": {"StringEquals": {"aws:SourceAccount": account}},
        },
    )


def of_bucket(bucket: str, *more: Statement) -> str:
    """Deny unencrypted requests to a bucket. bucket: its ARN."""
    in_clear = {
        "Sid": "NotInClear",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [bucket, f"{bucket}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    return document(in_clear, *more)


def write_logs(bucket: str, account: str, region: str) -> list[Statement]:
    """Permit flow logs of this account and region ("Publish flow logs to Amazon S3"). bucket: its ARN."""
    partition = bucket.split(":")[1]
    own: dict[str, dict[str, str]] = {
        "StringEquals": {"aws:SourceAccount": account},
        "ArnLike": {"aws:SourceArn": f"arn:{partition}:logs:{region}:{account}:*"},
    }
    principal = {"Service": _LOG_DELIVERY}
    kept = {**own, "StringEquals": {**own["StringEquals"], "s3:x-amz-acl": "bucket-owner-full-control"}}
    return [
        {
            "Sid": "WriteLogs",
            "Effect": "Allow",
            "Principal": principal,
            "Action": "s3:PutObject",
            "Resource": f"{bucket}/AWSLogs/{account}/*",
            "Condition": kept,
        },
        {
            "Sid": "CheckLogs",
            "Effect": "Allow",
            "Principal": principal,
            "Action": ["s3:GetBucketAcl", "s3:ListBucket"],
            "Resource": bucket,
            "Condition": own,
        },
    ]
