"""Azure as a provider; it reads like a table of contents."""

from __future__ import annotations

import pulumi
import pulumi_azure_native as azure

from cluster.files import Disk
from cluster.spec import Cluster, RoleName
from cluster.storage import controllers_pool
from etcd.backups import prefix
from network.addresses import AddressPlan
from stacks import backups, facts, payloads
from stacks.azure import etcd, machines, rights, roles
from stacks.azure.control_plane import ControlPlane
from stacks.azure.dns import Dns
from stacks.azure.endpoints import Endpoints
from stacks.azure.etcd import Etcd
from stacks.azure.keys import Keys
from stacks.azure.network import GATEWAY_SUBNET, Network
from stacks.azure.secrets import Secrets, identities_of
from stacks.azure.security import Security
from stacks.azure.storage import Storage
from stacks.azure.tags import group, provider, workers_group
from stacks.azure.volumes import CONTROLLERS, Volumes
from stacks.azure.vpn import Vpn
from stacks.azure.workers import Workers
from stacks.cloud_provider import CloudProvider
from stacks.cloud_store import API_SERVERS, WORKERS, bundle_name
from stacks.facts import Facts
from stacks.pki import Pki


class AzureProvider(CloudProvider):
    """See `stacks.provider.Provider`."""

    def __init__(self, cluster: Cluster, plan: AddressPlan) -> None:
        super().__init__(cluster, plan, provider(cluster))

    def network(self) -> None:
        self._group = group(self._cluster, self._own)
        self._workers_group = workers_group(self._cluster, self._own) if self._cluster.spec.cloud_workers else None
        name = self._group.name
        security = Security(self._cluster, self._plan, name, self._source, self._own)
        self._network = Network(self._cluster, name, security.group, self._own)
        Dns(self._cluster, self._plan, name, self._network, self._own)

    def storage(self) -> None:
        self._account = azure.authorization.get_client_config_output(
            opts=pulumi.InvokeOutputOptions(provider=self._own.provider)
        )
        name = self._group.name
        self._keys = Keys(self._cluster, name, self._account, self._own)
        self._storage = Storage(self._cluster, name, self._network, self._keys, self._own)
        blobs = self._storage.account.id
        self._endpoints = Endpoints(self._cluster, name, self._network, self._keys.vault.id, blobs, self._own)

    def secrets(self, pki: Pki) -> None:
        self._assemble_payloads(machines.program(self._cluster))
        workers = list(dict.fromkeys(map(self._reader_of, self._pools)))
        group, readers = self._group.name, [*self._payloads, *workers]
        self._identities = identities_of(self._cluster, group, readers, self._own)
        classes = self._volumes() if controllers_pool(self._cluster.spec) else None
        # A host that has a second identity for some other reason must still use this one.
        own = {host: {"AZURE_CLIENT_ID": identity.client_id} for host, identity in self._identities.items()}
        identity = {"client_id": self._identities[API_SERVERS].client_id}
        secrets_ = self._bucket_secrets(pki, own, identity)
        stored = payloads.stored(self._cluster, self._plan, pki, self._payloads, secrets_, storage_classes=classes)
        bundles = {reader: {bundle_name(reader): values[bundle_name(reader)]} for reader, values in stored.items()}
        # The CAs to trust are not secret, so they are in no bundle.
        public = {reader: pki.for_worker() for reader in workers}
        writer = self._role("join-token-writer", (rights.WRITE_SECRET,)) if workers else None
        everything = (self._keys, self._identities, bundles, public, writer)
        secrets = Secrets(self._cluster, group, *everything, self._own)
        # The vault has no address until its endpoint has one.
        self._boots = {reader: boot.behind(self._endpoints.made) for reader, boot in secrets.boots.items()}
        self._permit_audit_logs()
        self._permit_reading_machines()
        self._permit_backups()

    def etcd(self) -> None:
        subnet = self._network.subnets["etcd"]
        everything = (self._cluster, self._plan, self._group.name, subnet, self._keys)
        Etcd(*everything, self._boots, self._payloads, self._own)

    def control_plane(self) -> None:
        subnet, boot = self._network.subnets["api-servers"], self._boots[API_SERVERS]
        everything = (self._cluster, self._plan, self._group, subnet, self._keys, boot)
        self._plane = ControlPlane(*everything, self._payloads[API_SERVERS], self._own)

    def workers(self) -> None:
        if self._workers_group:
            subnet, group = self._network.subnets["workers"], self._workers_group.name
            boots = {pool: self._boots[self._reader_of(pool)] for pool in self._pools}
            Workers(self._cluster, group, subnet, self._keys, boots, self._pools, self._own)

    def sites(self) -> None:
        if GATEWAY_SUBNET in self._network.subnets:
            self._ends = Vpn(self._cluster, self._group, self._network.subnets[GATEWAY_SUBNET], self._own).ends

    def buckets(self) -> backups.Buckets:
        return self._storage.buckets()

    def facts(self) -> pulumi.Output[Facts]:
        return facts.gather(public_target=self._plane.public_target, gateway_ends=self._ends)

    def _disk(self, role: RoleName) -> Disk:
        return etcd.disk_of(self._cluster, role)

    def _role(self, name: str, data_actions: tuple[str, ...], actions: tuple[str, ...] = ()) -> pulumi.Output[str]:
        where = (self._cluster, name, [self._group], self._keys.subscription, self._own)
        return roles.custom_role(*where, actions=actions, data_actions=data_actions)

    def _reader_of(self, pool: str) -> str:
        """Return the reader as which a pool's machines read the store."""
        return CONTROLLERS if pool == controllers_pool(self._cluster.spec) else WORKERS

    def _volumes(self) -> pulumi.Output[str]:
        """Return the volumes' classes; created after the controllers have their permissions."""
        if self._workers_group is None:
            raise ValueError("there are volumes but no workers in the region")
        volumes = Volumes(
            self._cluster,
            self._group,
            self._workers_group,
            self._account,
            self._keys,
            self._storage,
            self._endpoints,
            self._identities[CONTROLLERS],
            self._own,
        )
        return volumes.classes

    def _permit_audit_logs(self) -> None:
        """Permit API servers to add blobs to the container, and nothing else."""
        role_id = self._role("audit-log-writer", rights.ADD_BLOBS)
        principal = self._identities[API_SERVERS].principal_id
        roles.assign("audit-logs", role_id, principal, self._storage.audit.id, self._own)

    def _permit_reading_machines(self) -> None:
        """Permit API servers to read the machines of pools, and to change nothing."""
        if self._workers_group is None:
            return
        groups, where = [self._group, self._workers_group], (self._keys.subscription, self._own)
        role_id = roles.custom_role(self._cluster, "machine-reader", groups, *where, actions=machines.READ_MACHINES)
        principal = self._identities[API_SERVERS].principal_id
        roles.assign("machines", role_id, principal, self._workers_group.id, self._own)

    def _permit_backups(self) -> None:
        """Permit hosts whose etcd has backups to use the blobs in its folder of the container, except their versions."""
        if self._storage.backups is None:
            return
        role_id = self._role("backup-keeper", rights.USE_BLOBS, rights.SEE_CONTAINER)
        for host, etcds in backups.hosts_with_backups(self._cluster, self._plan).items():
            principal, container = self._identities[host].principal_id, self._storage.backups.id
            condition = rights.only_below([prefix(self._cluster.name, role) for role in etcds])
            roles.assign(f"{host}-backups", role_id, principal, container, self._own, condition)
