"""AWS as a provider; it reads like a table of contents."""

from __future__ import annotations

import pulumi

from cluster.files import Disk
from cluster.spec import Cluster, RoleName
from cluster.storage import controllers_pool
from components.userdata import Payload, render
from network.addresses import AddressPlan
from stacks import backups, facts, payloads
from stacks.aws import etcd, machines
from stacks.aws.control_plane import ControlPlane
from stacks.aws.dns import Dns
from stacks.aws.endpoints import Endpoints
from stacks.aws.etcd import Etcd
from stacks.aws.network import Network
from stacks.aws.secrets import Secrets
from stacks.aws.security import SecurityGroups
from stacks.aws.storage import Storage
from stacks.aws.store import AwsStore
from stacks.aws.tags import provider
from stacks.aws.volumes import Volumes
from stacks.aws.vpn import Vpn
from stacks.aws.workers import Ground, Workers
from stacks.cloud_provider import CloudProvider
from stacks.cloud_store import API_SERVERS, WORKERS
from stacks.facts import Facts
from stacks.pki import Pki

_ELSEWHERE = ("cn-", "us-gov-", "us-iso", "eu-isoe-", "eusc-")
"""Prefixes of regions that are not in the partition `aws` (botocore's list of partitions)."""


class AwsProvider(CloudProvider):
    """See `stacks.provider.Provider`. Raises ValueError for a region outside the partition `aws`."""

    def __init__(self, cluster: Cluster, plan: AddressPlan) -> None:
        refuse_other_partitions(cluster)
        super().__init__(cluster, plan, provider(cluster))

    def network(self) -> None:
        self._network = Network(self._cluster, self._own)
        self._security = SecurityGroups(self._cluster, self._plan, self._network, self._source, self._own)
        self._endpoints = Endpoints(self._cluster, self._network, self._security, self._own)

    def storage(self) -> None:
        self._storage = Storage(self._cluster, self._network, self._own)
        self._volumes = None
        if controllers_pool(self._cluster.spec):
            self._volumes = Volumes(self._cluster, self._network, self._security, self._storage, self._own)

    def secrets(self, pki: Pki) -> None:
        self._assemble_payloads(machines.program(self._cluster))
        classes = self._volumes.classes() if self._volumes else None
        secrets_ = self._bucket_secrets(pki, {}, {})
        stored = payloads.stored(self._cluster, self._plan, pki, self._payloads, secrets_, self._pools, classes)
        ground = (self._network, self._storage, self._volumes)
        self._secrets = Secrets(self._cluster, self._plan, *ground, stored, self._own)
        # What hosts fetch at boot, the right to fetch it, and the route to it.
        self._booting = pulumi.ResourceOptions.merge(
            self._own, pulumi.ResourceOptions(depends_on=[self._secrets, self._endpoints])
        )

    def etcd(self) -> None:
        hosts = {reader: payload for reader, payload in self._payloads.items() if reader != API_SERVERS}
        user_data = {host: self._user_data(payload, host, host) for host, payload in hosts.items()}
        ground = (self._cluster, self._plan, self._network, self._security, self._storage)
        Etcd(*ground, self._secrets.profiles, user_data, self._booting)

    def control_plane(self) -> None:
        user_data = self._user_data(self._payloads[API_SERVERS], API_SERVERS)
        ground = (self._cluster, self._plan, self._network, self._security, self._storage)
        self._plane = ControlPlane(*ground, self._secrets.profiles[API_SERVERS], user_data, self._booting)
        Dns(self._cluster, self._plan, self._network, self._plane, self._own)

    def workers(self) -> None:
        if self._pools:
            user_data = {name: self._user_data(payload, WORKERS) for name, payload in self._pools.items()}
            ground = Ground(self._network, self._security, self._storage, self._secrets.pools)
            Workers(self._cluster, ground, user_data, self._booting)

    def sites(self) -> None:
        if self._network.vpn:
            self._ends = Vpn(self._cluster, self._network.vpn, self._own).ends

    def buckets(self) -> backups.Buckets:
        return self._storage.buckets()

    def facts(self) -> pulumi.Output[Facts]:
        return facts.gather(public_target=self._plane.public, gateway_ends=self._ends)

    def _disk(self, role: RoleName) -> Disk:
        return etcd.disk_of(self._cluster, role)

    def _user_data(self, payload: Payload, reader: str, hostname: str | None = None) -> str:
        return render(payload, AwsStore(self._cluster.name, reader), hostname)


def refuse_other_partitions(cluster: Cluster) -> None:
    """Refuse China, GovCloud and so on: they have separate accounts, ARNs and service names, and are not in the catalogue."""
    region = cluster.spec.control_plane.region
    if region and region.startswith(_ELSEWHERE):
        raise ValueError(
            f"control_plane.region {region}: menagerie builds in regions of the partition aws, but this one belongs to another "
            "(China, GovCloud or an isolated one); write a region of cluster/catalogue/aws.yaml"
        )
