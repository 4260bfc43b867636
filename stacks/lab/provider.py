"""The lab as a provider: what every cloud provides, on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi

from cluster.artefacts import ArtefactSource
from cluster.files import JOIN_TOKEN
from cluster.outputs import BucketOutput
from cluster.spec import Cluster
from components.control_plane.ports import API_PORT, KONNECTIVITY_PORT
from components.userdata import Payload, render
from etcd.apiserver import probe_path
from etcd.backups import key_environment
from etcd.members import data_dir, members
from network.addresses import ROLES, AddressPlan, HostAddress
from sandbox.lab import balancer, plan
from sandbox.lab.balancer import BalancerSpec
from sandbox.lab.hosts import HostSpec
from sandbox.lab.prepare import lab_spec, prepare
from stacks import audit_logs, backups, facts, machines
from stacks.cloud_store import API_SERVERS, WORKERS
from stacks.facts import Facts
from stacks.lab.disks import disks_of
from stacks.lab.dynamic import Buckets, DataCentre, Host, LoadBalancer, SecretStore, Volume
from stacks.lab.ssh import SshKey
from stacks.lab.store import LabStore
from stacks.lab.workers import openings, possible_in_region, workers_in_region
from stacks.payloads import payloads, readable, reader, secrets, worker_payloads
from stacks.pki import Pki
from stacks.pki_resources import Secret

MACHINE = Path(__file__).with_name("menagerie_machine.py")
_ACCESS_KEY, _REGION = "menagerie", "us-east-1"
"""The bucket server has one key and no regions; it answers to this one."""


class LabProvider:
    """See `stacks.provider.Provider`. Needs the result of `sandbox.lab.prepare`, and creates it if it is missing."""

    def __init__(self, cluster: Cluster, plan: AddressPlan) -> None:
        self._cluster = cluster
        self._plan = plan
        self._prepared = prepare(kubernetes=cluster.spec.kubernetes.version)
        ports = (API_PORT, KONNECTIVITY_PORT)
        self._lab = lab_spec(cluster, self._prepared, ports, **openings(cluster, plan))

    def network(self) -> None:
        self._datacentre = DataCentre("datacentre", self._lab, pulumi.ResourceOptions())

    def storage(self) -> None:
        secret = Secret("bucket-secret-key", "hex", pulumi.ResourceOptions())
        self._key: dict[str, pulumi.Input[str]] = {"access_key_id": _ACCESS_KEY, "secret_access_key": secret.value}
        self._server = Buckets("buckets", self._key, self._on(self._datacentre))

    def secrets(self, pki: Pki) -> None:
        self._pki = pki
        self._payloads = payloads(
            self._cluster,
            self._plan,
            self.artefacts(),
            machine=machines.filled(MACHINE, {"STORE_URL": plan.STORE_URL}),
        )
        pools = worker_payloads(self._cluster, self._plan, self.artefacts())
        self._workers = {worker.host: pools[worker.pool] for worker in workers_in_region(self._cluster)}
        secrets_ = {
            **backups.secrets(self._cluster, self._plan, pki, self.buckets(), self._own_keys()),
            **audit_logs.secrets(self._cluster, self.buckets(), {"key": self._key}),
        }
        # Workers that the autoscaler creates later find their payload and keys already in the store.
        readers = {worker.host: pools[worker.pool] for worker in possible_in_region(self._cluster)}
        policy = store_policy(self._cluster, self._plan, pki, self._payloads, secrets_, readers)
        self._store = SecretStore("secrets", policy, self._on(self._datacentre))

    def etcd(self) -> None:
        disks: dict[str, dict[str, Volume]] = {}
        for role in ROLES:
            for member in members(self._cluster, role, self._plan):
                volume = Volume(member.name, self._on(self._datacentre))
                disks.setdefault(member.host, {})[data_dir(self._cluster, role)] = volume
        for host in {host for role in ROLES for host in self._plan.etcd[role]}:
            # As in the clouds: a change replaces the machine, and doing so to all members at once would lose the quorum.
            self._cloud_host(host, self._payload_of(host), disks[host.name], keeps=["user_data"])

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
        LoadBalancer("load-balancer", spec, self._pki.kubernetes.trusted, self._on(self._datacentre))

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
        """Do nothing: the racks of a lab's site are on the same router as its region."""

    def buckets(self) -> backups.Buckets:
        outputs = {
            use: BucketOutput(kind="s3", name=use, region=_REGION, endpoint=plan.BUCKETS_URL) for use in plan.BUCKETS
        }
        return pulumi.Output.from_input(outputs)

    def bucket_key(self) -> pulumi.Output[str]:
        return pulumi.Output.json_dumps(self._key)

    def _own_keys(self) -> dict[str, pulumi.Output[dict[str, str]]]:
        """Return the keys of hosts with backups: in a lab, identities give no access to buckets."""
        key = self.bucket_key().apply(key_environment)
        return dict.fromkeys(backups.hosts_with_backups(self._cluster, self._plan), key)

    def payloads(self) -> Mapping[str, Payload]:
        return self._payloads

    def artefacts(self) -> ArtefactSource:
        return ArtefactSource(plan.MIRROR_URL, self._prepared.mirror.sha256, plan.REGISTRY)

    def ssh_private_key(self) -> pulumi.Output[str]:
        return self._ssh.private_key

    def facts(self) -> pulumi.Output[Facts]:
        return facts.gather(
            load_balancer_status=balancer.status_url(self._plan.endpoint),
            host_keys={name: key.public_key for name, key in self._host_keys.items()},
        )

    def _payload_of(self, host: HostAddress) -> Payload:
        return self._payloads[reader(self._plan, host.name)]

    def _cloud_host(
        self,
        host: HostAddress,
        payload: Payload,
        disks: dict[str, Volume],
        *,
        is_worker: bool = False,
        keeps: list[str] | None = None,
    ) -> None:
        """Create a host. keeps: inputs that stay unchanged on an existing host."""
        user_data = render(payload, LabStore(plan.STORE_URL), host.name)
        volumes = {mount: volume.pulumi_resource_name for mount, volume in disks.items()}
        segment = plan.WORKERS if is_worker else plan.CLOUD
        spec = HostSpec(host.name, "worker" if is_worker else "cloud", segment, str(host.address), user_data, volumes)
        opts = pulumi.ResourceOptions.merge(
            self._on(self._store, *disks.values()), pulumi.ResourceOptions(ignore_changes=keeps)
        )
        Host(spec, self._lab.image, opts)

    @staticmethod
    def _on(*resources: pulumi.Resource) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(depends_on=list(resources))


def store_policy(
    cluster: Cluster,
    plan: AddressPlan,
    pki: Pki,
    payloads: Mapping[str, Payload],
    backups: Mapping[str, Mapping[str, pulumi.Input[str]]],
    by_worker: Mapping[HostAddress, Payload] | None = None,
) -> dict[str, dict[str, Any]]:
    """Return host address -> what that host may read, by name, the names that it may write, and the machines that it may see;
    see `sandbox.lab.store.Policy`.

    backups: the result of `stacks.backups.secrets`.
    by_worker: the payloads of workers in the region. They read the join token, which API servers write and cannot read.
    """
    own = readable(cluster, plan, pki, payloads, backups)
    writes = {API_SERVERS: [JOIN_TOKEN]} if by_worker else {}
    sees = {API_SERVERS: sorted(host.name for host in by_worker)} if by_worker else {}
    policy: dict[str, dict[str, Any]] = {}
    for host in plan.hosts():
        name = reader(plan, host.name)
        policy[str(host.address)] = {"read": own[name], "write": writes.get(name, []), "machines": sees.get(name, [])}
    for host, payload in (by_worker or {}).items():
        values = {payload.name: payload.packed(), JOIN_TOKEN: "", **secrets(cluster, plan, pki, {})[WORKERS]}
        policy[str(host.address)] = {"read": values, "write": []}
    return policy
