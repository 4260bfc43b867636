"""What every place that can hold a control plane must offer: the clouds and the lab alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pulumi

from cluster.artefacts import ArtefactSource
from cluster.outputs import BucketOutput
from components.userdata import Payload
from stacks.pki import Pki


class Provider(Protocol):
    """Builds one cluster's cloud side. Each method is called once, in this order."""

    def network(self) -> None:
        """Networks, routes and firewalls, up to where hosts can be plugged in."""

    def storage(self) -> None:
        """Keys that encrypt what is kept, and places for backups, logs and artefacts."""

    def secrets(self, pki: Pki) -> None:
        """A store from which each host may read its own secrets and its own payload, and nobody else's.

        A payload (`stacks.payloads`) is in it before any host is made from user data that names it, and stays while
        one may be made so. A host that has booted once has its payload on its own disk.
        """

    def etcd(self) -> None:
        """Members of every etcd of the cluster, each with a disk that outlives its host."""

    def control_plane(self) -> None:
        """API-server hosts and the load balancer in front of them."""

    def workers(self) -> None:
        """Workers in the region, and machines of sites that the provider itself makes."""

    def sites(self) -> None:
        """The region's end of the tunnels to sites that have a `vpn`."""

    def buckets(self) -> pulumi.Output[dict[str, BucketOutput]]:
        """Use -> bucket, as `ClusterOutputs` has them; ``backups`` where an etcd has any, ``records`` always."""

    def bucket_key(self) -> pulumi.Output[str]:
        """The key of a server of buckets that is no cloud's, a secret; "" where operators use credentials of their own."""

    def payloads(self) -> Mapping[str, Payload]:
        """Reader -> what API servers and hosts of etcds are to be."""

    def artefacts(self) -> ArtefactSource:
        """Where hosts download programs and images."""

    def facts(self) -> pulumi.Output[dict[str, str]]:
        """What only the provider knows for `ClusterOutputs`: ``load_balancer_status``, ``public_target``,
        ``ssh_host_key/<host>`` and ``vpn_gateway/<site>/<router>/<end>`` entries, and the secret ``ssh_private_key`` where it made one."""
