"""Buckets for backups, logs and artefacts."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pulumi_gcp as gcp

from cluster.spec import Cluster
from etcd.members import settings
from network.addresses import ROLES, AddressPlan
from stacks.gcp.keys import Keys
from stacks.gcp.network import Network
from stacks.gcp.secrets import Identity
from stacks.gcp.tags import bucket_name, generated, labels, named
from stacks.protection import is_protected

BACKUPS, LOGS, ARTEFACTS = "backups", "logs", "artefacts"
_DAY_MS = 86_400_000
_DAY_S = 86_400
_KEPT_DAYS = 30
_FORMER_DAYS = 30
"""How long what was overwritten or deleted in a versioned bucket can be had back."""
_LOGS_DAYS = 90
_WRITE = "roles/storage.objectCreator"
"""To add objects, and neither to read, overwrite nor delete any."""


class Storage(pulumi.ComponentResource):
    """Private, by the bucket's own policy alone, encrypted with the cluster's key.

    Google takes no retention policy on a versioned bucket ("Use and lock retention policies"). So backups, which are
    written once under new names, have a retention policy: nobody deletes or overwrites one before its time. The others
    have versions. The policy is not locked: a lock cannot be taken back, and keeps the bucket for as long as it holds.
    """

    def __init__(self, cluster: Cluster, network: Network, keys: Keys, opts: pulumi.ResourceOptions) -> None:
        super().__init__("menagerie:gcp:Storage", f"{cluster.name}-storage", None, opts)
        self._cluster = cluster
        self._keys = keys
        self._own = pulumi.ResourceOptions(parent=self)
        days = kept_days(cluster)
        kept = gcp.storage.BucketRetentionPolicyArgs(retention_period=str(days * _DAY_S), is_locked=False)
        self.backups = self._bucket(BACKUPS, [_removed(age=days + 1)], retention_policy=kept)
        versioned = gcp.storage.BucketVersioningArgs(enabled=True)
        former = _removed(days_since_noncurrent_time=_FORMER_DAYS, with_state="ARCHIVED")
        self.logs = self._bucket(LOGS, [_removed(age=_LOGS_DAYS), former], versioning=versioned)
        self.artefacts = self._bucket(ARTEFACTS, [former], versioning=versioned)
        self._keep_flow_logs(network)
        self.register_outputs({})

    def _bucket(
        self, purpose: str, rules: list[gcp.storage.BucketLifecycleRuleArgs], **more: object
    ) -> gcp.storage.Bucket:
        """more: what only some have."""
        cluster = self._cluster
        args = gcp.storage.BucketArgs(
            name=self._keys.project.apply(lambda project: bucket_name(cluster, purpose, project)),
            location=cluster.spec.control_plane.region.upper(),
            uniform_bucket_level_access=True,
            public_access_prevention="enforced",
            encryption=gcp.storage.BucketEncryptionArgs(default_kms_key_name=self._keys.key.id),
            lifecycle_rules=rules,
            force_destroy=False,
            labels=labels(purpose),
        )
        for name, value in more.items():
            setattr(args, name, value)
        after = pulumi.ResourceOptions(parent=self, protect=is_protected(), depends_on=[self._keys.usable])
        return gcp.storage.Bucket(generated(cluster, purpose), args, opts=after)

    def _keep_flow_logs(self, network: Network) -> None:
        """Who talked to whom, out of Cloud Logging, which drops it after 30 days."""
        names = [subnet.name for subnet in network.subnets.values()]
        wanted = pulumi.Output.all(*names).apply(
            lambda known: (
                'log_id("compute.googleapis.com/vpc_flows") AND resource.labels.subnetwork_name=('
                + " OR ".join(f'"{name}"' for name in known)
                + ")"
            )
        )
        sink = gcp.logging.ProjectSink(
            named(self._cluster, "flow-logs"),
            name=named(self._cluster, "flow-logs"),
            destination=pulumi.Output.format("storage.googleapis.com/{0}", self.logs.name),
            filter=wanted,
            unique_writer_identity=True,
            opts=self._own,
        )
        gcp.storage.BucketIAMMember(
            generated(self._cluster, "flow-logs"),
            bucket=self.logs.name,
            role=_WRITE,
            member=sink.writer_identity,
            opts=self._own,
        )

    def let_write_backups(self, plan: AddressPlan, identities: Mapping[str, Identity]) -> None:
        """Hosts whose etcd has backups add objects under <cluster>/, and nothing else."""
        for host in hosts_with_backups(self._cluster, plan):
            folder = pulumi.Output.format("projects/_/buckets/{0}/objects/{1}/", self.backups.name, self._cluster.name)
            gcp.storage.BucketIAMMember(
                generated(self._cluster, host, "backups"),
                bucket=self.backups.name,
                role=_WRITE,
                member=identities[host].account.member,
                condition=gcp.storage.BucketIAMMemberConditionArgs(
                    title="own cluster", expression=pulumi.Output.format('resource.name.startsWith("{0}")', folder)
                ),
                opts=self._own,
            )


def kept_days(cluster: Cluster) -> int:
    """How long backups are kept: as long as the etcd that keeps them longest says, in whole days."""
    backups = [settings(cluster, role).backup for role in ROLES]
    return max((-(-backup.keep // _DAY_MS) for backup in backups if backup), default=_KEPT_DAYS)


def hosts_with_backups(cluster: Cluster, plan: AddressPlan) -> tuple[str, ...]:
    """Etcd hosts that a member with backups runs on."""
    writing = [role for role in ROLES if settings(cluster, role).backup]
    return tuple(dict.fromkeys(host.name for role in writing for host in plan.etcd[role]))


def _removed(**condition: object) -> gcp.storage.BucketLifecycleRuleArgs:
    return gcp.storage.BucketLifecycleRuleArgs(
        action=gcp.storage.BucketLifecycleRuleActionArgs(type="Delete"),
        condition=gcp.storage.BucketLifecycleRuleConditionArgs(**condition),
    )
