"""Google Cloud as a provider; it reads like a table of contents."""

from __future__ import annotations

import pulumi
import pulumi_gcp as gcp

from cluster.files import Disk
from cluster.spec import Cluster, RoleName
from cluster.storage import controllers_pool
from cluster.tags import of_cluster
from network.addresses import AddressPlan
from stacks import backups, facts, payloads
from stacks.cloud_provider import CloudProvider
from stacks.cloud_store import API_SERVERS, bundle_name
from stacks.facts import Facts
from stacks.gcp import etcd, machines, network
from stacks.gcp.control_plane import ControlPlane
from stacks.gcp.dns import Dns
from stacks.gcp.endpoints import Endpoints
from stacks.gcp.etcd import Etcd
from stacks.gcp.keys import Keys
from stacks.gcp.network import Network
from stacks.gcp.public import PublicEndpoint
from stacks.gcp.secrets import Secrets
from stacks.gcp.security import Firewalls
from stacks.gcp.storage import Storage
from stacks.gcp.volumes import Volumes, classes
from stacks.gcp.vpn import Vpn
from stacks.gcp.workers import Workers
from stacks.pki import Pki


class GcpProvider(CloudProvider):
    """See `stacks.provider.Provider`."""

    def __init__(self, cluster: Cluster, plan: AddressPlan) -> None:
        super().__init__(cluster, plan, _google(cluster))
        self._public: PublicEndpoint | None = None

    def network(self) -> None:
        self._network = Network(self._cluster, self._own)
        Dns(self._cluster, self._plan, self._network, self._own)
        self._reachable = Endpoints(self._cluster, self._network, self._own).made

    def storage(self) -> None:
        self._keys = Keys(self._cluster, self._own)
        self._storage = Storage(self._cluster, self._network, self._keys, self._own)

    def secrets(self, pki: Pki) -> None:
        self._assemble_payloads(machines.program(self._cluster))
        classes_ = classes(self._cluster, self._keys, self._network)
        secrets_ = self._bucket_secrets(pki, {}, {})
        stored = payloads.stored(self._cluster, self._plan, pki, self._payloads, secrets_, self._pools, classes_)
        bundles = {reader: values[bundle_name(reader)] for reader, values in stored.items()}
        secrets = Secrets(self._cluster, self._keys, bundles, self._own)
        self._identities = secrets.identities
        self._storage.let_keep_audit_log(secrets.identities[API_SERVERS])
        self._storage.let_keep_backups(self._plan, secrets.identities)
        if controllers_pool(self._cluster.spec):
            Volumes(self._cluster, self._keys, secrets.identities, self._own)
        if self._cluster.spec.cloud_workers:
            machines.Machines(self._cluster, self._keys, secrets.identities[API_SERVERS], self._own)
        # Rules refer to hosts by their identities.
        firewalls = Firewalls(self._cluster, self._plan, self._network, secrets.identities, self._source, self._own)
        self._reachable = [*self._reachable, *firewalls.made]

    def etcd(self) -> None:
        subnet = self._network.subnets[network.ETCD]
        identities, payloads_ = self._identities, self._payloads
        Etcd(self._cluster, self._plan, subnet, self._keys, identities, payloads_, self._reachable, self._own)

    def control_plane(self) -> None:
        subnet = self._network.subnets[network.API_SERVERS]
        identity, payload = self._identities[API_SERVERS], self._payloads[API_SERVERS]
        where = (self._cluster, self._plan, self._network, subnet, self._keys)
        plane = ControlPlane(*where, identity, payload, self._reachable, self._own)
        if self._cluster.spec.control_plane.public:
            self._public = PublicEndpoint(self._cluster, plane, self._own)

    def workers(self) -> None:
        if self._pools:
            subnet, identities = self._network.subnets[network.WORKERS], self._identities
            Workers(self._cluster, subnet, self._keys, identities, self._pools, self._reachable, self._own)

    def sites(self) -> None:
        if any(site.vpn for site in self._cluster.spec.sites.values()):
            self._ends = Vpn(self._cluster, self._network, self._own).ends

    def buckets(self) -> backups.Buckets:
        return self._storage.buckets()

    def facts(self) -> pulumi.Output[Facts]:
        return facts.gather(public_target=self._public.address if self._public else None, gateway_ends=self._ends)

    def _disk(self, role: RoleName) -> Disk:
        return etcd.disk_of(self._cluster, role)


def _google(cluster: Cluster) -> gcp.Provider:
    """Return Google Cloud in the cluster's region. The project is gcp:project, else from the environment, as credentials are;
    an explicit provider object does not read the configuration."""
    return gcp.Provider(
        f"{cluster.name}-gcp",
        project=pulumi.Config("gcp").get("project"),
        region=cluster.spec.control_plane.region,
        # The provider adds them to what it creates itself, but not to the disks of a template.
        default_labels=of_cluster(cluster.name),
    )
