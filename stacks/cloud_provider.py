"""What the providers of all clouds have in common; the lab has none of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

import pulumi

from cluster.artefacts import ArtefactSource
from cluster.files import Disk
from cluster.sources import source_of
from cluster.spec import Cluster, RoleName
from components.userdata import Payload
from network.addresses import AddressPlan
from stacks import audit_logs, backups, facts, payloads
from stacks.payloads import Values
from stacks.pki import Pki
from stacks.provider import Provider


class CloudProvider(Provider):
    """See `stacks.provider.Provider`. Operators use their own credentials for buckets, and nobody logs in to machines."""

    def __init__(self, cluster: Cluster, plan: AddressPlan, provider: pulumi.ProviderResource) -> None:
        self._cluster = cluster
        self._plan = plan
        self._source = source_of(cluster.spec)
        self._own = pulumi.ResourceOptions(provider=provider)
        self._ends: pulumi.Output[facts.GatewayEnds] | None = None
        self._payloads: Mapping[str, Payload] = {}
        self._pools: Mapping[str, Payload] = {}

    def bucket_key(self) -> pulumi.Output[str]:
        return pulumi.Output.from_input("")

    def payloads(self) -> Mapping[str, Payload]:
        return self._payloads

    def artefacts(self) -> ArtefactSource:
        return self._source

    def ssh_private_key(self) -> pulumi.Output[str]:
        return pulumi.Output.from_input("")

    @abstractmethod
    def _disk(self, role: RoleName) -> Disk:
        """Return how a host finds the data disk of an etcd."""

    def _assemble_payloads(self, machine_program: str) -> None:
        """Assemble the payloads of all hosts. machine_program: the cloud's program of `stacks.machines`."""
        everything = (self._cluster, self._plan, self._source)
        self._payloads = payloads.payloads(*everything, self._disk, machine_program)
        self._pools = payloads.worker_payloads(*everything) if self._cluster.spec.cloud_workers else {}

    def _bucket_secrets(
        self,
        pki: Pki,
        restic: Mapping[str, pulumi.Input[Mapping[str, str]]],
        audit_log: pulumi.Input[Mapping[str, object]],
    ) -> Values:
        """Return the secrets with which hosts use buckets. restic: host -> what restic also needs there.
        audit_log: what the upload of audit logs also needs."""
        buckets = self.buckets()
        return {
            **backups.secrets(self._cluster, self._plan, pki, buckets, restic),
            **audit_logs.secrets(self._cluster, buckets, audit_log),
        }
