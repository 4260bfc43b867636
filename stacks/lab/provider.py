"""The lab as a provider: what every cloud offers, on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from cluster.artefacts import ArtefactSource
from cluster.files import JOIN_TOKEN
from cluster.spec import Cluster
from control_plane.ports import API_PORT, KONNECTIVITY_PORT
from etcd.apiserver import probe_path
from etcd.members import data_dir, members
from lab import balancer, plan
from lab.balancer import BalancerSpec
from lab.hosts import HostSpec
from lab.prepare import lab_spec, prepare
from network.addresses import ROLES, AddressPlan, HostAddress
from stacks.lab.disks import disks_of
from stacks.lab.dynamic import DataCentre, Host, LoadBalancer, SecretStore, Volume
from stacks.lab.ssh import SshKey
from stacks.lab.store import LabStore
from stacks.lab.workers import between_workers, workers_in_region
from stacks.payloads import API_SERVERS, WORKERS, payloads, readable, reader, secrets, worker_payloads
from stacks.pki import Pki
from userdata import Payload, render


class LabProvider:
    """See `stacks.provider.Provider`. Needs what `lab.prepare` makes, and makes it if it is missing."""

    def __init__(self, cluster: Cluster, plan: AddressPlan) -> None:
        self._cluster = cluster
        self._plan = plan
        self._prepared = prepare()
        ports = (API_PORT, KONNECTIVITY_PORT)
        self._lab = lab_spec(cluster, self._prepared, ports, between_workers(cluster))

    def network(self) -> None:
        self._datacentre = DataCentre("datacentre", self._lab, pulumi.ResourceOptions())

    def storage(self) -> None:
        """A lab keeps its snapshots where its machine keeps its state."""

    def secrets(self, pki: Pki) -> None:
        self._pki = pki
        self._payloads = payloads(self._cluster, self._plan, self.artefacts())
        pools = worker_payloads(self._cluster, self._plan, self.artefacts())
        self._workers = {worker.host: pools[worker.pool] for worker in workers_in_region(self._cluster)}
        policy = store_policy(self._cluster, self._plan, pki, self._payloads, self._workers)
        self._store = SecretStore("secrets", policy, self._on(self._datacentre))

    def etcd(self) -> None:
        disks: dict[str, dict[str, Volume]] = {}
        for role in ROLES:
            for member in members(self._cluster, role, self._plan):
                volume = Volume(member.name, self._on(self._datacentre))
                disks.setdefault(member.host, {})[data_dir(self._cluster, role)] = volume
        for host in {host for role in ROLES for host in self._plan.etcd[role]}:
            self._cloud_host(host, self._payload_of(host), disks[host.name])

    def control_plane(self) -> None:
        for host in self._plan.api_servers:
            self._cloud_host(host, self._payload_of(host), {})
        spec = BalancerSpec(
            self._plan.endpoint,
            {host.name: str(host.address) for host in self._plan.api_servers},
            ca_pem="",
            health_path=probe_path(),
            api_port=API_PORT,
            konnectivity_port=KONNECTIVITY_PORT,
        )
        LoadBalancer("load-balancer", spec, self._pki.kubernetes.certificate, self._on(self._datacentre))

    def workers(self) -> None:
        for worker, payload in self._workers.items():
            self._cloud_host(worker, payload, {}, is_worker=True)
        self._machines_at_sites()

    def _machines_at_sites(self) -> None:
        self._ssh = SshKey("operator-ssh", pulumi.ResourceOptions(parent=self._pki))
        self._host_keys = {}
        for pool, host in self._cluster.host_list():
            key = SshKey(f"{host.name}-ssh", pulumi.ResourceOptions(parent=self._pki))
            self._host_keys[host.name] = key
            disks = disks_of(self._cluster, pool, host.name)
            spec = HostSpec(host.name, "onprem", plan.rack(host.rack), str(host.address), disks=disks)
            own = {"authorized_keys": [self._ssh.public_key], "host_key": key.private_key}
            Host(spec, self._lab.image, self._on(self._datacentre), **own)

    def sites(self) -> None:
        """The racks of a lab's site are on the same router as its region."""

    def artefacts(self) -> ArtefactSource:
        return ArtefactSource(plan.MIRROR_URL, self._prepared.mirror.sha256, plan.REGISTRY)

    def facts(self) -> pulumi.Output[dict[str, str]]:
        status = balancer.status_url(self._plan.endpoint)
        keys = {f"ssh_host_key/{name}": key.public_key for name, key in self._host_keys.items()}
        found: pulumi.Output[dict[str, str]] = pulumi.Output.all(
            load_balancer_status=status, ssh_private_key=self._ssh.private_key, **keys
        )
        return found

    def _payload_of(self, host: HostAddress) -> Payload:
        return self._payloads[reader(self._plan, host.name)]

    def _cloud_host(
        self, host: HostAddress, payload: Payload, disks: dict[str, Volume], *, is_worker: bool = False
    ) -> None:
        user_data = render(payload, LabStore(plan.STORE_URL), host.name)
        volumes = {mount: volume.pulumi_resource_name for mount, volume in disks.items()}
        segment = plan.WORKERS if is_worker else plan.CLOUD
        spec = HostSpec(host.name, "worker" if is_worker else "cloud", segment, str(host.address), user_data, volumes)
        Host(spec, self._lab.image, self._on(self._store, *disks.values()))

    @staticmethod
    def _on(*resources: pulumi.Resource) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(depends_on=list(resources))


def store_policy(
    cluster: Cluster,
    plan: AddressPlan,
    pki: Pki,
    payloads: Mapping[str, Payload],
    by_worker: Mapping[HostAddress, Payload] | None = None,
) -> dict[str, dict[str, Any]]:
    """Host address -> what that host may read, by name, and the names that it may write; see `lab.store.Policy`.

    by_worker: the payloads of workers in the region. They read the join token, which API servers write and cannot read.
    """
    own = readable(cluster, plan, pki, payloads)
    writes = {API_SERVERS: [JOIN_TOKEN]} if by_worker else {}
    found: dict[str, dict[str, Any]] = {}
    for host in plan.hosts():
        name = reader(plan, host.name)
        found[str(host.address)] = {"read": own[name], "write": writes.get(name, [])}
    for host, payload in (by_worker or {}).items():
        values = {payload.name: payload.packed(), JOIN_TOKEN: "", **secrets(cluster, plan, pki)[WORKERS]}
        found[str(host.address)] = {"read": values, "write": []}
    return found
