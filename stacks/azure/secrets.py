"""Key Vault as the store: what hosts fetch at boot, and the identities by which they may."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pulumi_azure_native as azure

from cluster.files import JOIN_TOKEN
from cluster.spec import Cluster
from stacks.azure import roles
from stacks.azure.hosts import Boot
from stacks.azure.keys import Keys
from stacks.azure.roles import BuiltIn
from stacks.azure.tags import tags
from stacks.payloads import API_SERVERS, WORKERS

LARGEST = 25_000
""""About Azure Key Vault secrets": a value has at most 25 kB."""

Stored = Mapping[str, Mapping[str, pulumi.Input[str]]]
"""Reader -> name -> value; see `stacks.payloads.stored`."""


class Secrets(pulumi.ComponentResource):
    """Every value once; for each reader an identity that may read its own.

    Names in the vault are generated and told by the user data: a deleted secret keeps its name for as long as it can be
    recovered, and purge protection forbids to give it up. So a reader that goes and comes back finds no name taken.
    A new payload is a new version of the same secret, so rights stay as they are: new ones take minutes.
    """

    boots: dict[str, Boot]
    """Reader -> how its hosts get at their values."""

    def __init__(
        self,
        cluster: Cluster,
        group: pulumi.Input[str],
        keys: Keys,
        stored: Stored,
        payloads: Mapping[str, str],
        write_secret: pulumi.Output[str] | None,
        opts: pulumi.ResourceOptions,
    ) -> None:
        """payloads: name of a payload, which follows from its content -> whose it is. write_secret: the role that
        lets API servers write the join token; None without workers in the region."""
        super().__init__("menagerie:azure:Secrets", "secrets", None, opts)
        self._cluster = cluster
        self._group = group
        self._keys = keys
        self._payloads = payloads
        self._own = pulumi.ResourceOptions(parent=self)
        self.identities = {reader: self._identity(reader) for reader in stored}
        self.boots = {reader: self._boot(reader, values) for reader, values in stored.items()}
        if write_secret is not None:
            self._join_token(write_secret)
        self.register_outputs({})

    def _identity(self, reader: str) -> azure.managedidentity.UserAssignedIdentity:
        return azure.managedidentity.UserAssignedIdentity(
            reader, resource_group_name=self._group, tags=tags(self._cluster, reader), opts=self._own
        )

    def _boot(self, reader: str, values: Mapping[str, pulumi.Input[str]]) -> Boot:
        names, granted = {}, []
        for name, value in values.items():
            _refuse_too_long(name, value)
            logical = f"payload-{self._payloads[name]}" if name in self._payloads else name
            secret = self._secret(logical, value)
            names[name] = secret.name
            granted.append(self._may_read(reader, logical, secret))
        return Boot(reader, self._keys.uri, self.identities[reader], names, granted)

    def _secret(self, logical: str, value: pulumi.Input[str]) -> azure.keyvault.Secret:
        return azure.keyvault.Secret(
            logical,
            resource_group_name=self._group,
            vault_name=self._keys.vault.name,
            properties=azure.keyvault.SecretPropertiesArgs(value=pulumi.Output.secret(value)),
            tags=tags(self._cluster, "secret"),
            # Only the vault itself could delete it, and only for who is inside the network.
            opts=pulumi.ResourceOptions(parent=self, retain_on_delete=True),
        )

    def _may_read(self, reader: str, logical: str, secret: azure.keyvault.Secret) -> azure.authorization.RoleAssignment:
        return roles.assign(
            f"{reader}-reads-{logical}",
            roles.built_in(self._keys.subscription, BuiltIn.KEY_VAULT_SECRETS_USER),
            self.identities[reader].principal_id,
            secret.id,
            self._own,
        )

    def _join_token(self, write_secret: pulumi.Output[str]) -> None:
        """API servers write it, workers read it. Azure takes no empty value."""
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
            self.identities[API_SERVERS].principal_id,
            secret.id,
            self._own,
        )
        read = self._may_read(WORKERS, JOIN_TOKEN, secret)
        for reader, granted in ((API_SERVERS, written), (WORKERS, read)):
            self.boots[reader] = self.boots[reader].knowing(JOIN_TOKEN, secret.name, granted)


def _refuse_too_long(name: str, value: pulumi.Input[str]) -> None:
    """Of what is known while the program runs: payloads. ValueError before anything is made."""
    if isinstance(value, str) and len(value) > LARGEST:
        raise ValueError(
            f"{name} has {len(value)} bytes, and a secret of Key Vault {LARGEST}; its host has too many files"
        )
