"""The key that encrypts stored data, and the services that may use it."""

from __future__ import annotations

import pulumi
import pulumi_gcp as gcp

from cluster.spec import Cluster
from cluster.storage import has_file
from stacks import grants
from stacks.gcp.tags import generated, labels
from stacks.protection import is_protected

_ROTATED_AFTER_S = 90 * 86400
_USE = "roles/cloudkms.cryptoKeyEncrypterDecrypter"

SLOW = grants.SlowGrants(
    "Google Cloud",
    15 * 60,
    (
        # Of Cloud Storage (github.com/googleapis/nodejs-storage, issue 1254).
        "Permission denied on Cloud KMS key",
        # Of Secret Manager and Compute Engine (github.com/hashicorp/terraform-provider-google, issues 5103 and 15415).
        r"Permission 'cloudkms\.cryptoKeyVersions\.useTo(Encrypt|Decrypt)' denied",
    ),
    # Of pulumi-terraform-bridge, Provider.Create, if the resource has an ID.
    partial="creating urn:pulumi:",
)
""""Access change propagation", IAM: typically two minutes, potentially seven or longer."""


class Keys(pulumi.ComponentResource):
    """One key for disks, secrets and buckets.

    Names of rings and keys can never be reused ("Cloud KMS resources"), so they are generated: a destroyed cluster can be
    created again. The versions of a deleted key are destroyed 30 days later.
    """

    def __init__(self, cluster: Cluster, opts: pulumi.ResourceOptions) -> None:
        super().__init__("menagerie:gcp:Keys", f"{cluster.name}-keys", None, opts)
        self._cluster = cluster
        self._kept = pulumi.ResourceOptions(parent=self, protect=is_protected())
        invoke = pulumi.InvokeOutputOptions(parent=self)
        project = gcp.organizations.get_project_output(opts=invoke)
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
        # This lookup also creates the service account if the project has not yet used the service, as does `_agent`.
        buckets = gcp.storage.get_project_service_account_output(opts=invoke).member
        agents = [self._agent("secret-manager", "secretmanager")]
        if has_file(cluster.spec):
            agents.append(self._agent("filestore", "file"))
        self.granted = gcp.kms.CryptoKeyIAMBinding(
            generated(cluster, "use-key"),
            crypto_key_id=self.key.id,
            role=_USE,
            members=[disks, buckets, *(agent.member for agent in agents)],
            opts=pulumi.ResourceOptions(parent=self),
        )
        """Before groups of machines, which repeat automatically. The next `up` removes the role from anyone else who has it."""
        who = f"Google's agents for disks, buckets and secrets have the role {_USE} on the cluster's key"
        self.usable = grants.after("use-key", self.granted, who, SLOW)
        """Options for everything else that is encrypted."""
        self.register_outputs({})

    def _agent(self, name: str, service: str) -> gcp.projects.ServiceIdentity:
        return gcp.projects.ServiceIdentity(
            generated(self._cluster, name),
            service=f"{service}.googleapis.com",
            opts=pulumi.ResourceOptions(parent=self),
        )
