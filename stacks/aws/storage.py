"""The cluster's key and its buckets: locked backups, logs, and artefacts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from cluster.outputs import BucketOutput
from cluster.spec import Cluster
from components.control_plane import audit_log
from etcd.backups import USE
from stacks import audit_logs
from stacks.aws import policies
from stacks.aws.network import Network
from stacks.aws.tags import bucket, tags
from stacks.backups import Buckets, kept_days
from stacks.protection import is_protected

BACKUPS, AUDIT, LOGS, ARTEFACTS = "backups", "audit", "logs", "artefacts"
_LOG_DAYS = 90
_FORMER_DAYS = 30
_PARTS_DAYS = 7
_AUTO_SCALING = "autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
_SPOT = "spot.amazonaws.com/AWSServiceRoleForEC2Spot"


@dataclass(frozen=True)
class Account:
    """The owner of what the stack creates."""

    id: str
    partition: str

    @staticmethod
    def of(caller: aws.GetCallerIdentityResult) -> Account:
        return Account(caller.account_id, caller.arn.split(":")[1])


class Storage(pulumi.ComponentResource):
    """Everything that the cluster keeps in AWS is encrypted with one key, which AWS rotates once a year."""

    backups: aws.s3.Bucket
    audit: aws.s3.Bucket
    artefacts: aws.s3.Bucket
    account: pulumi.Output[Account]

    def __init__(self, cluster: Cluster, network: Network, opts: pulumi.ResourceOptions) -> None:
        super().__init__("menagerie:aws:Storage", f"{cluster.name}-storage", None, opts)
        self._cluster = cluster
        self._own = pulumi.ResourceOptions(parent=self)
        caller = aws.get_caller_identity_output(opts=pulumi.InvokeOutputOptions(parent=self))
        self.account = caller.apply(Account.of)
        self._policies: dict[str, aws.s3.BucketPolicy] = {}
        self._locked: dict[str, pulumi.Output[int]] = {}
        self.key = self._key()
        # Objects that restic deletes are hidden; hidden versions and their markers are removed when their lock has expired.
        self.backups = self._bucket(BACKUPS, former_expired(kept_days(cluster)), locked_days=kept_days(cluster))
        logged = audit_logs.kept_days(cluster)
        self.audit = self._bucket(AUDIT, expired(logged, 1), locked_days=logged)
        logs = self._bucket(LOGS, expired(_LOG_DAYS, 1))
        self.artefacts = self._bucket(ARTEFACTS, former_expired(_FORMER_DAYS))
        self._log_flows(network, logs)
        self.register_outputs({})

    def buckets(self) -> Buckets:
        """See `stacks.provider.Provider`."""
        region = str(self._cluster.spec.control_plane.region)
        names = {
            "records": self.artefacts.bucket,
            audit_log.USE: self.audit.bucket,
            **({USE: self.backups.bucket} if self._cluster.spec.has_backups else {}),
        }
        locked = {audit_log.USE: self._locked[AUDIT], USE: self._locked[BACKUPS]}
        return pulumi.Output.all(names=pulumi.Output.all(**names), days=pulumi.Output.all(**locked)).apply(
            lambda inputs: {
                use: BucketOutput(kind="s3", name=name, region=region, locked_days=inputs["days"].get(use, 0))
                for use, name in inputs["names"].items()
            }
        )

    def _key(self) -> aws.kms.Key:
        """Create the key. Without it no host boots; AWS deletes keys 7 to 30 days after the request."""
        is_spot = any(pool.spot for pool in self._cluster.spec.pools.values())
        launchers = [_AUTO_SCALING, *([_SPOT] if is_spot else [])]
        return aws.kms.Key(
            f"{self._cluster.name}-key",
            description=f"{self._cluster.name}: disks, secrets and buckets",
            enable_key_rotation=True,
            deletion_window_in_days=30,
            policy=self.account.apply(lambda account: policies.of_key(account.partition, account.id, launchers)),
            tags=tags(self._cluster, "key"),
            opts=pulumi.ResourceOptions(parent=self, protect=is_protected()),
        )

    def _bucket(
        self, use: str, lifecycle: aws.s3.BucketLifecycleConfigurationRuleArgs, locked_days: int = 0
    ) -> aws.s3.Bucket:
        """Create a bucket. locked_days: how long written objects can't be deleted or overwritten without a special right."""
        name = f"{self._cluster.name}-{use}"
        bucket_ = aws.s3.Bucket(
            name,
            bucket=self.account.apply(lambda account: bucket(self._cluster, use, account.id)),
            object_lock_enabled=bool(locked_days),
            # After a release, flow logs and artefacts are deleted with their bucket; locked objects are left for somebody to delete.
            force_destroy=not locked_days and not is_protected(),
            tags=tags(self._cluster, use),
            # A bucket that stays keeps its key.
            opts=pulumi.ResourceOptions(parent=self, protect=is_protected(), depends_on=[self.key]),
        )
        versioning = aws.s3.BucketVersioning(
            name,
            bucket=bucket_.id,
            versioning_configuration=aws.s3.BucketVersioningVersioningConfigurationArgs(status="Enabled"),
            opts=self._own,
        )
        self._close(name, bucket_, use)
        after = pulumi.ResourceOptions(parent=self, depends_on=[versioning])
        aws.s3.BucketLifecycleConfiguration(name, bucket=bucket_.id, rules=[lifecycle], opts=after)
        if locked_days:
            retention = aws.s3.BucketObjectLockConfigurationRuleDefaultRetentionArgs(
                mode="GOVERNANCE", days=locked_days
            )
            rule = aws.s3.BucketObjectLockConfigurationRuleArgs(default_retention=retention)
            lock = aws.s3.BucketObjectLockConfiguration(name, bucket=bucket_.id, rule=rule, opts=after)
            self._locked[use] = lock.rule.apply(_days)
        return bucket_

    def _close(self, name: str, bucket_: aws.s3.Bucket, use: str) -> None:
        closed = aws.s3.BucketPublicAccessBlock(
            name,
            bucket=bucket_.id,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=self._own,
        )
        by_default = aws.s3.BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultArgs(
            sse_algorithm="aws:kms", kms_master_key_id=self.key.arn
        )
        aws.s3.BucketServerSideEncryptionConfiguration(
            name,
            bucket=bucket_.id,
            rules=[
                aws.s3.BucketServerSideEncryptionConfigurationRuleArgs(
                    apply_server_side_encryption_by_default=by_default, bucket_key_enabled=True
                )
            ],
            opts=self._own,
        )
        region = self._cluster.spec.control_plane.region

        def policy(inputs: Sequence[Any]) -> str:
            arn, account = inputs
            return policies.of_bucket(arn, *(policies.write_logs(arn, account.id, region) if use == LOGS else ()))

        # S3 refuses two simultaneous changes to a bucket's access.
        after = pulumi.ResourceOptions(parent=self, depends_on=[closed])
        self._policies[use] = aws.s3.BucketPolicy(
            name, bucket=bucket_.id, policy=pulumi.Output.all(bucket_.arn, self.account).apply(policy), opts=after
        )

    def _log_flows(self, network: Network, logs: aws.s3.Bucket) -> None:
        """Log connections. Without a bucket policy AWS would write one itself."""
        aws.ec2.FlowLog(
            f"{self._cluster.name}-flows",
            vpc_id=network.vpc.id,
            traffic_type="ALL",
            log_destination_type="s3",
            log_destination=logs.arn,
            tags=tags(self._cluster, "flow-log"),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[self._policies[LOGS]]),
        )


def _days(rule: aws.s3.outputs.BucketObjectLockConfigurationRule | None) -> int:
    """Return the lock's days as AWS reports them, not as the spec says."""
    return int(rule.default_retention.days or 0) if rule and rule.default_retention else 0


def expired(days: int, former_days: int) -> aws.s3.BucketLifecycleConfigurationRuleArgs:
    """Delete objects after some days, and former versions; locked objects stay until the lock expires."""
    return _rule(
        expiration=aws.s3.BucketLifecycleConfigurationRuleExpirationArgs(days=days),
        noncurrent_version_expiration=_former(former_days),
    )


def former_expired(days: int) -> aws.s3.BucketLifecycleConfigurationRuleArgs:
    """Delete former versions after some days, with markers of deleted objects; current objects stay."""
    return _rule(
        noncurrent_version_expiration=_former(days),
        expiration=aws.s3.BucketLifecycleConfigurationRuleExpirationArgs(expired_object_delete_marker=True),
    )


def _rule(**actions: Any) -> aws.s3.BucketLifecycleConfigurationRuleArgs:
    """Return a rule for the whole bucket; it also deletes parts of unfinished uploads."""
    unfinished = aws.s3.BucketLifecycleConfigurationRuleAbortIncompleteMultipartUploadArgs(
        days_after_initiation=_PARTS_DAYS
    )
    return aws.s3.BucketLifecycleConfigurationRuleArgs(
        id="expire",
        status="Enabled",
        filter=aws.s3.BucketLifecycleConfigurationRuleFilterArgs(prefix=""),
        abort_incomplete_multipart_upload=unfinished,
        **actions,
    )


def _former(days: int) -> aws.s3.BucketLifecycleConfigurationRuleNoncurrentVersionExpirationArgs:
    return aws.s3.BucketLifecycleConfigurationRuleNoncurrentVersionExpirationArgs(noncurrent_days=days)
