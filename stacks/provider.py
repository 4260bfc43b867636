"""What every place for a control plane must provide: the clouds and the lab alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pulumi

from cluster.artefacts import ArtefactSource
from cluster.outputs import BucketOutput
from components.userdata import Payload
from stacks.facts import Facts
from stacks.pki import Pki


class Provider(Protocol):
    """Builds one cluster in its cloud. Each method is called once, in this order."""

    def network(self) -> None:
        """Create networks, routes and firewalls, ready to attach hosts."""

    def storage(self) -> None:
        """Create keys that encrypt stored data, and storage for backups, logs and artefacts."""

    def secrets(self, pki: Pki) -> None:
        """Create a store from which each host may read its own secrets and its own payload only.

        A payload (`stacks.payloads`) is stored before any host is created from user data that names it, and stays while
        such a host may be created. A host that has booted once has its payload on its own disk.
        """

    def etcd(self) -> None:
        """Create the members of every etcd of the cluster, each with a disk that outlives its host."""

    def control_plane(self) -> None:
        """Create API-server hosts and the load balancer in front of them."""

    def workers(self) -> None:
        """Create workers in the region, and machines of sites that the provider itself creates."""

    def sites(self) -> None:
        """Create the region's end of the tunnels to sites that have a `vpn`."""

    def buckets(self) -> pulumi.Output[dict[str, BucketOutput]]:
        """Return use -> bucket, as in `ClusterOutputs`; ``backups`` if an etcd has any, ``records`` always."""

    def bucket_key(self) -> pulumi.Output[str]:
        """Return the key of a bucket server that belongs to no cloud, a secret; "" if operators use their own credentials."""

    def payloads(self) -> Mapping[str, Payload]:
        """Return reader -> payload, for API servers and etcd hosts."""

    def artefacts(self) -> ArtefactSource:
        """Return where hosts download programs and images."""

    def facts(self) -> pulumi.Output[Facts]:
        """Return what only the provider knows for `ClusterOutputs`."""

    def ssh_private_key(self) -> pulumi.Output[str]:
        """Return the operator's key for machines that the provider creates; "" if it creates none."""
