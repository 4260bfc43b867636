"""Azure as a provider; reads as its table of contents."""

from __future__ import annotations

import pulumi
import pulumi_azure_native as azure

from cluster.artefacts import ArtefactSource
from cluster.files import Disk
from cluster.sources import source_of
from cluster.spec import Cluster, RoleName
from network.addresses import ROLES, AddressPlan
from stacks import payloads
from stacks.azure import etcd, roles
from stacks.azure.control_plane import ControlPlane
from stacks.azure.dns import Dns
from stacks.azure.endpoints import Endpoints
from stacks.azure.etcd import Etcd
from stacks.azure.keys import Keys
from stacks.azure.network import GATEWAY_SUBNET, Network
from stacks.azure.secrets import Secrets
from stacks.azure.security import SecurityGroups
from stacks.azure.storage import Storage
from stacks.azure.tags import group, provider
from stacks.azure.vpn import Vpn
from stacks.azure.workers import Workers
from stacks.pki import Pki


class AzureProvider:
    """See `stacks.provider.Provider`."""

    def __init__(self, cluster: Cluster, plan: AddressPlan) -> None:
        self._cluster = cluster
        self._plan = plan
        self._source = source_of(cluster.spec)
        self._own = pulumi.ResourceOptions(provider=provider(cluster))

    def network(self) -> None:
        self._group = group(self._cluster, self._own)
        name = self._group.name
        security = SecurityGroups(self._cluster, self._plan, name, self._source, self._own)
        self._network = Network(self._cluster, name, security.of, self._own)
        Dns(self._cluster, self._plan, name, self._network, self._own)

    def storage(self) -> None:
        account = azure.authorization.get_client_config_output(
            opts=pulumi.InvokeOutputOptions(provider=self._own.provider)
        )
        name = self._group.name
        self._keys = Keys(self._cluster, name, account, self._own)
        self._storage = Storage(self._cluster, name, self._network, self._keys, self._own)
        ids = (self._keys.vault.id, self._storage.account.id)
        self._endpoints = Endpoints(self._cluster, name, self._network, *ids, self._own)

    def secrets(self, pki: Pki) -> None:
        self._payloads = payloads.payloads(self._cluster, self._plan, self._source, self._disk)
        self._pools = (
            payloads.worker_payloads(self._cluster, self._plan, self._source)
            if self._cluster.spec.cloud_workers
            else {}
        )
        stored = payloads.stored(self._cluster, self._plan, pki, self._payloads, self._pools)
        writer = self._role("join-token-writer", (roles.WRITE_SECRET,)) if self._pools else None
        owners = {payload.name: f"pool-{pool}" for pool, payload in reversed(self._pools.items())}
        owners |= {payload.name: reader for reader, payload in self._payloads.items()}
        secrets = Secrets(self._cluster, self._group.name, self._keys, stored, owners, writer, self._own)
        # The vault has no address before its endpoint has one.
        self._boots = {reader: boot.behind(self._endpoints.made) for reader, boot in secrets.boots.items()}
        self._let_backups_be_written(secrets)

    def etcd(self) -> None:
        subnet = self._network.subnets["etcd"]
        everything = (self._cluster, self._plan, self._group.name, subnet, self._keys)
        Etcd(*everything, self._boots, self._payloads, self._own)

    def control_plane(self) -> None:
        subnet, boot = self._network.subnets["api-servers"], self._boots[payloads.API_SERVERS]
        everything = (self._cluster, self._plan, self._group, subnet, self._keys.disks, boot)
        ControlPlane(*everything, self._payloads[payloads.API_SERVERS], self._own)

    def workers(self) -> None:
        if self._pools:
            subnet, boot = self._network.subnets["workers"], self._boots[payloads.WORKERS]
            Workers(self._cluster, self._group.name, subnet, self._keys.disks, boot, self._pools, self._own)

    def sites(self) -> None:
        if GATEWAY_SUBNET in self._network.subnets:
            Vpn(self._cluster, self._group, self._network.subnets[GATEWAY_SUBNET], self._own)

    def artefacts(self) -> ArtefactSource:
        return self._source

    def facts(self) -> pulumi.Output[dict[str, str]]:
        nothing: dict[str, str] = {}
        return pulumi.Output.from_input(nothing)

    def _disk(self, role: RoleName) -> Disk:
        return etcd.disk_of(self._cluster, role)

    def _role(self, name: str, data_actions: tuple[str, ...]) -> pulumi.Output[str]:
        return roles.own(self._cluster, name, data_actions, self._group, self._keys.subscription, self._own)

    def _let_backups_be_written(self, secrets: Secrets) -> None:
        """Hosts whose etcd has backups may add to the container, and neither read nor delete there."""
        writing = [role for role in ROLES if etcd.keeps_backups(self._cluster, role)]
        hosts = dict.fromkeys(host.name for role in writing for host in self._plan.etcd[role])
        if not hosts:
            return
        role_id = self._role("backup-writer", roles.WRITE_BLOBS)
        for host in hosts:
            principal = secrets.identities[host].principal_id
            roles.assign(f"{host}-backups", role_id, principal, self._storage.backups.id, self._own)
