"""Secret Manager as the store: what hosts fetch at boot, and the identities that may fetch it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi
import pulumi_gcp as gcp

from cluster.files import JOIN_TOKEN
from cluster.spec import Cluster
from components import userdata
from components.userdata import Payload
from stacks.cloud_store import API_SERVERS, WORKERS, bundle_name
from stacks.gcp import readers
from stacks.gcp.keys import Keys
from stacks.gcp.store import GcpStore
from stacks.gcp.tags import account_id, generated, labels

Stored = Mapping[str, pulumi.Input[str]]
"""Reader -> its bundle."""

_READ = "roles/secretmanager.secretAccessor"
_WRITE = "roles/secretmanager.secretVersionManager"
"""To add and destroy versions, without reading any: undestroyed versions are billed, so the former one is destroyed."""


@dataclass(frozen=True)
class Identity:
    """The identity with which hosts read a reader's secrets. after: its permissions; without them a host can't boot."""

    cluster: str
    reader: str
    project: pulumi.Output[str]
    account: gcp.serviceaccount.Account
    after: list[pulumi.Resource] = field(default_factory=list)

    def startup_script(self, payload: Payload, hostname: str | None = None) -> pulumi.Output[str]:
        """Return a script for Google's guest agent: Debian's image for Google has no cloud-init."""
        return self.project.apply(
            lambda project: userdata.startup_script(payload, GcpStore(project, self.cluster, self.reader), hostname)
        )


class Secrets(pulumi.ComponentResource):
    """A bundle for each reader, in the cluster's region, encrypted with the cluster's key, and an identity that reads it.

    Payloads are not here: machines have theirs in their metadata. The stack manages the bindings exclusively: the next `up`
    removes a role on a secret from anyone else who was granted it.
    """

    identities: dict[str, Identity]
    """By reader; the identities in `stacks.gcp.readers` share a bundle."""

    def __init__(self, cluster: Cluster, keys: Keys, stored: Stored, opts: pulumi.ResourceOptions) -> None:
        super().__init__("menagerie:gcp:Secrets", f"{cluster.name}-secrets", None, opts)
        self._cluster = cluster
        self._keys = keys
        self._own = pulumi.ResourceOptions(parent=self)
        self._reading = {reader: readers.of_workers(cluster) if reader == WORKERS else (reader,) for reader in stored}
        self.identities = {
            name: self._identity(reader, name) for reader, names in self._reading.items() for name in names
        }
        for reader, bundle in stored.items():
            self._stored(reader, bundle)
        if WORKERS in stored:
            self._join_token()
        self.register_outputs({})

    def _identity(self, reader: str, name: str) -> Identity:
        account = gcp.serviceaccount.Account(
            generated(self._cluster, name),
            account_id=account_id(self._cluster, name),
            display_name=f"{self._cluster.name}: {name}",
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
            generated(self._cluster, name),
            secret_id=GcpStore("", self._cluster.name, "").stored_name(name),
            replication=gcp.secretmanager.SecretReplicationArgs(
                user_managed=gcp.secretmanager.SecretReplicationUserManagedArgs(replicas=[replica])
            ),
            labels=labels("secret"),
            # This is a copy of a value in the stack's state.
            opts=pulumi.ResourceOptions.merge(
                pulumi.ResourceOptions(parent=self, delete_before_replace=True), self._keys.usable
            ),
        )

    def _stored(self, reader: str, bundle: pulumi.Input[str]) -> None:
        name = bundle_name(reader)
        secret = self._secret(name)
        version = gcp.secretmanager.SecretVersion(
            generated(self._cluster, name),
            secret=secret.id,
            secret_data=pulumi.Output.secret(bundle),
            opts=pulumi.ResourceOptions.merge(self._own, self._keys.usable),
        )
        for identity in self._reading[reader]:
            self.identities[identity].after.append(version)
        self._grant(self._reading[reader], name, secret, _READ)

    def _grant(self, names: tuple[str, ...], name: str, secret: gcp.secretmanager.Secret, role: str) -> None:
        """Set all holders of a role on a secret."""
        allowed = [self.identities[identity_name] for identity_name in names]
        granted = gcp.secretmanager.SecretIamBinding(
            generated(self._cluster, name, "read" if role == _READ else "write"),
            secret_id=secret.id,
            role=role,
            members=[identity.account.member for identity in allowed],
            opts=self._own,
        )
        for identity in allowed:
            identity.after.append(granted)

    def _join_token(self) -> None:
        """Create the join token: API servers write it, workers read it. Starts without a version; the program destroys replaced ones."""
        secret = self._secret(JOIN_TOKEN)
        self._grant((API_SERVERS,), JOIN_TOKEN, secret, _WRITE)
        self._grant(self._reading[WORKERS], JOIN_TOKEN, secret, _READ)
