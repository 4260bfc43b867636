"""A control plane on this machine's loopback, with the programs and flags of a cluster's hosts.

One member per etcd, one API server, TLS everywhere, and audit log, encryption and admission as rendered. Each control plane
has its own network in 127.0.0.0/8, so several run side by side on the usual ports. Parts that need hosts are left out:
konnectivity, and with it the path to kubelets and webhooks.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from pathlib import Path

import yaml

from cluster.spec import Cluster, EtcdCluster, RoleName
from components.control_plane import controller_manager, kube_apiserver, scheduler, sizing
from components.control_plane.flags import Flags
from etcd import flags as etcd_flags
from etcd.members import members, metrics_port
from network.addresses import AddressPlan, plan
from tests.bench.calls import Api, Login
from tests.bench.fleet import fleet
from tests.bench.loopback_files import SCHEDULER_CONF, USERS, write
from tools import build

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
PATIENCE_S = 180.0
ADVERTISED = "192.0.2.1"
"""A documentation address (RFC 5737), because Kubernetes refuses loopback addresses as endpoints."""


class LoopbackError(Exception):
    """A program did not start; the text has the end of its log."""


@dataclass(frozen=True)
class Shape:
    """Properties of a control plane.

    nodes: number of nodes for its settings by size. defaults: use Kubernetes' defaults instead of those settings. split:
    whether Events have a separate etcd. fsync_delays: role of an etcd -> extra microseconds of each fdatasync call. quota:
    bytes of each etcd; None for the spec's. number: distinguishes control planes that run at the same time. gangs: as the
    spec's `components.scheduling.gangs`.
    """

    nodes: int
    number: int
    split: bool = True
    defaults: bool = False
    fsync_delays: Mapping[RoleName, int] = field(default_factory=dict)
    quota: int | None = None
    gangs: bool = False

    @property
    def roles(self) -> tuple[RoleName, ...]:
        return ("main", "events") if self.split else ("main",)


@dataclass(frozen=True)
class Loopback:
    """A running control plane. metrics: role -> URL of its etcd's metrics. pids: program or role -> process."""

    folder: Path
    address: str
    metrics: Mapping[RoleName, str]
    pids: Mapping[str, int]

    def login(self, user: str) -> Login:
        """Return the login of one of `loopback_files.USERS`."""
        home = self.folder / "users"
        return Login(
            self.address, str(self.folder / "etc/kubernetes/pki/ca.crt"), f"{home}/{user}.crt", f"{home}/{user}.key"
        )

    def kubeconfig(self, user: str) -> Path:
        return self.folder / "users" / f"{user}.conf"


def cluster_of(shape: Shape) -> Cluster:
    """Return the lab's spec for the shape's nodes, with one API server and one member per etcd, at loopback addresses."""
    cluster = fleet(shape.nodes)
    spec = cluster.spec
    etcds = spec.etcd.model_copy(
        update={"main": _alone(spec.etcd.main, shape.quota), "events": _alone(spec.etcd.events, shape.quota)}
    )
    network = spec.network.model_copy(
        update={
            "nodes": IPv4Network(f"127.{100 + os.getpid() % 100}.{shape.number}.0/24"),
            # A /24 per node: the lab's /16 has room for 256.
            "pods": IPv4Network("10.64.0.0/10"),
        }
    )
    api = spec.control_plane.model_copy(update={"api_servers": 1})
    scheduling = spec.scheduling.model_copy(update={"gangs": shape.gangs})
    changed = spec.model_copy(
        update={"etcd": etcds, "network": network, "control_plane": api, "scheduling": scheduling}
    )
    return Cluster.model_construct(spec=changed, hosts=cluster.hosts)


def _alone(etcd: EtcdCluster, quota: int | None) -> EtcdCluster:
    return etcd.model_copy(update={"members": 1, **({"quota": quota} if quota else {})})


@contextmanager
def running(
    shape: Shape, folder: Path, *, controllers: bool = True, left_out: Collection[str] = ()
) -> Iterator[Loopback]:
    """Run a control plane. controllers: also run the controller manager and the scheduler, except those in `left_out`."""
    programs = build.ensure(PROGRAMS)
    cluster = cluster_of(shape)
    plan_ = plan(cluster)
    write(cluster, plan_, folder)
    write_scheduler(shape, cluster, folder)
    commands: dict[str, list[str]] = {role: etcd(shape, cluster, plan_, role, folder) for role in shape.roles}
    commands["kube-apiserver"] = api_server(shape, cluster, plan_, folder)
    later = companions(shape, cluster, plan_, folder) if controllers else {}
    pids: dict[str, int] = {}
    plane = Loopback(
        folder,
        str(plan_.api_servers[0].address),
        {
            role: f"http://{members(cluster, role, plan_)[0].address}:{metrics_port(cluster, role)}/metrics"
            for role in shape.roles
        },
        pids,
    )
    with ExitStack() as ends:
        for name, command in commands.items():
            program = str(programs["etcd" if name in shape.roles else name])
            delay = shape.fsync_delays.get(name, 0)  # type: ignore[call-overload]
            argv = [*(_delayed(delay) if delay else ()), program, *command]
            pids[name] = ends.enter_context(started(argv, folder / f"{name}.log")).pid
        _wait(plane)
        # The controller manager waits ten seconds for an API and then exits (cmd/kube-controller-manager, WaitForAPIServer).
        for name in later.keys() - set(left_out):
            pids[name] = ends.enter_context(started([str(programs[name]), *later[name]], folder / f"{name}.log")).pid
        yield plane


def etcd(shape: Shape, cluster: Cluster, plan_: AddressPlan, role: RoleName, folder: Path) -> list[str]:
    """Return the rendered flags of an etcd's only member, which listens on its own address instead of 127.0.0.1."""
    (member,) = members(cluster, role, plan_)
    moved = [
        flag.replace("127.0.0.1", str(member.address)) for flag in etcd_flags.flags(cluster, role, member.name, plan_)
    ]
    duplicate = f",https://{member.address}:{member.client_port}"
    return [
        _under(folder, flag.replace(duplicate, "") if flag.startswith("--listen-client-urls=") else flag)
        for flag in moved
    ]


def api_server(shape: Shape, cluster: Cluster, plan_: AddressPlan, folder: Path) -> list[str]:
    """Return the rendered flags without konnectivity's and, with one etcd, without the overrides."""
    table = kube_apiserver.flags(cluster, plan_)
    left_out = {"egress-selector-config-file", *(() if shape.split else ("etcd-servers-overrides",))}
    own = {"advertise-address": ADVERTISED, "bind-address": str(plan_.api_servers[0].address)}
    return _words(shape, table | own, folder, left_out)


def write_scheduler(shape: Shape, cluster: Cluster, folder: Path) -> None:
    """Write the scheduler's rendered configuration, with its kubeconfig in the folder. `defaults`: with Kubernetes' limits."""
    config = yaml.safe_load(scheduler.render(cluster))
    config["clientConnection"]["kubeconfig"] = f"{folder}{SCHEDULER_CONF}"
    if shape.defaults:
        # Without these keys, Kubernetes uses its defaults.
        del config["clientConnection"]["qps"], config["clientConnection"]["burst"]
    (folder / scheduler.CONFIG.lstrip("/")).write_text(yaml.safe_dump(config))


def companions(shape: Shape, cluster: Cluster, plan_: AddressPlan, folder: Path) -> dict[str, list[str]]:
    """Return the rendered flags of the controller manager and the scheduler, at the API server's address."""
    own = {"bind-address": str(plan_.api_servers[0].address)}
    tables = {
        "kube-controller-manager": controller_manager.flags(cluster),
        "kube-scheduler": scheduler.flags(cluster, scheduler.CONFIG, SCHEDULER_CONF),
    }
    return {program: _words(shape, table | own, folder) for program, table in tables.items()}


def _words(shape: Shape, table: Flags, folder: Path, left_out: set[str] | None = None) -> list[str]:
    by_size = {setting.flag for setting in sizing.SETTINGS} if shape.defaults else set()
    dropped = by_size | (left_out or set())
    return [_under(folder, f"--{name}={value}") for name, value in table.items() if name not in dropped]


def _under(folder: Path, flag: str) -> str:
    """Return a flag with a host's path moved into the folder."""
    name, _, value = flag.partition("=")
    return f"{name}={folder}{value}" if value.startswith(("/etc/", "/var/")) else flag


def _delayed(microseconds: int) -> Sequence[str]:
    """Return a prefix that runs strace(1) as a grandchild, so the program is our child. seccomp limits it to fdatasync."""
    inject = f"inject=fdatasync:delay_enter={microseconds}"
    return ("strace", "-D", "-f", "--seccomp-bpf", "-e", "signal=none", "-e", inject, "-o", os.devnull)


@contextmanager
def started(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program for the length of a block, with its output in a file."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("ETCD")}
    with log.open("ab") as file:
        # If the bench is killed, the program is too.
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *command], stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=clean
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _wait(plane: Loopback) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with Api(plane.login(USERS[0].name)) as api:
            try:
                # One of the last objects that a new API server creates, and what the controller manager waits for.
                ready = ("/api/v1/namespaces/kube-node-lease", "/healthz")
                if all(api.call("GET", path)[0] == 200 for path in ready):
                    return
            except OSError:
                pass
        if time.monotonic() > deadline:
            log = (plane.folder / "kube-apiserver.log").read_text()[-2000:]
            raise LoopbackError(f"no API after {PATIENCE_S:.0f} s; the end of its log:\n{log}")
        time.sleep(0.3)
