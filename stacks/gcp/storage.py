"""Buckets for backups, logs and artefacts."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pulumi_gcp as gcp

from cluster.outputs import BucketOutput
from cluster.spec import Cluster
from components.control_plane import audit_log
from etcd.backups import USE, prefix
from network.addresses import AddressPlan
from stacks import audit_logs
from stacks.backups import Buckets, hosts_with_backups, kept_days
from stacks.gcp.keys import Keys
from stacks.gcp.network import Network
from stacks.gcp.secrets import Identity
from stacks.gcp.tags import bucket_name, generated, labels, named
from stacks.protection import is_protected

BACKUPS, AUDIT, LOGS, ARTEFACTS = "backups", "audit", "logs", "artefacts"
_DAY_S = 86_400
_FORMER_DAYS = 30
"""How long overwritten or deleted objects in a versioned bucket can be restored."""
_LOGS_DAYS = 90
_WRITE = "roles/storage.objectCreator"
"""To add objects, without reading, overwriting or deleting any."""
_USE = "roles/storage.objectUser"
"""To read, add, delete and list objects; not to change permissions or how long deleted objects are kept."""
_LEAST_GUARDED_DAYS = 7
_PARTS_DAYS = 7


class Storage(pulumi.ComponentResource):
    """Private, with uniform bucket-level access, encrypted with the cluster's key.

    restic deletes the locks that coordinate its runs, and data that no backup needs any more. A retention policy would
    forbid that, and any identity that may delete an object may delete its versions. So the bucket keeps deleted backups:
    during the period of a soft delete policy only an identity that may change the policy can remove them ("Soft delete",
    Cloud Storage). The other buckets have versions.
    """

    def __init__(self, cluster: Cluster, network: Network, keys: Keys, opts: pulumi.ResourceOptions) -> None:
        super().__init__("menagerie:gcp:Storage", f"{cluster.name}-storage", None, opts)
        self._cluster = cluster
        self._keys = keys
        self._own = pulumi.ResourceOptions(parent=self)
        days = kept_days(cluster)
        guarded = gcp.storage.BucketSoftDeletePolicyArgs(
            retention_duration_seconds=max(days, _LEAST_GUARDED_DAYS) * _DAY_S
        )
        self.backups = self._bucket(BACKUPS, [_parts_removed(_PARTS_DAYS)], soft_delete_policy=guarded)
        kept = audit_logs.kept_days(cluster)
        retained = gcp.storage.BucketRetentionPolicyArgs(retention_period=kept * _DAY_S)
        self.audit = self._bucket(AUDIT, [_removed(age=kept), _parts_removed(_PARTS_DAYS)], retention_policy=retained)
        versioned = gcp.storage.BucketVersioningArgs(enabled=True)
        former = _removed(days_since_noncurrent_time=_FORMER_DAYS, with_state="ARCHIVED")
        self.logs = self._bucket(LOGS, [_removed(age=_LOGS_DAYS), former], versioning=versioned)
        self.artefacts = self._bucket(ARTEFACTS, [former], versioning=versioned)
        self._keep_flow_logs(network)
        self.register_outputs({})

    def _bucket(
        self, purpose: str, rules: list[gcp.storage.BucketLifecycleRuleArgs], **more: object
    ) -> gcp.storage.Bucket:
        """Create a bucket. more: properties that only some have."""
        cluster = self._cluster
        args = gcp.storage.BucketArgs(
            name=self._keys.project.apply(lambda project: bucket_name(cluster.name, purpose, project)),
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
        kept = pulumi.ResourceOptions(
            parent=self,
            protect=is_protected(),
            # A locked policy can't be unlocked; a program that declared it unlocked would replace the bucket.
            ignore_changes=["retentionPolicy.isLocked"],
        )
        return gcp.storage.Bucket(
            generated(cluster, purpose), args, opts=pulumi.ResourceOptions.merge(kept, self._keys.usable)
        )

    def _keep_flow_logs(self, network: Network) -> None:
        """Export flow logs from Cloud Logging, which drops them after 30 days."""
        names = [subnet.name for subnet in network.subnets.values()]
        filter_ = pulumi.Output.all(*names).apply(
            lambda names_: (
                'log_id("compute.googleapis.com/vpc_flows") AND resource.labels.subnetwork_name=('
                + " OR ".join(f'"{name}"' for name in names_)
                + ")"
            )
        )
        sink = gcp.logging.ProjectSink(
            named(self._cluster, "flow-logs"),
            name=named(self._cluster, "flow-logs"),
            destination=pulumi.Output.format("storage.googleapis.com/{0}", self.logs.name),
            filter=filter_,
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

    def let_keep_audit_log(self, api_servers: Identity) -> None:
        """Permit API servers to add objects, without reading, overwriting or deleting any."""
        gcp.storage.BucketIAMMember(
            generated(self._cluster, "audit-log"),
            bucket=self.audit.name,
            role=_WRITE,
            member=api_servers.account.member,
            opts=self._own,
        )

    def let_keep_backups(self, plan: AddressPlan, identities: Mapping[str, Identity]) -> None:
        """Permit hosts whose etcd has backups to use the folder of its repository, and nothing else."""
        for host, roles in hosts_with_backups(self._cluster, plan).items():
            for role in roles:
                gcp.storage.BucketIAMMember(
                    generated(self._cluster, host, f"backups-{role}"),
                    bucket=self.backups.name,
                    role=_USE,
                    member=identities[host].account.member,
                    condition=gcp.storage.BucketIAMMemberConditionArgs(
                        title=f"backups of etcd {role}", expression=self._inside(prefix(self._cluster.name, role))
                    ),
                    opts=self._own,
                )

    def _inside(self, folder: str) -> pulumi.Output[str]:
        """Return a condition for a folder. Listing is a request to the bucket, for a prefix ("Attribute reference for IAM Conditions")."""
        name: pulumi.Output[str] = self.backups.name
        return name.apply(
            lambda name: (
                f'resource.name.startsWith("projects/_/buckets/{name}/objects/{folder}/") || '
                f'api.getAttribute("storage.googleapis.com/objectListPrefix", "").startsWith("{folder}/")'
            )
        )

    def buckets(self) -> Buckets:
        """See `stacks.provider.Provider`."""
        names = {
            "records": self.artefacts.name,
            audit_log.USE: self.audit.name,
            **({USE: self.backups.name} if self._cluster.spec.has_backups else {}),
        }
        return pulumi.Output.all(names=pulumi.Output.all(**names), days=self.audit.retention_policy.apply(_days)).apply(
            lambda values: {
                use: BucketOutput(kind="gcs", name=name, locked_days=values["days"] if use == audit_log.USE else 0)
                for use, name in values["names"].items()
            }
        )


def _days(policy: gcp.storage.outputs.BucketRetentionPolicy | None) -> int:
    """Return the retention as Google reports it, not as the spec says."""
    return int(policy.retention_period) // _DAY_S if policy else 0


def _removed(**condition: object) -> gcp.storage.BucketLifecycleRuleArgs:
    return gcp.storage.BucketLifecycleRuleArgs(
        action=gcp.storage.BucketLifecycleRuleActionArgs(type="Delete"),
        condition=gcp.storage.BucketLifecycleRuleConditionArgs(**condition),
    )


def _parts_removed(days: int) -> gcp.storage.BucketLifecycleRuleArgs:
    """Return a rule that deletes the parts of unfinished uploads."""
    return gcp.storage.BucketLifecycleRuleArgs(
        action=gcp.storage.BucketLifecycleRuleActionArgs(type="AbortIncompleteMultipartUpload"),
        condition=gcp.storage.BucketLifecycleRuleConditionArgs(age=days),
    )
