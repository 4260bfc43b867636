"""Secrets Manager as the store: what hosts fetch at boot, and the identities that may fetch it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from cluster.files import JOIN_TOKEN
from cluster.spec import Cluster
from cluster.storage import controllers_pool, has_block
from etcd.backups import prefix
from network.addresses import ROLES, AddressPlan
from stacks.aws import policies, volume_rights
from stacks.aws.network import Network
from stacks.aws.storage import Storage
from stacks.aws.store import AwsStore
from stacks.aws.tags import named, tags
from stacks.aws.volumes import Volumes
from stacks.backups import roles_with_backups
from stacks.cloud_store import API_SERVERS, WORKERS

Stored = Mapping[str, Mapping[str, pulumi.Input[str]]]
"""Reader -> name -> value; see `stacks.payloads.stored`."""


ETCD, ETCD_EVENTS = "etcd", "etcd-events"
"""The identities of hosts of etcds, the second for hosts of etcd events alone; each host reads its own secrets, distinguished by
its address. One identity for all would exceed what IAM permits a role (10,240 characters) with seven members each."""
CONTROLLERS = "controllers"
"""The identity of the pool whose machines create volumes. It reads what all workers read."""


class Secrets(pulumi.ComponentResource):
    """Stores every value once, under the cluster's key, with a profile for each reader.

    The stack does not manage the join token's value: API servers write it, workers read it.
    """

    profiles: dict[str, aws.iam.InstanceProfile]
    """Host of an etcd, or all API servers -> the profile of their instances."""
    pools: dict[str, aws.iam.InstanceProfile]
    """Pool in the region -> the profile of its instances."""

    def __init__(
        self,
        cluster: Cluster,
        plan: AddressPlan,
        network: Network,
        storage: Storage,
        volumes: Volumes | None,
        stored: Stored,
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__("menagerie:aws:Secrets", f"{cluster.name}-secrets", None, opts)
        self._cluster = cluster
        self._network = network
        self._storage = storage
        self._volumes = volumes
        self._own = pulumi.ResourceOptions(parent=self)
        self._hosts = hosts_of(plan)
        self._token = self._secret(JOIN_TOKEN) if WORKERS in stored else None
        self._folders = with_backups(cluster, plan, self._hosts)
        readable = {reader: self._readable(reader, values) for reader, values in stored.items()}
        self.profiles, self.pools = {}, {}
        for identity in identities(cluster, plan):
            profile = self._profile(identity.name, {reader: readable[reader] for reader in identity.readers})
            self.pools |= dict.fromkeys(identity.pools, profile)
            self.profiles |= {} if identity.pools else dict.fromkeys(identity.readers, profile)
        self.register_outputs({})

    def _secret(self, name: str) -> aws.secretsmanager.Secret:
        return aws.secretsmanager.Secret(
            f"{self._cluster.name}-{name}",
            name=AwsStore(self._cluster.name, "").stored_name(name),
            kms_key_id=self._storage.key.arn,
            # This is a copy of a value in the stack's state; a name can't be reused while its deletion is pending.
            recovery_window_in_days=0,
            tags=tags(self._cluster, "secret", name),
            opts=self._own,
        )

    def _readable(self, reader: str, values: Mapping[str, pulumi.Input[str]]) -> pulumi.Output[list[str]]:
        """Return the ARNs of what a reader may read, once it exists."""
        arns = [self._stored(name, value).arn for name, value in values.items()]
        if reader == WORKERS and self._token:
            arns.append(self._token.arn)
        return pulumi.Output.all(*arns)

    def _stored(self, name: str, value: pulumi.Input[str]) -> aws.secretsmanager.Secret:
        secret = self._secret(name)
        aws.secretsmanager.SecretVersion(
            f"{self._cluster.name}-{name}",
            secret_id=secret.id,
            secret_string=pulumi.Output.secret(value),
            opts=self._own,
        )
        return secret

    def _profile(self, identity: str, readable: Mapping[str, pulumi.Output[list[str]]]) -> aws.iam.InstanceProfile:
        own = [host for name, host in self._hosts.items() if name in readable]
        folders = {folder: mine for folder, hosts in self._folders.items() if (mine := [h for h in hosts if h in own])}
        name, tagged = named(self._cluster, identity, "role"), tags(self._cluster, identity)
        bound = self._storage.account.apply(lambda account: policies.boundary_arn(account.partition, account.id))
        role = host_role(name, tagged, bound, self._own)
        inputs = pulumi.Output.all(
            readable=pulumi.Output.all(**readable),
            key=self._storage.key.arn,
            vpc=self._network.vpc.id,
            token=self._token.arn if identity == API_SERVERS and self._token else None,
            audit=self._storage.audit.arn if identity == API_SERVERS else None,
            backups=self._storage.backups.arn if folders else None,
            volumes=self._rights() if identity == CONTROLLERS else None,
        )
        region = str(self._cluster.spec.control_plane.region)
        text = inputs.apply(lambda values: document(self._cluster.name, region, self._hosts, folders, values))
        aws.iam.RolePolicy(name, role=role.id, policy=text, opts=self._own)
        return aws.iam.InstanceProfile(
            name, path=policies.PATH, role=role.name, tags=tagged, opts=_unchanged(self._own, "path")
        )

    def _rights(self) -> pulumi.Output[list[policies.Statement]]:
        files = self._volumes.files if self._volumes else None
        return pulumi.Output.all(
            account=self._storage.account,
            vpc=self._network.vpc.id,
            key=self._storage.key.arn,
            files=files.arn if files else None,
        ).apply(self._of_volumes)

    def _of_volumes(self, inputs: Mapping[str, Any]) -> list[policies.Statement]:
        spec, account = self._cluster.spec, inputs["account"]
        region = str(spec.control_plane.region)
        place = volume_rights.Place(
            self._cluster.name, region, inputs["vpc"], inputs["key"], account.partition, account.id
        )
        return [
            *(volume_rights.disks(place, f"{WORKERS}-*") if has_block(spec) else ()),
            *(volume_rights.files(place, inputs["files"]) if inputs["files"] else ()),
        ]


def document(
    cluster: str,
    region: str,
    hosts: Mapping[str, policies.AddressedHost],
    folders: Mapping[str, Sequence[policies.AddressedHost]],
    inputs: Mapping[str, Any],
) -> str:
    """Return the policy of an identity. hosts: of etcds, by name. folders: for backups, with the hosts that keep them there.

    inputs: IDs and ARNs; None for what the identity does not use.
    """
    key, vpc = inputs["key"], inputs["vpc"]
    statements = [policies.read_secrets(arns, vpc, hosts.get(reader)) for reader, arns in inputs["readable"].items()]
    statements.append(policies.decrypt_secrets(key, region))
    if inputs["token"]:
        statements += policies.write_secret(inputs["token"], key, vpc, region)
        statements.append(policies.see_machines(vpc))
    if inputs["audit"]:
        statements += policies.keep_audit_log(inputs["audit"], cluster, key, vpc, region)
    if inputs["backups"]:
        statements += policies.keep_backups(inputs["backups"], folders, key, vpc, region)
    return policies.document(*statements, *(inputs["volumes"] or ()))


def host_role(
    name: str, tagged: Mapping[str, str], bound: pulumi.Input[str], opts: pulumi.ResourceOptions
) -> aws.iam.Role:
    """Create a role for instances, below our path and with the boundary. bound: ARN of the boundary policy.

    A role from before there was a path keeps its place and has no boundary: AWS would replace it and so revoke the
    credentials of running hosts. docs/reference/aws.md says how an administrator adds the boundary to such a role.
    """
    return aws.iam.Role(
        name,
        path=policies.PATH,
        permissions_boundary=bound,
        assume_role_policy=policies.TRUST_OF_HOSTS,
        tags=tagged,
        opts=_unchanged(opts, "path", "permissionsBoundary"),
    )


def _unchanged(opts: pulumi.ResourceOptions, *properties: str) -> pulumi.ResourceOptions:
    """Ignore these properties, so resources created without them stay as they are."""
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(ignore_changes=list(properties)))


def hosts_of(plan: AddressPlan) -> dict[str, policies.AddressedHost]:
    """Return hosts of etcds by name; they read the store under these names."""
    return {host.name: policies.AddressedHost(host.name, host.address) for role in ROLES for host in plan.etcd[role]}


@dataclass(frozen=True)
class Identity:
    """A role. readers: the readers that it may act as. pools: whose machines have it, if they are workers."""

    name: str
    readers: tuple[str, ...]
    pools: tuple[str, ...] = ()


def identities(cluster: Cluster, plan: AddressPlan) -> list[Identity]:
    """Return the identities of a cluster."""
    main, events = (tuple(host.name for host in plan.etcd[role]) for role in ROLES)
    listed = [Identity(API_SERVERS, (API_SERVERS,)), Identity(ETCD, main)]
    if apart := tuple(name for name in events if name not in main):
        listed.append(Identity(ETCD_EVENTS, apart))
    maker = controllers_pool(cluster.spec)
    others = tuple(name for name in cluster.spec.region_pools if name != maker)
    if others:
        listed.append(Identity(WORKERS, (WORKERS,), others))
    if maker:
        listed.append(Identity(CONTROLLERS, (WORKERS,), (maker,)))
    return listed


def with_backups(
    cluster: Cluster, plan: AddressPlan, hosts: Mapping[str, policies.AddressedHost]
) -> dict[str, list[policies.AddressedHost]]:
    """Return folder in the bucket -> the hosts that keep backups there."""
    roles = roles_with_backups(cluster)
    return {prefix(cluster.name, role): [hosts[host.name] for host in plan.etcd[role]] for role in roles}
