"""Secrets Manager as the store: what hosts fetch at boot, and the identities by which they may."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pulumi
import pulumi_aws as aws

from cluster.spec import Cluster
from network.addresses import AddressPlan
from stacks import payloads
from stacks.aws.network import Network
from stacks.aws.store import AwsStore
from stacks.aws.tags import tags
from stacks.pki import Pki
from userdata import Payload

API_SERVERS = "api-servers"
"""The one identity of all API servers, which are made from one template."""

Readers = Mapping[str, Mapping[str, pulumi.Input[str]]]
"""`API_SERVERS` or the name of an etcd host -> what it may read, by name."""

_HOSTS_OF_AWS = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}
_VERSION = "2012-10-17"


class Secrets(pulumi.ComponentResource):
    """Every secret and payload once, under a key of the cluster's own; for each host a profile that reads its own.

    readers: see `readable`.
    """

    key: aws.kms.Key
    profiles: dict[str, aws.iam.InstanceProfile]
    """`API_SERVERS` or the name of an etcd host -> what its instances carry."""

    def __init__(
        self,
        cluster: Cluster,
        network: Network,
        readers: Readers,
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__("menagerie:aws:Secrets", f"{cluster.name}-secrets", None, opts)
        self._cluster = cluster
        self._network = network
        self._own = pulumi.ResourceOptions(parent=self)
        self.key = self._key()
        values = {name: value for own in readers.values() for name, value in own.items()}
        stored = {name: self._stored(name, value) for name, value in values.items()}
        self.profiles = {
            reader: self._profile(reader, [stored[name] for name in own]) for reader, own in readers.items()
        }
        self.register_outputs({})

    def _key(self) -> aws.kms.Key:
        """Without it no host boots; AWS deletes keys 7 to 30 days after it was asked to."""
        return aws.kms.Key(
            f"{self._cluster.name}-secrets",
            description=f"{self._cluster.name}: secrets of its hosts",
            enable_key_rotation=True,
            deletion_window_in_days=30,
            tags=tags(self._cluster, "secrets-key"),
            opts=pulumi.ResourceOptions(parent=self, protect=True),
        )

    def _stored(self, name: str, value: pulumi.Input[str]) -> aws.secretsmanager.Secret:
        secret = aws.secretsmanager.Secret(
            f"{self._cluster.name}-{name}",
            name=AwsStore(self._cluster.name).stored_name(name),
            kms_key_id=self.key.arn,
            # The stack's state holds what this is a copy of; a name that waits for its deletion cannot be used again.
            recovery_window_in_days=0,
            tags=tags(self._cluster, "secret", name),
            opts=self._own,
        )
        aws.secretsmanager.SecretVersion(
            f"{self._cluster.name}-{name}",
            secret_id=secret.id,
            secret_string=pulumi.Output.secret(value),
            opts=self._own,
        )
        return secret

    def _profile(self, reader: str, own: list[aws.secretsmanager.Secret]) -> aws.iam.InstanceProfile:
        name, tagged = f"{self._cluster.name}-{reader}", tags(self._cluster, reader)
        role = aws.iam.Role(name, assume_role_policy=_policy(_HOSTS_OF_AWS), tags=tagged, opts=self._own)
        arns = pulumi.Output.all(*[secret.arn for secret in own])
        region = self._cluster.spec.control_plane.region
        policy = pulumi.Output.all(arns=arns, key=self.key.arn, vpc=self._network.vpc.id).apply(
            lambda known: may_read(known["arns"], known["key"], known["vpc"], region)
        )
        aws.iam.RolePolicy(name, role=role.id, policy=policy, opts=self._own)
        return aws.iam.InstanceProfile(name, role=role.id, tags=tagged, opts=self._own)


def readable(cluster: Cluster, plan: AddressPlan, pki: Pki, by_host: Mapping[str, Payload]) -> Readers:
    """What each identity may read, where all API servers have one."""
    api_servers = {host.name for host in plan.api_servers}
    own = payloads.readable(cluster, plan, pki, by_host)
    return {API_SERVERS if host in api_servers else host: values for host, values in own.items()}


def may_read(arns: list[str], key: str, vpc: str, region: str) -> str:
    """A policy: these secrets and no others, and only from inside the VPC.

    Decryption is asked for by Secrets Manager, in the host's name and not from the VPC.
    """
    read = {
        "Effect": "Allow",
        "Action": "secretsmanager:GetSecretValue",
        "Resource": sorted(arns),
        "Condition": {"StringEquals": {"aws:SourceVpc": vpc}},
    }
    decrypt = {
        "Effect": "Allow",
        "Action": "kms:Decrypt",
        "Resource": key,
        "Condition": {"StringEquals": {"kms:ViaService": f"secretsmanager.{region}.amazonaws.com"}},
    }
    return _policy(read, decrypt)


def _policy(*statements: Mapping[str, object]) -> str:
    return json.dumps({"Version": _VERSION, "Statement": statements})
