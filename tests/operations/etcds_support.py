"""Two real etcds that share three hosts, an agent on each host, and an operator with certificates for them."""

from __future__ import annotations

import contextlib
import getpass
import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from menagerie_etcd.agent import Agent, Server
from menagerie_etcd.agent_settings import Settings, read
from menagerie_etcd.payload import Payload

from clients.etcd_client import ListedMember
from cluster.outputs import ArtefactOutput, ClusterOutputs, EtcdOutput, HostOutput
from cluster.spec import Cluster, RoleName
from etcd import agent as etcd_agent
from etcd.members import members, settings
from network.addresses import plan
from operations.etcds.look import EtcdAccess, EtcdView, reach, read_members
from operations.etcds.settling import once_settled
from operations.etcds.snapshots import EtcdSnapshot
from operations.record.journal import Unrecorded
from tests.etcd.real import Fleet, authority, issue, pems, until
from tests.operations.conftest import FakeAccess
from tests.operations.rolled_host import APPLY, RolledHost
from tests.ports import own_network
from tools.build import ensure

T = TypeVar("T")
ROLES: tuple[RoleName, ...] = ("main", "events")


@dataclass
class Units:
    """Fake systemd of one host: its etcds are processes of the fleet."""

    fleet: Fleet
    names: dict[str, tuple[str, str]]
    words: dict[str, str] = field(default_factory=dict)
    started: dict[str, float] = field(default_factory=dict)
    broken: bool = False
    rolled: RolledHost | None = None

    def is_active(self, unit: str) -> bool:
        if self.rolled and unit.startswith(APPLY):
            return self.rolled.is_active(unit)
        process = self.fleet.running.get(self.names[unit][1])
        return process is not None and process.poll() is None

    def start(self, unit: str) -> None:
        if not self.is_active(unit):
            self.started[unit] = time.time()
            self.fleet.start(*self.names[unit], more=self.words.get(unit, ""))

    def stop(self, unit: str) -> None:
        if self.broken:
            raise OSError("no systemd")
        if unit.startswith(APPLY):
            return
        process = self.fleet.running.pop(self.names[unit][1], None)
        if process:
            process.terminate()
            process.wait()

    def run(self, unit: str, timeout_s: float) -> None:
        assert self.rolled and unit.startswith(APPLY), unit
        self.rolled.run(unit)

    def said(self, unit: str) -> list[str]:
        return self.fleet.log(self.names[unit][1]).splitlines()

    def give(self, unit: str, words: str) -> None:
        self.words[unit] = words
        if words:
            threading.Thread(target=self._restart_ended, args=(unit,), daemon=True).start()

    def _restart_ended(self, unit: str) -> None:
        """Act as Restart=always for a joining member: it exits if its peer does not list it yet."""
        while self.words[unit]:
            process = self.fleet.running.get(self.names[unit][1])
            if process and process.poll() is not None:
                self.start(unit)
            time.sleep(0.5)


def quiet(_: str) -> contextlib.AbstractContextManager[None]:
    """Ignore steps."""
    return contextlib.nullcontext()


def silent(_: str) -> None:
    """Ignore progress."""


class Folder:
    """A repository whose snapshots are files."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def dump(self, snapshot_id: str, to: Path) -> None:
        to.write_bytes((self.path / snapshot_id).read_bytes())


class Cut(Exception):
    """The run ends here, as if it had been killed."""


class CutOperation(Unrecorded):
    """Ends the run twice at every step: before and after it is recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.cuts: list[str] = []

    def done(self, step: str, **facts: str) -> None:
        self._cut(f"before {step}")
        super().done(step, **facts)
        self._cut(f"after {step}")

    def _cut(self, where: str) -> None:
        if where not in self.cuts:
            self.cuts.append(where)
            raise Cut(where)


def cut_everywhere(run: Callable[[CutOperation], T]) -> tuple[T, list[str]]:
    """Run a verb again and again, interrupted at every possible point. Return its result and these points."""
    operation = CutOperation()
    while True:
        with contextlib.suppress(Cut):
            return run(operation), operation.cuts


@dataclass
class Site:
    """The whole test site. repository: the folder of snapshots."""

    fleet: Fleet
    access: FakeAccess
    units: dict[str, Units]
    repository: Path
    hosts: dict[str, RolledHost] = field(default_factory=dict)
    operations: list[Unrecorded] = field(default_factory=list)

    @property
    def cluster(self) -> Cluster:
        return self.fleet.cluster

    def etcd(self, role: RoleName = "main") -> EtcdAccess:
        return reach(self.cluster, self.access, role)  # type: ignore[arg-type]

    def view(self, role: RoleName = "main") -> EtcdView:
        return read_members(self.etcd(role))

    def ctl(self, role: str, *words: str, only: int | None = None) -> subprocess.CompletedProcess[str]:
        chosen = slice(None) if only is None else slice(only - 1, only)
        done: subprocess.CompletedProcess[str] = self.fleet.etcdctl(role, f"client-of-{role}", *words, members_=chosen)
        return done

    def put(self, role: str, key: str, value: str = "x") -> int:
        """Write a key. Return the revision."""
        done = self.ctl(role, "put", key, value, "-w", "json")
        assert done.returncode == 0, done.stderr
        return int(json.loads(done.stdout)["header"]["revision"])

    def keys(self, role: str, prefix: str) -> list[str]:
        return self.ctl(role, "get", prefix, "--prefix", "--keys-only").stdout.split()

    def snapshot(self, role: RoleName, name: str) -> EtcdSnapshot:
        """Create a snapshot in the repository, as a backup does."""
        path = self.repository / name
        path.unlink(missing_ok=True)
        done = self.ctl(role, "snapshot", "save", str(path), only=1)
        assert done.returncode == 0, done.stderr
        etcdutl = str(ensure(["etcdutl"])["etcdutl"])
        words = [etcdutl, "snapshot", "status", str(path), "-w", "json"]
        status = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
        return EtcdSnapshot(
            id=name,
            etcd=role,
            time=datetime.now(UTC),
            size=path.stat().st_size,
            revision=status["revision"],
            hash=f"{status['hash']:08x}",
            keys=len(self.keys(role, "")),
            cluster=self.cluster.name,
            cluster_id=next(iter(self.etcd(role).client.statuses().values())).cluster_id,
            verified_at=datetime.now(UTC),
        )

    def remove(self, name: str) -> ListedMember:
        """Remove a member of main, which makes it exit."""
        client = self.etcd().client
        gone = next(each for each in client.listed() if each.name == name)

        def out() -> None:
            if gone in client.listed():
                client.remove(gone)

        once_settled(out, silent)
        return gone

    def data(self, role: str, number: int) -> Path:
        return self.fleet.folder / f"etcd-{role}-{number}" / "var/lib/etcd" / role

    def make_whole(self) -> None:
        """Make every member healthy, and delete all old data."""
        for role in ROLES:
            etcd = self.etcd(role)
            for agent in etcd.agents.values():
                agent.act("start")
                agent.act("forget", older_than_s=-1)
            until(lambda etcd=etcd: not any(etcd.client.ailments().values()), f"etcd {role} healthy")


@contextlib.contextmanager
def site(build: Any, folder: Path, running: tuple[RoleName, ...] = ROLES) -> Iterator[Site]:
    """Run three hosts, each with a member of main and one of events; events has a quota of 16 MiB.

    Only events syncs to disk. running: the etcds to start.
    """
    events = {"members": 3, "hosts": "main", "quota": "16MiB"}
    cluster = build({"network": {"nodes": own_network()}, "etcd": {"events": events}})
    fleet = Fleet(cluster, folder, {role: authority(role) for role in ROLES}, unsynced=("main",))
    issue(fleet)
    repository = folder / "repository"
    repository.mkdir()
    certificate, key = pems("menagerie-operator", fleet.authorities["main"], ("client",))
    access = FakeAccess(_outputs(fleet), etcd_certificate=certificate, etcd_key=key)
    made = Site(fleet, access, {}, repository)
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: [fleet.kill(name) for name in list(fleet.running)])
        for role in ROLES:
            for member in members(cluster, role, plan(cluster)):
                (fleet.start if role in running else fleet.place)(role, member.name)
        for host in {each.host for each in members(cluster, "main", plan(cluster))}:
            stack.enter_context(_agent(made, host))
        for role in running:
            fleet.wait_until_healthy(role)
        yield made


def _outputs(fleet: Fleet) -> ClusterOutputs:
    etcds = {
        role: EtcdOutput(
            members=tuple(
                HostOutput(name=each.name, address=str(each.address))
                for each in members(fleet.cluster, role, plan(fleet.cluster))
            ),
            client_port=settings(fleet.cluster, role).client_port,
            ca_pem=fleet.authorities[role].pem,
        )
        for role in ROLES
    }
    nothing = ArtefactOutput(mirror=None, sha256={}, registry=None)
    return ClusterOutputs(
        cluster=fleet.cluster.name,
        endpoint="127.0.0.1:1",
        konnectivity="127.0.0.1:1",
        ca_pem="",
        api_servers=(),
        etcds=etcds,
        artefacts=nothing,
    )


@contextlib.contextmanager
def _agent(made: Site, host: str) -> Iterator[None]:
    """Run the agent of a host as a thread, with separate ports and paths."""
    fleet = made.fleet
    here = etcd_agent.on_host(made.cluster, host, plan(made.cluster))
    path = fleet.folder / f"{host}.json"
    path.write_text(etcd_agent.settings(made.cluster, here))
    settings_ = moved(read(path), fleet)
    units = Units(fleet, {each.unit: (each.role, each.name) for each in settings_.members.values()})
    made.units[host] = units
    units.rolled = rolled = RolledHost(host, fleet, units, here)
    made.hosts[host] = rolled
    server: Server | None = None

    def stop() -> None:
        if server:
            server.shutdown()
            # Closing is not enough: a process that another thread has just forked keeps the socket listening until it has
            # executed its program, and the next agent has the same address.
            server.socket.shutdown(socket.SHUT_RDWR)
            server.server_close()

    def restart() -> None:
        nonlocal server
        stop()
        payload = Payload(units, rolled.kept, rolled.handed)
        server = Server(Agent(settings_, units, lambda role: Folder(made.repository), payload))
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()

    rolled.restart_agent = restart
    restart()
    yield
    # A payload that is being applied may be about to restart the agent, which would then outlive its host.
    rolled.settle()
    stop()


def moved(original: Settings, fleet: Fleet) -> Settings:
    """Return a host's settings, moved into the fleet's folder."""
    programs = fleet.folder / "programs"
    programs.mkdir(exist_ok=True)
    for name, program in ensure(["etcd", "etcdctl", "etcdutl"]).items():
        if not (programs / name).exists():
            (programs / name).symlink_to(program)
    ca = fleet.folder / "agent-ca.crt"
    ca.write_text(fleet.authorities["main"].pem)

    def under(name: str, path: Path) -> Path:
        return fleet.folder / name / str(path).lstrip("/")

    members_ = {
        role: each._replace(
            data_dir=under(each.name, each.data_dir),
            pki=under(each.name, each.pki),
            metrics_port=fleet.metrics_of(each.name),
        )
        for role, each in original.members.items()
    }
    first = members_.get("main") or members_["events"]
    return original._replace(
        ca=ca,
        certificate=first.pki / "server.crt",
        key=first.pki / "server.key",
        user=getpass.getuser(),
        programs=programs,
        members=members_,
    )
