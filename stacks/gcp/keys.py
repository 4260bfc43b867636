"""The key that encrypts what is kept, and the services that may use it."""

from __future__ import annotations

import pulumi
import pulumi_gcp as gcp

from cluster.spec import Cluster
from cluster.storage import has_file
from stacks.gcp.tags import generated, labels
from stacks.protection import is_protected

_ROTATED_AFTER_S = 90 * 86400
_USE = "roles/cloudkms.cryptoKeyEncrypterDecrypter"


class Keys(pulumi.ComponentResource):
    """One key for disks, secrets and buckets.

    Names of rings and keys stay taken for ever ("Cloud KMS resources"), so they are generated: a cluster that was
    destroyed can be made again. A deleted key's versions are destroyed 30 days later.
    """

    def __init__(self, cluster: Cluster, opts: pulumi.ResourceOptions) -> None:
        super().__init__("menagerie:gcp:Keys", f"{cluster.name}-keys", None, opts)
        self._cluster = cluster
        self._kept = pulumi.ResourceOptions(parent=self, protect=is_protected())
        asked = pulumi.InvokeOutputOptions(parent=self)
        project = gcp.organizations.get_project_output(opts=asked)
        self.project: pulumi.Output[str] = project.project_id.apply(str)
        self.number: pulumi.Output[str] = project.number
        self.ring = gcp.kms.KeyRing(
            generated(cluster, "keys"), location=cluster.spec.control_plane.region, opts=self._kept
        )
        self.key = gcp.kms.CryptoKey(
            generated(cluster, "encryption"),
            key_ring=self.ring.id,
            purpose="ENCRYPT_DECRYPT",
            rotation_period=f"{_ROTATED_AFTER_S}s",
            labels=labels("encryption"),
            opts=self._kept,
        )
        disks = pulumi.Output.format("serviceAccount:service-{0}@compute-system.iam.gserviceaccount.com", self.number)
        # Both are made by asking for them, if the project has not yet used the service.
        buckets = gcp.storage.get_project_service_account_output(opts=asked).member
        agents = [self._agent("secret-manager", "secretmanager")]
        if has_file(cluster.spec):
            agents.append(self._agent("filestore", "file"))
        self.usable = gcp.kms.CryptoKeyIAMBinding(
            generated(cluster, "use-key"),
            crypto_key_id=self.key.id,
            role=_USE,
            members=[disks, buckets, *(agent.member for agent in agents)],
            opts=pulumi.ResourceOptions(parent=self),
        )
        """Nothing is encrypted before. Whoever else is given the role loses it with the next `up`."""
        self.register_outputs({})

    def _agent(self, name: str, service: str) -> gcp.projects.ServiceIdentity:
        return gcp.projects.ServiceIdentity(
            generated(self._cluster, name),
            service=f"{service}.googleapis.com",
            opts=pulumi.ResourceOptions(parent=self),
        )
