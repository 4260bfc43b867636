"""Secrets that hosts of etcds with backups read from the store: where the backups are, and what decrypts them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from cluster.outputs import BucketOutput
from cluster.quantities import whole_days
from cluster.spec import Cluster, RoleName
from etcd import backups
from etcd.members import members, settings
from network.addresses import ROLES, AddressPlan
from stacks.pki import Pki

Buckets = pulumi.Output[dict[str, BucketOutput]]
"""Use -> bucket; see `cluster.outputs.ClusterOutputs.buckets`."""

_DEFAULT_DAYS = 30


def kept_days(cluster: Cluster) -> int:
    """Return how long backups are kept, in whole days: the longest time of all etcds, or the default if none has backups."""
    kept = [backup.keep for role in ROLES if (backup := settings(cluster, role).backup)]
    return max(map(whole_days, kept), default=_DEFAULT_DAYS)


def roles_with_backups(cluster: Cluster) -> tuple[RoleName, ...]:
    """Return the roles of the etcds that have backups."""
    return tuple(role for role in ROLES if settings(cluster, role).backup)


def hosts_with_backups(cluster: Cluster, plan: AddressPlan) -> dict[str, tuple[RoleName, ...]]:
    """Return host -> the etcds with backups that have a member on it."""
    roles: dict[str, tuple[RoleName, ...]] = {}
    for role in roles_with_backups(cluster):
        for member in members(cluster, role, plan):
            roles[member.host] = (*roles.get(member.host, ()), role)
    return roles


def secrets(
    cluster: Cluster,
    plan: AddressPlan,
    pki: Pki,
    buckets: Buckets,
    own: Mapping[str, pulumi.Input[Mapping[str, str]]],
) -> dict[str, dict[str, pulumi.Input[str]]]:
    """Return host -> name -> value. own: host -> what restic also needs there, such as an identity or a key."""
    return {
        host: {backups.secret_name(role): _secret(cluster, role, pki, buckets, own.get(host, {})) for role in roles}
        for host, roles in hosts_with_backups(cluster, plan).items()
    }


def _secret(
    cluster: Cluster, role: RoleName, pki: Pki, buckets: Buckets, own: pulumi.Input[Mapping[str, str]]
) -> pulumi.Output[str]:
    def text(values: Mapping[str, Any]) -> str:
        bucket = values["buckets"][backups.USE]
        environment = {**backups.environment(bucket), **values["own"]}
        return backups.secret(backups.url(bucket, cluster.name, role), values["password"], environment)

    password = pki.backup_passwords[role].value
    return pulumi.Output.secret(pulumi.Output.all(buckets=buckets, own=own, password=password).apply(text))
