"""Secrets Manager as the store: what hosts fetch at boot, and the identities by which they may."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_aws as aws

from cluster.files import JOIN_TOKEN
from cluster.spec import Cluster
from etcd.members import settings
from network.addresses import ROLES, AddressPlan
from stacks.aws import policies
from stacks.aws.network import Network
from stacks.aws.storage import Storage
from stacks.aws.store import AwsStore
from stacks.aws.tags import named, tags
from stacks.payloads import API_SERVERS, WORKERS

Stored = Mapping[str, Mapping[str, pulumi.Input[str]]]
"""Reader -> name -> value; see `stacks.payloads.stored`."""


class Secrets(pulumi.ComponentResource):
    """Every value once, under the cluster's key; for each reader a profile that reads its own.

    The join token's value is no business of the stack's: API servers write it, workers read it.
    """

    profiles: dict[str, aws.iam.InstanceProfile]
    """Reader -> what its instances carry."""

    def __init__(
        self,
        cluster: Cluster,
        plan: AddressPlan,
        network: Network,
        storage: Storage,
        stored: Stored,
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__("menagerie:aws:Secrets", f"{cluster.name}-secrets", None, opts)
        self._cluster = cluster
        self._network = network
        self._storage = storage
        self._own = pulumi.ResourceOptions(parent=self)
        self._token = self._secret(JOIN_TOKEN) if WORKERS in stored else None
        self._keep_backups = with_backups(cluster, plan)
        self.profiles = {reader: self._profile(reader, values) for reader, values in stored.items()}
        self.register_outputs({})

    def _secret(self, name: str) -> aws.secretsmanager.Secret:
        return aws.secretsmanager.Secret(
            f"{self._cluster.name}-{name}",
            name=AwsStore(self._cluster.name, "").stored_name(name),
            kms_key_id=self._storage.key.arn,
            # The stack's state holds what this is a copy of; a name that waits for its deletion cannot be used again.
            recovery_window_in_days=0,
            tags=tags(self._cluster, "secret", name),
            opts=self._own,
        )

    def _stored(self, name: str, value: pulumi.Input[str]) -> aws.secretsmanager.Secret:
        secret = self._secret(name)
        aws.secretsmanager.SecretVersion(
            f"{self._cluster.name}-{name}",
            secret_id=secret.id,
            secret_string=pulumi.Output.secret(value),
            opts=self._own,
        )
        return secret

    def _profile(self, reader: str, values: Mapping[str, pulumi.Input[str]]) -> aws.iam.InstanceProfile:
        name, tagged = named(self._cluster, reader, "role"), tags(self._cluster, reader)
        readable = [self._stored(each, value).arn for each, value in values.items()]
        if reader == WORKERS and self._token:
            readable.append(self._token.arn)
        role = aws.iam.Role(name, assume_role_policy=policies.TRUST_OF_HOSTS, tags=tagged, opts=self._own)
        aws.iam.RolePolicy(name, role=role.id, policy=self._policy(reader, readable), opts=self._own)
        return aws.iam.InstanceProfile(name, role=role.name, tags=tagged, opts=self._own)

    def _policy(self, reader: str, readable: Sequence[pulumi.Output[str]]) -> pulumi.Output[str]:
        writes_token = reader == API_SERVERS and self._token
        return pulumi.Output.all(
            readable=pulumi.Output.all(*readable),
            key=self._storage.key.arn,
            vpc=self._network.vpc.id,
            token=self._token.arn if writes_token and self._token else None,
            backups=self._storage.backups.arn if reader in self._keep_backups else None,
        ).apply(self._document)

    def _document(self, known: Mapping[str, Any]) -> str:
        own = (known["key"], known["vpc"], self._cluster.spec.control_plane.region)
        statements = policies.read_secrets(known["readable"], *own)
        if known["token"]:
            statements += policies.write_secret(known["token"], *own)
        if known["backups"]:
            statements += policies.write_backups(f"{known['backups']}/backups/{self._cluster.name}", *own)
        return policies.document(*statements)


def with_backups(cluster: Cluster, plan: AddressPlan) -> frozenset[str]:
    """Hosts of an etcd that has backups."""
    return frozenset(host.name for role in ROLES if settings(cluster, role).backup for host in plan.etcd[role])
