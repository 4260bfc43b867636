"""Secrets Manager as the store: what hosts fetch at boot, and the identities by which they may."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
from stacks.payloads import API_SERVERS, WORKERS

Stored = Mapping[str, Mapping[str, pulumi.Input[str]]]
"""Reader -> name -> value; see `stacks.payloads.stored`."""


ETCD = "etcd"
"""The identity of all hosts of etcds; each reads its own, by its address."""
CONTROLLERS = "controllers"
"""That of the pool whose machines make volumes. It reads what all workers read."""


class Secrets(pulumi.ComponentResource):
    """Every value once, under the cluster's key; for each reader a profile that reads its own.

    The join token's value is no business of the stack's: API servers write it, workers read it.
    """

    profiles: dict[str, aws.iam.InstanceProfile]
    """Host of an etcd, or all API servers -> what their instances carry."""
    pools: dict[str, aws.iam.InstanceProfile]
    """Pool in the region -> what its instances carry."""

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
        self._keep_backups = with_backups(cluster, plan, self._hosts)
        readable = {reader: self._readable(reader, values) for reader, values in stored.items()}
        self.profiles, self.pools = {}, {}
        for identity in identities(cluster, self._hosts):
            profile = self._profile(identity.name, {reader: readable[reader] for reader in identity.readers})
            self.pools |= dict.fromkeys(identity.pools, profile)
            self.profiles |= {} if identity.pools else dict.fromkeys(identity.readers, profile)
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

    def _readable(self, reader: str, values: Mapping[str, pulumi.Input[str]]) -> pulumi.Output[list[str]]:
        """ARNs of what a reader may read, once it is there."""
        found = [self._stored(name, value).arn for name, value in values.items()]
        if reader == WORKERS and self._token:
            found.append(self._token.arn)
        return pulumi.Output.all(*found)

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
        name, tagged = named(self._cluster, identity, "role"), tags(self._cluster, identity)
        bound = self._storage.account.apply(lambda account: policies.boundary_arn(account.partition, account.id))
        role = host_role(name, tagged, bound, self._own)
        known = pulumi.Output.all(
            readable=pulumi.Output.all(**readable),
            key=self._storage.key.arn,
            vpc=self._network.vpc.id,
            token=self._token.arn if identity == API_SERVERS and self._token else None,
            audit=self._storage.audit.arn if identity == API_SERVERS else None,
            backups=self._storage.backups.arn if identity == ETCD and self._keep_backups else None,
            volumes=self._rights() if identity == CONTROLLERS else None,
        )
        aws.iam.RolePolicy(name, role=role.id, policy=known.apply(self._document), opts=self._own)
        return aws.iam.InstanceProfile(
            name, path=policies.PATH, role=role.name, tags=tagged, opts=_as_it_was(self._own, "path")
        )

    def _document(self, known: Mapping[str, Any]) -> str:
        key, vpc, region = known["key"], known["vpc"], self._cluster.spec.control_plane.region
        statements = [
            policies.read_secrets(arns, vpc, self._hosts.get(reader)) for reader, arns in known["readable"].items()
        ]
        statements.append(policies.decrypt_secrets(key, region))
        if known["token"]:
            statements += policies.write_secret(known["token"], key, vpc, region)
            statements.append(policies.see_machines(vpc))
        if known["audit"]:
            statements += policies.keep_audit_log(known["audit"], self._cluster.name, key, vpc, region)
        if known["backups"]:
            statements += policies.keep_backups(known["backups"], self._keep_backups, key, vpc, region)
        return policies.document(*statements, *(known["volumes"] or ()))

    def _rights(self) -> pulumi.Output[list[policies.Statement]]:
        files = self._volumes.files if self._volumes else None
        return pulumi.Output.all(
            account=self._storage.account,
            vpc=self._network.vpc.id,
            key=self._storage.key.arn,
            files=files.arn if files else None,
        ).apply(self._of_volumes)

    def _of_volumes(self, known: Mapping[str, Any]) -> list[policies.Statement]:
        spec, account = self._cluster.spec, known["account"]
        region = str(spec.control_plane.region)
        place = volume_rights.Place(
            self._cluster.name, region, known["vpc"], known["key"], account.partition, account.id
        )
        return [
            *(volume_rights.disks(place, f"{WORKERS}-*") if has_block(spec) else ()),
            *(volume_rights.files(place, known["files"]) if known["files"] else ()),
        ]


def host_role(
    name: str, tagged: Mapping[str, str], bound: pulumi.Input[str], opts: pulumi.ResourceOptions
) -> aws.iam.Role:
    """A role that instances carry, below our path and bounded. bound: ARN of the policy that bounds it.

    A role that was made before there was a path keeps its place and has no bound: AWS would replace it, and take the
    credentials of hosts that run. docs/reference/aws.md says how an administrator bounds such a one.
    """
    return aws.iam.Role(
        name,
        path=policies.PATH,
        permissions_boundary=bound,
        assume_role_policy=policies.TRUST_OF_HOSTS,
        tags=tagged,
        opts=_as_it_was(opts, "path", "permissionsBoundary"),
    )


def _as_it_was(opts: pulumi.ResourceOptions, *properties: str) -> pulumi.ResourceOptions:
    """What was made without these keeps being without."""
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(ignore_changes=list(properties)))


def hosts_of(plan: AddressPlan) -> dict[str, policies.Host]:
    """Hosts of etcds by their names, under which they read."""
    return {host.name: policies.Host(host.name, host.address) for role in ROLES for host in plan.etcd[role]}


@dataclass(frozen=True)
class Identity:
    """A role. readers: as whom it reads. pools: whose machines carry it, if they are workers."""

    name: str
    readers: tuple[str, ...]
    pools: tuple[str, ...] = ()


def identities(cluster: Cluster, hosts: Iterable[str]) -> list[Identity]:
    """hosts: of etcds."""
    found = [Identity(API_SERVERS, (API_SERVERS,)), Identity(ETCD, tuple(hosts))]
    makers = controllers_pool(cluster.spec)
    others = tuple(name for name, pool in cluster.spec.pools.items() if pool.site is None and name != makers)
    if others:
        found.append(Identity(WORKERS, (WORKERS,), others))
    if makers:
        found.append(Identity(CONTROLLERS, (WORKERS,), (makers,)))
    return found


def with_backups(
    cluster: Cluster, plan: AddressPlan, hosts: Mapping[str, policies.Host]
) -> dict[str, list[policies.Host]]:
    """Folder in the bucket -> who keeps backups there."""
    roles = roles_with_backups(cluster)
    return {prefix(cluster.name, role): [hosts[host.name] for host in plan.etcd[role]] for role in roles}
