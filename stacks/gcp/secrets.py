"""Secret Manager as the store: what hosts fetch at boot, and the identities by which they may."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi
import pulumi_gcp as gcp

import userdata
from cluster.files import JOIN_TOKEN
from cluster.spec import Cluster
from stacks.gcp.keys import Keys
from stacks.gcp.store import GcpStore
from stacks.gcp.tags import account_id, generated, labels, role_id
from stacks.payloads import API_SERVERS, WORKERS
from userdata import Payload

Stored = Mapping[str, Mapping[str, pulumi.Input[str]]]
"""Reader -> name -> value; see `stacks.payloads.stored`."""

_READ = "roles/secretmanager.secretAccessor"
_WRITE = ("secretmanager.versions.add", "secretmanager.versions.destroy")
"""Every version that is not destroyed is paid for, so the former one is."""


@dataclass(frozen=True)
class Identity:
    """As whom the hosts of a reader read. after: its rights, without which a host boots in vain."""

    cluster: str
    reader: str
    project: pulumi.Output[str]
    account: gcp.serviceaccount.Account
    after: list[pulumi.Resource] = field(default_factory=list)

    def startup_script(self, payload: Payload, hostname: str | None = None) -> pulumi.Output[str]:
        """For Google's guest agent: Debian's image for Google has no cloud-init."""
        return self.project.apply(
            lambda project: userdata.startup_script(payload, GcpStore(project, self.cluster, self.reader), hostname)
        )


class Secrets(pulumi.ComponentResource):
    """Every value once, in the cluster's region, under the cluster's key; for each reader an identity of its own."""

    identities: dict[str, Identity]
    """Reader -> as whom it reads."""

    def __init__(self, cluster: Cluster, keys: Keys, stored: Stored, opts: pulumi.ResourceOptions) -> None:
        super().__init__("menagerie:gcp:Secrets", f"{cluster.name}-secrets", None, opts)
        self._cluster = cluster
        self._keys = keys
        self._own = pulumi.ResourceOptions(parent=self)
        self.identities = {reader: self._identity(reader) for reader in stored}
        for reader, values in stored.items():
            for name, value in values.items():
                self._stored(reader, name, value)
        if WORKERS in stored:
            self._join_token()
        self.register_outputs({})

    def _identity(self, reader: str) -> Identity:
        account = gcp.serviceaccount.Account(
            generated(self._cluster, reader),
            account_id=account_id(self._cluster, reader),
            display_name=f"{self._cluster.name}: {reader}",
            opts=self._own,
        )
        return Identity(self._cluster.name, reader, self._keys.project, account)

    def _secret(self, name: str) -> gcp.secretmanager.Secret:
        encrypted = gcp.secretmanager.SecretReplicationUserManagedReplicaCustomerManagedEncryptionArgs(
            kms_key_name=self._keys.key.id
        )
        replica = gcp.secretmanager.SecretReplicationUserManagedReplicaArgs(
            location=self._cluster.spec.control_plane.region, customer_managed_encryption=encrypted
        )
        return gcp.secretmanager.Secret(
            generated(self._cluster, _logical(name)),
            secret_id=GcpStore("", self._cluster.name, "").stored_name(name),
            replication=gcp.secretmanager.SecretReplicationArgs(
                user_managed=gcp.secretmanager.SecretReplicationUserManagedArgs(replicas=[replica])
            ),
            labels=labels("secret"),
            # The stack's state holds what this is a copy of.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[self._keys.for_secrets], delete_before_replace=True),
        )

    def _stored(self, reader: str, name: str, value: pulumi.Input[str]) -> None:
        secret = self._secret(name)
        version = gcp.secretmanager.SecretVersion(
            generated(self._cluster, _logical(name)),
            secret=secret.id,
            secret_data=pulumi.Output.secret(value),
            opts=self._own,
        )
        self.identities[reader].after.append(version)
        self._grant(reader, name, secret, _READ)

    def _grant(self, reader: str, name: str, secret: gcp.secretmanager.Secret, role: pulumi.Input[str]) -> None:
        granted = gcp.secretmanager.SecretIamMember(
            generated(self._cluster, reader, _logical(name)),
            secret_id=secret.id,
            role=role,
            member=self.identities[reader].account.member,
            opts=self._own,
        )
        self.identities[reader].after.append(granted)

    def _join_token(self) -> None:
        """API servers write it, workers read it. Without a version, for the program destroys those that it replaces."""
        secret = self._secret(JOIN_TOKEN)
        writer = gcp.projects.IAMCustomRole(
            generated(self._cluster, "join-token-writer"),
            role_id=role_id(self._cluster, "join_token_writer"),
            title=f"{self._cluster.name}: join token writer"[:100],
            permissions=list(_WRITE),
            opts=self._own,
        )
        self._grant(API_SERVERS, JOIN_TOKEN, secret, writer.name)
        self._grant(WORKERS, JOIN_TOKEN, secret, _READ)


def _logical(name: str) -> str:
    """In the program, where a name becomes part of others."""
    return name.replace(".", "-")
