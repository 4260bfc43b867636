"""Key Vault as the store: what hosts fetch at boot, and the identities that may fetch it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pulumi
import pulumi_azure_native as azure

from cluster.files import JOIN_TOKEN
from cluster.spec import Cluster
from stacks.azure import roles
from stacks.azure.hosts import Boot
from stacks.azure.keys import Keys
from stacks.azure.rights import BuiltIn
from stacks.azure.tags import tags
from stacks.cloud_store import API_SERVERS

LARGEST = 25_000
""""About Azure Key Vault secrets": a value has at most 25 kB."""

Values = Mapping[str, Mapping[str, pulumi.Input[str]]]
"""Reader -> name -> value."""


class Secrets(pulumi.ComponentResource):
    """Stores every secret once, with an identity for each reader that may read its own.

    Payloads are not secret, and Azure's user data has room for them, so none is here (`stacks.azure.hosts.Boot`).
    Names in the vault are generated and passed in the user data: a deleted secret keeps its name while it can be
    recovered, and purge protection prevents purging it. So if a reader is removed and added again, no name is taken.
    """

    boots: dict[str, Boot]
    """Reader -> how its hosts get their values."""

    def __init__(
        self,
        cluster: Cluster,
        group: pulumi.Input[str],
        keys: Keys,
        identities: Mapping[str, azure.managedidentity.UserAssignedIdentity],
        stored: Values,
        public: Values,
        write_secret: pulumi.Output[str] | None,
        opts: pulumi.ResourceOptions,
    ) -> None:
        """identities: of every reader. stored: what the vault keeps. public: additional values for workers, which are not secret.
        write_secret: the role that permits API servers to write the join token; None without workers in the region."""
        super().__init__("menagerie:azure:Secrets", "secrets", None, opts)
        self._cluster = cluster
        self._group = group
        self._keys = keys
        self._own = pulumi.ResourceOptions(parent=self)
        self._identities = identities
        self.boots = {
            reader: self._boot(reader, stored.get(reader, {}), public.get(reader, {})) for reader in identities
        }
        if write_secret is not None:
            self._join_token(write_secret, list(public))
        self.register_outputs({})

    def _boot(
        self, reader: str, values: Mapping[str, pulumi.Input[str]], public: Mapping[str, pulumi.Input[str]]
    ) -> Boot:
        names, granted = {}, []
        for name, value in values.items():
            secret = self._secret(name, value)
            names[name] = secret.name
            granted.append(self._may_read(reader, name, secret))
        return Boot(reader, self._keys.uri, self._identities[reader], names, granted, public)

    def _secret(self, name: str, value: pulumi.Input[str]) -> azure.keyvault.Secret:
        return azure.keyvault.Secret(
            name,
            resource_group_name=self._group,
            vault_name=self._keys.vault.name,
            properties=azure.keyvault.SecretPropertiesArgs(value=pulumi.Output.secret(value)),
            tags=tags(self._cluster, "secret"),
            # Only the vault itself could delete it, and only for clients inside the network.
            opts=pulumi.ResourceOptions(parent=self, retain_on_delete=True),
        )

    def _may_read(self, reader: str, name: str, secret: azure.keyvault.Secret) -> azure.authorization.RoleAssignment:
        return roles.assign(
            f"{reader}-reads-{name}",
            roles.built_in(self._keys.subscription, BuiltIn.KEY_VAULT_SECRETS_USER),
            self._identities[reader].principal_id,
            secret.id,
            self._own,
        )

    def _join_token(self, write_secret: pulumi.Output[str], workers: Sequence[str]) -> None:
        """Create the join token: API servers write it, workers read it. Azure accepts no empty value."""
        secret = azure.keyvault.Secret(
            JOIN_TOKEN,
            resource_group_name=self._group,
            vault_name=self._keys.vault.name,
            properties=azure.keyvault.SecretPropertiesArgs(value="none yet"),
            tags=tags(self._cluster, "secret"),
            opts=pulumi.ResourceOptions(parent=self, retain_on_delete=True, ignore_changes=["properties"]),
        )
        written = roles.assign(
            f"{API_SERVERS}-write-{JOIN_TOKEN}",
            write_secret,
            self._identities[API_SERVERS].principal_id,
            secret.id,
            self._own,
        )
        read = {reader: self._may_read(reader, JOIN_TOKEN, secret) for reader in workers}
        for reader, granted in {API_SERVERS: written, **read}.items():
            self.boots[reader] = self.boots[reader].knowing(JOIN_TOKEN, secret.name, granted)


def identities_of(
    cluster: Cluster, group: pulumi.Input[str], readers: Iterable[str], opts: pulumi.ResourceOptions
) -> dict[str, azure.managedidentity.UserAssignedIdentity]:
    """Create and return reader -> the identity of its hosts."""
    return {
        reader: azure.managedidentity.UserAssignedIdentity(
            reader, resource_group_name=group, tags=tags(cluster, reader), opts=opts
        )
        for reader in readers
    }
