"""Side B: the same cluster from the same binaries without the toolkit, by plain commands inside the hosts.

It leaves out several things, which is to its advantage: TLS between and towards etcds, checksums, encryption of secrets,
audit log, konnectivity, kube-proxy, CoreDNS, rotation of the kubelet's serving certificate. It does everything in parallel
that can be. The hosts, the mirror and the load balancer are the lab's, as on side A.
"""

from __future__ import annotations

import base64
import json
import resource
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from kubernetes import config as kubeconfig

from clients.waiting import nodes_missing, wait_until
from cluster.artefacts import catalogue
from cluster.spec import Cluster, RoleName
from components.control_plane.ports import API_PORT, KONNECTIVITY_PORT
from etcd.apiserver import probe_path
from network import addresses
from network.addresses import HostAddress
from network.flannel import net_conf
from sandbox.lab import balancer, clean, datacentre, hosts, images, plan
from sandbox.lab.hosts import HostSpec
from sandbox.lab.plan import LabSpec
from sandbox.lab.prepare import lab_spec, prepare
from stacks.lab.workers import openings, workers_in_region
from tests.bench import boot
from tests.bench.group import lab_cpu_s
from tests.bench.toolkit import host_names, kinds

_HOSTS = Path(__file__).parent / "hosts"
_TOKEN = "abcdef.0123456789abcdef"  # has the form of a bootstrap token; the cluster lives for a minute
_COMMAND_S, _READY_S = 180, 180
_API_PROGRAMS = ("kubeadm", "kubectl", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


class BareError(Exception):
    """A command inside a host failed; the text is the command's."""


@dataclass(frozen=True)
class Run:
    """One bring-up by hand; the fields are those of `tests.bench.toolkit.Run`.

    In `ready_cpu_s`, the CPU time of commands inside hosts counts as the controller's: they run in its control group.
    """

    seconds: float
    booted_to_ready_s: float
    started_to_ready_s: float
    ready_cpu_s: Mapping[str, float]
    steps: Mapping[str, float]


def measure(cluster: Cluster) -> Run:
    """Bring the cluster up and destroy it. This checkout must have no lab."""
    began, used = time.monotonic(), _own_cpu_s()
    steps = _Steps(began)
    prepared = prepare(kubernetes=cluster.spec.kubernetes.version)
    lab = lab_spec(cluster, prepared, (API_PORT, KONNECTIVITY_PORT), **openings(cluster, addresses.plan(cluster)))
    try:
        datacentre.ensure(lab, partial(images.publish, prepared.images))
        with ThreadPoolExecutor(32) as pool:
            _make_hosts(cluster, lab, pool)
            steps.done("data centre and hosts")
            _Sequence(cluster, lab, pool, steps).run()
        ready = time.monotonic()
        cpu = {"controller": _own_cpu_s() - used, **lab_cpu_s(kinds(cluster))}
        boots = boot.read(host_names(cluster))
    finally:
        clean.everything()
    return Run(ready - began, ready - boots.all_booted, ready - boots.first_start, cpu, steps.seconds)


class _Steps:
    """Seconds of consecutive steps."""

    def __init__(self, began: float) -> None:
        self.seconds: dict[str, float] = {}
        self._last = began

    def done(self, name: str) -> None:
        now = time.monotonic()
        self.seconds[name], self._last = now - self._last, now


def _own_cpu_s() -> float:
    """Return the CPU time of this process and its waited-for children, including every command inside a host."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _make_hosts(cluster: Cluster, lab: LabSpec, pool: ThreadPoolExecutor) -> None:
    key = ed25519.Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    cloud = addresses.plan(cluster).hosts()
    specs = [HostSpec(host.name, "cloud", plan.CLOUD, str(host.address), "#cloud-config\n") for host in cloud]
    for host in (worker.host for worker in workers_in_region(cluster)):
        specs.append(HostSpec(host.name, "worker", plan.WORKERS, str(host.address), "#cloud-config\n"))
    for _, onprem in cluster.host_list():
        segment = plan.rack(onprem.rack)
        specs.append(HostSpec(onprem.name, "onprem", segment, str(onprem.address), host_key=key.decode()))
    list(pool.map(lambda spec: hosts.create(spec, lab), specs))


class _Sequence:
    """The commands, as parallel as their dependencies allow."""

    def __init__(self, cluster: Cluster, lab: LabSpec, pool: ThreadPoolExecutor, steps: _Steps) -> None:
        self._steps = steps
        self._cluster = cluster
        self._lab = lab
        self._pool = pool
        self._plan = addresses.plan(cluster)
        self._workers = {host.name: str(host.address) for _, host in cluster.host_list()}
        self._workers |= {worker.host.name: str(worker.host.address) for worker in workers_in_region(cluster)}
        self._urls = {name: f"{plan.MIRROR_URL}/{artefact.source}" for name, artefact in catalogue().items()}

    def run(self) -> None:
        """Return when every node is Ready according to the API through the load balancer."""
        etcds = [self._pool.submit(self._etcd, role) for role in addresses.ROLES]
        workers = [self._pool.submit(self._worker, name) for name in self._workers]
        first, *others = self._plan.api_servers
        fetched = {host.name: self._pool.submit(self._fetch, host.name) for host in self._plan.api_servers}
        fetched[first.name].result()
        authorities = self._certificates(first, "")
        started = [self._pool.submit(self._further, host, fetched[host.name], authorities) for host in others]
        self._control_plane(first)
        ca = _script(first.name, "cat /etc/kubernetes/pki/ca.crt")
        self._balance(ca)
        self._on(first.name, "bootstrap", ADDRESS=str(first.address), ENDPOINT=self._plan.endpoint)
        self._steps.done("API server")
        _all(etcds + workers + started)
        self._steps.done("workers prepared")
        operator = yaml.safe_load(_script(first.name, "cat /etc/kubernetes/super-admin.conf"))
        joins = [self._pool.submit(self._join, name, address, ca) for name, address in self._workers.items()]
        expected = frozenset(self._workers)
        api = kubeconfig.new_client_from_config_dict(operator)
        wait_until(lambda: nodes_missing(api, expected), _READY_S, lambda _: None)
        _all(joins)
        self._steps.done("nodes Ready")

    def _etcd(self, role: RoleName) -> None:
        members = self._plan.etcd[role]
        cluster = ",".join(f"{member.name}=http://{member.address}:2380" for member in members)
        for started in [
            self._pool.submit(
                self._on,
                member.name,
                "etcd",
                NAME=member.name,
                ADDRESS=str(member.address),
                MEMBERS=cluster,
                ETCD_URL=self._urls["etcd"],
            )
            for member in members
        ]:
            started.result()

    def _fetch(self, name: str) -> None:
        self._on(name, "fetch", URLS=" ".join(self._urls[program] for program in _API_PROGRAMS))

    def _further(self, host: HostAddress, fetched: Future[None], authorities: str) -> None:
        fetched.result()
        self._certificates(host, authorities)
        self._control_plane(host)

    def _certificates(self, host: HostAddress, authorities: str) -> str:
        documents = kubeadm_documents(self._cluster, str(host.address), self._clients("main").split(","))
        text = "\n---\n".join(map(json.dumps, documents))
        return self._on(host.name, "certificates", CONFIG=text, AUTHORITIES=authorities)

    def _control_plane(self, host: HostAddress) -> None:
        network = self._cluster.spec.network
        self._on(
            host.name,
            "control-plane",
            ADDRESS=str(host.address),
            PODS=str(network.pods),
            SERVICES=str(network.services),
            ETCD_MAIN=self._clients("main"),
            ETCD_EVENTS=self._clients("events").replace(",", ";"),
        )

    def _clients(self, role: RoleName) -> str:
        return ",".join(f"http://{member.address}:2379" for member in self._plan.etcd[role])

    def _balance(self, ca: str) -> None:
        backends = {host.name: str(host.address) for host in self._plan.api_servers}
        balancer.ensure(
            balancer.BalancerSpec(self._plan.endpoint, backends, ca, probe_path(), API_PORT, KONNECTIVITY_PORT),
            self._lab,
        )

    def _worker(self, name: str) -> None:
        artefacts = {"CONTAINERD": "containerd", "CNI": "cni-plugins"}
        artefacts |= {program.upper(): program for program in ("runc", "kubelet", "kubeadm", "flanneld")}
        urls = {f"{variable}_URL": self._urls[artefact] for variable, artefact in artefacts.items()}
        self._on(name, "worker", NET_CONF=json.dumps(net_conf(self._cluster)), **urls)

    def _join(self, name: str, address: str, ca: str) -> None:
        endpoint = self._plan.endpoint
        discovery = json.dumps(discovery_kubeconfig(ca, endpoint))
        self._on(name, "join", NAME=name, ADDRESS=address, ENDPOINT=endpoint, TOKEN=_TOKEN, DISCOVERY=discovery)

    @staticmethod
    def _on(host: str, script: str, **variables: str) -> str:
        return _script(host, (_HOSTS / f"{script}.sh").read_text(), variables)


def kubeadm_documents(cluster: Cluster, address: str, etcds: list[str]) -> list[dict[str, Any]]:
    """Return kubeadm's minimal configuration; the kubelet's has the settings of the lab's hosts."""
    plan_, network = addresses.plan(cluster), cluster.spec.network
    version = "kubeadm.k8s.io/v1beta4"
    kubelet = {"cgroupDriver": "cgroupfs", "failCgroupV1": False, "failSwapOn": False}
    return [
        {
            "apiVersion": version,
            "kind": "InitConfiguration",
            "localAPIEndpoint": {"advertiseAddress": address, "bindPort": 6443},
            "bootstrapTokens": [{"token": _TOKEN, "ttl": "1h0m0s"}],
            "nodeRegistration": {"criSocket": "unix:///run/containerd/containerd.sock"},
        },
        {
            "apiVersion": version,
            "kind": "ClusterConfiguration",
            "kubernetesVersion": f"v{cluster.spec.kubernetes.version}",
            "controlPlaneEndpoint": f"{plan_.endpoint}:6443",
            "encryptionAlgorithm": "ECDSA-P256",  # as in the toolkit: faster to generate than RSA
            "networking": {"podSubnet": str(network.pods), "serviceSubnet": str(network.services)},
            "etcd": {"external": {"endpoints": etcds}},
        },
        {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", **kubelet},
    ]


def discovery_kubeconfig(ca_pem: str, endpoint: str) -> dict[str, Any]:
    """Return how a joining host finds and trusts the API. This is faster than waiting for a signed cluster-info."""
    ca = base64.b64encode(ca_pem.encode()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "it", "cluster": {"server": f"https://{endpoint}:6443", "certificate-authority-data": ca}}
        ],
        "users": [{"name": "joining", "user": {"token": _TOKEN}}],
        "contexts": [{"name": "join", "context": {"cluster": "it", "user": "joining"}}],
        "current-context": "join",
    }


def _script(host: str, text: str, variables: Mapping[str, str] | None = None) -> str:
    """Run a shell script inside a host, and return its standard output."""
    assignments = [f"{name}={value}" for name, value in (variables or {}).items()]
    done = hosts.run(host, ["env", *assignments, "sh", "-c", text], timeout=_COMMAND_S)
    if done.returncode:
        raise BareError(f"{host}: {text.splitlines()[0]} exited with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def _all(futures: list[Future[None]]) -> None:
    for future in futures:
        future.result()
