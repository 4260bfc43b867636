"""A region on this machine's loopback: real etcds, a real API server and controller manager, the real engine for keys,
real stores, and the hosts' real programs; each host has a folder for its files.

Not real: systemd, which is a few lines that start and stop processes, and other programs that only read a kubeconfig, which
are `sleep`. Workers are in `tests.operations.keys.workers`.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi

from clients.access import Access
from cluster.artefacts import ArtefactSource, catalogue
from cluster.outputs import ArtefactOutput, ClusterOutputs, EtcdOutput, HostOutput
from cluster.spec import Cluster
from components.control_plane import audit_log, controller_manager, kube_apiserver, metrics_keys, metrics_relay
from components.control_plane.ports import API_PORT
from etcd import relay
from etcd.backups import secret_name
from etcd.flags import flags as etcd_flags
from etcd.members import http_port, members, metrics_port, settings
from network.addresses import ROLES, plan
from sandbox.lab import store_server
from stacks.automation import ClusterStack, Summary
from stacks.backups import hosts_with_backups
from stacks.lab.store import LabStore
from stacks.payloads import API_SERVERS, digests, payloads, secrets
from stacks.pki import Pki
from tests.ports import at_ports, free_port
from tests.programs import program
from tests.waiting import until

if TYPE_CHECKING:
    from tests.operations.keys.workers import Worker

SOURCE = ArtefactSource("http://mirror", {artefact.source: "ab" * 32 for artefact in catalogue().values()})
_ROOTED = re.compile(r"(?<![\w.:/-])/(etc|var|run|usr/local/lib|usr/local/sbin)/")
_SYSTEMCTL = """#!/bin/sh
words=
for word; do case $word in -*) ;; *) words=$words/$word ;; esac; done
exec curl -sS --fail --max-time 120 {url}/{host}$words
"""
_IP = """#!/bin/sh
echo '[{{"addr_info": [{{"local": "{address}"}}]}}]'
"""

# kubeadm rejects a loopback address for an API server, so it gets another one, and this one as a name.
_KUBEADM = r"""#!/bin/sh
for word; do [ "$before" = --config ] && config=$word; before=$word; done
sed -E -i 's/advertiseAddress: .*127.*/advertiseAddress: 192.0.2.1/; s/^( *)certSANs:$/\1certSANs:\n\1- {address}/' "$config"
exec {kubeadm} "$@"
"""


@dataclass
class Unit:
    command: list[str]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    restarts: int = 0
    turn: threading.RLock = field(default_factory=threading.RLock)

    def start(self) -> None:
        self.started = time.monotonic()
        clean = {key: value for key, value in os.environ.items() if not key.startswith("ETCD")}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, env=clean)

    def restart(self) -> None:
        with self.turn:
            self.stop()
            self.start()
            self.restarts += 1

    def start_again(self) -> None:
        """Restart an ended process, as systemd does: an API server exits if its etcd is late, others exit without an API."""
        with self.turn:
            if self.process and self.process.poll() is not None:
                self.start()

    def kill(self) -> None:
        """Kill the process; it is no longer needed."""
        with self.turn:
            if self.process:
                self.process.kill()
                self.process.wait()

    def stop(self) -> None:
        if self.process:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def show(self) -> str:
        active = self.process is not None and self.process.poll() is None
        state = "active" if active else "inactive"
        return f"ActiveState={state}\nExecMainStartTimestampMonotonic={int(self.started * 1e6)}\n"


@dataclass
class Host:
    name: str
    reader: str
    address: str
    root: Path
    units: dict[str, Unit] = field(default_factory=dict)
    moved: dict[int, int] = field(default_factory=dict)
    """Ports of 127.0.0.1: as in the configuration -> on this machine, where all hosts share that address."""

    def rooted(self, text: str) -> str:
        text = text.replace("/usr/local/bin/kubeadm", f"{self.root}/bin/kubeadm")
        for tool in ("etcdctl", "etcd", "kube-apiserver", "kube-controller-manager"):
            text = re.sub(rf"/usr/local/bin/{tool}(?![\w-])", str(program(tool)), text)
        return _ROOTED.sub(rf"{self.root}/\1/", text)

    def run(self, *words: str, check: bool = False) -> subprocess.CompletedProcess[str]:
        path = f"{self.root}/bin:{os.environ['PATH']}"
        environment = {"PATH": path, "PYTHONPATH": f"{self.root}/usr/local/lib/menagerie", "HOME": str(self.root)}
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=check, timeout=300)

    def refresh(self) -> subprocess.CompletedProcess[str]:
        """Refresh, as the timer does."""
        return self.run(sys.executable, f"{self.root}/usr/local/sbin/menagerie-refresh")

    def logs(self) -> str:
        """Return the ends of its programs' logs."""
        return "\n".join(path.read_text(errors="replace")[-1500:] for path in self.root.glob("*.log"))


@dataclass
class Region:
    """others_at_restart: the health of all other members whenever one was restarted."""

    cluster: Cluster
    folder: Path
    engine: ClusterStack
    hosts: dict[str, Host] = field(default_factory=dict)
    workers: dict[str, Worker] = field(default_factory=dict)
    others_at_restart: list[tuple[str, bool]] = field(default_factory=list)
    ups: int = 0
    refreshing: bool = True

    def values(self) -> dict[str, str]:
        return self.engine.values()

    def configure(self, provider: str, key: str, value: str) -> None:
        self.engine.configure(provider, key, value)

    def outputs(self) -> dict[str, object]:
        return self.engine.outputs()

    def preview(self) -> Summary:
        return self.engine.preview()

    def up(self) -> tuple[Summary, dict[str, object]]:
        """Let the engine create keys, and put them into the stores."""
        self.ups += 1
        summary, outputs = self.engine.up()
        self.store(outputs)
        return summary, outputs

    def store(self, outputs: dict[str, object]) -> None:
        held = json.loads(str(outputs["secrets"]))
        for host in self.hosts.values():
            file = self.folder / f"{host.name}.policy"
            file.with_suffix(".new").write_text(json.dumps({"127.0.0.1": {"read": held[host.reader]}}))
            file.with_suffix(".new").replace(file)

    def access(self, outputs: dict[str, object] | None = None) -> Access:
        return Access.from_stack(self.cluster.name, outputs or self.outputs())

    @property
    def api(self) -> Host:
        return next(host for host in self.hosts.values() if host.reader == API_SERVERS)

    def members(self) -> list[Host]:
        return [host for host in self.hosts.values() if host.name.startswith("etcd-main")]

    def restarts(self) -> dict[str, int]:
        return {f"{h.name} {name}": unit.restarts for h in self.hosts.values() for name, unit in h.units.items()}

    def serves(self, host: Host) -> bool:
        for unit in host.units.values():
            unit.start_again()
        return host.run(sys.executable, "-m", "menagerie_host.serving").returncode == 0

    def restart(self, host: Host, name: str) -> None:
        if name == "etcd-main.service":
            others = [each for each in members(self.cluster, "main", plan(self.cluster)) if each.host != host.name]
            pki = host.root / "etc/etcd/main/pki"
            words = [str(program("etcdctl")), "--endpoints=" + ",".join(each.client_url for each in others)]
            words += [f"--cacert={pki}/ca.crt", f"--cert={pki}/peer.crt", f"--key={pki}/peer.key"]
            well = subprocess.run([*words, "endpoint", "health"], capture_output=True, check=False).returncode == 0
            self.others_at_restart.append((host.name, well))
        host.units[name].restart()

    def answer(self, words: list[str]) -> str:
        """Return systemctl's output on a host."""
        if words[0] in self.workers:
            return self.workers[words[0]].answer(words[1])
        host, verb, unit = self.hosts[words[0]], words[1], words[2]
        if verb == "restart":
            self.restart(host, unit)
            return ""
        return host.units[unit].show() if unit in host.units else "ActiveState=inactive\n"

    def keep_refreshing(self, host: Host, over: threading.Event) -> None:
        """Do what the timer does, but more often: at once when the store changes, and every ten seconds on API servers.

        A refresh of all hosts every ten seconds would take a fifth of a core.
        """
        policy, last, due = self.folder / f"{host.name}.policy", 0, 0.0
        every_s = 10 if host is self.api else 60
        while not over.wait(1.0):
            for unit in host.units.values():
                unit.start_again()
            changed = policy.stat().st_mtime_ns
            if self.refreshing and (changed != last or time.monotonic() > due):
                last, due = changed, time.monotonic() + every_s
                host.refresh()


def declared(cluster: Cluster) -> None:
    """Declare and export keys like `stacks.program.declare`, with the content of the stores."""
    addresses = plan(cluster)
    pki = Pki(cluster, addresses)
    cas = pulumi.Output.all(k=pki.kubernetes.signing_first, **{role: pki.etcd[role].trusted for role in ROLES})

    def outputs_of(pems: dict[str, str]) -> str:
        etcds = {
            role: EtcdOutput(
                members=tuple(HostOutput(name=h.name, address=str(h.address)) for h in addresses.etcd[role]),
                client_port=settings(cluster, role).client_port,
                ca_pem=pems[role],
            )
            for role in ROLES
        }
        api = str(addresses.api_servers[0].address)
        return ClusterOutputs(
            cluster=cluster.name, endpoint=f"{api}:{API_PORT}", konnectivity=f"{api}:8132", ca_pem=pems["k"],
            api_servers=(), etcds=etcds, artefacts=ArtefactOutput(mirror=None, sha256={}, registry=None),
        ).model_dump_json()  # fmt: skip

    no_buckets = {
        **{
            host: {secret_name(role): "{}" for role in roles}
            for host, roles in hosts_with_backups(cluster, addresses).items()
        },
        API_SERVERS: {audit_log.SECRET: "{}"},
    }
    readable = secrets(cluster, addresses, pki, no_buckets)
    held = {name: pulumi.Output.all(**values) for name, values in readable.items()}
    pulumi.export("outputs", pulumi.Output.unsecret(cas.apply(outputs_of)))
    pulumi.export("secrets", pulumi.Output.secret(pulumi.Output.all(**held).apply(json.dumps)))
    pulumi.export("key_rings", json.dumps({name: str(ring) for name, ring in pki.rings.items()}))
    pulumi.export("key_digests", digests(cluster, addresses, pki))
    pulumi.export("authorities", pki.authorities())
    for name, made in {"operator": pki.admin, "operator_etcd": pki.admin_etcd}.items():
        pulumi.export(f"{name}_certificate", made.certificate)
        pulumi.export(f"{name}_key", pulumi.Output.secret(made.private_key))


@contextmanager
def region(cluster: Cluster, folder: Path) -> Iterator[Region]:
    """Run the region, with a serving API. cluster: its `network.nodes` must be in 127.0.0.0/8."""
    engine = ClusterStack(cluster, lambda: declared(cluster), program("pulumi"), folder / "stack")
    made = Region(cluster, folder, engine)
    over = threading.Event()
    with ExitStack() as ends:
        url = ends.enter_context(_systemd(made))
        addresses = plan(cluster)
        texts = payloads(cluster, addresses, SOURCE)
        for each in addresses.hosts():
            is_api = each in addresses.api_servers
            # An API server names itself after the machine that it runs on.
            name, reader = (socket.gethostname(), API_SERVERS) if is_api else (each.name, each.name)
            host = Host(name, reader, str(each.address), folder / name)
            made.hosts[name] = host
            ends.enter_context(_placed(made, host, texts[reader].text, url))
        made.up()
        for host in made.hosts.values():
            host.refresh()
            _units(made, host)
            ends.callback(lambda host=host: [unit.kill() for unit in host.units.values()])
            for unit in host.units.values():
                unit.start()
        api = made.api
        until(lambda: made.serves(api), api.logs, 200, 0.3)
        api.run(sys.executable, "-m", "menagerie_host.bootstrap", check=True)
        threads = [threading.Thread(target=made.keep_refreshing, args=(h, over)) for h in made.hosts.values()]
        for thread in threads:
            thread.start()
        try:
            yield made
        finally:
            over.set()
            for thread in threads:
                thread.join(120)


@contextmanager
def _placed(made: Region, host: Host, payload: str, systemctl: str) -> Iterator[None]:
    """Place the host's files as menagerie-boot does, and run its store."""
    policy = made.folder / f"{host.name}.policy"
    store = store_server.make("127.0.0.1", 0, policy)
    store.RequestHandlerClass.log_message = lambda *_: None
    threading.Thread(target=store.serve_forever, args=(0.05,), daemon=True).start()
    text = host.rooted(payload).replace("etcd:etcd", "root:root").replace(
        "socket.gethostname()", f"'{host.name}'"
    )  # fmt: skip
    config = json.loads(text)
    kept = host.root / "var/lib/menagerie"
    kept.mkdir(parents=True)
    (kept / "payload").write_text(text)
    sha256 = subprocess.run(["sha256sum", kept / "payload"], capture_output=True, text=True, check=True).stdout
    (kept / "payload.sha256").write_text(f"{sha256.split()[0]}  payload\n")
    programs = {
        "usr/local/sbin/menagerie-secret": LabStore(f"http://127.0.0.1:{store.server_port}").script(),
        "bin/systemctl": _SYSTEMCTL.format(url=systemctl, host=host.name),
        "bin/ip": _IP.format(address=host.address),
        "bin/kubeadm": _KUBEADM.format(address=host.address, kubeadm=program("kubeadm")),
    }
    for path, script in programs.items():
        (host.root / path).parent.mkdir(parents=True, exist_ok=True)
        (host.root / path).write_text(script)
        (host.root / path).chmod(0o755)
    for file in config["files"]:
        path = Path(file["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file["text"])
        path.chmod(file["mode"])
    for folder in ("run/menagerie", "run/cluster-bootstrap", "var/log/kubernetes/audit"):
        (host.root / folder).mkdir(parents=True)
    try:
        yield
    finally:
        store.shutdown()
        store.server_close()


def _units(made: Region, host: Host) -> None:
    """Set up the host's units."""
    config = json.loads((host.root / "var/lib/menagerie/payload").read_text())
    for consumer in config["refresh"]["consumers"]:
        name = consumer["unit"]
        host.units.setdefault(name, Unit(["sleep", "infinity"], host.root / f"{name}.log"))
    for role in ROLES:
        for member in members(made.cluster, role, plan(made.cluster)):
            if member.host == host.name:
                host.units[f"etcd-{role}.service"].command = _etcd(made.cluster, role, member.name, host)
                _move(host, relay.SETTINGS)
                host.units[relay.UNIT].command = _with_credentials(
                    host, relay.NAME, relay.credentials(), relay.command()
                )
    if host.reader == API_SERVERS:
        host.units["kube-apiserver.service"].command = _api_server(made.cluster, host)
        manager = host.units["kube-controller-manager.service"]
        manager.command = _command("kube-controller-manager", _controller_manager(made.cluster, host), host)
        for unit in (metrics_keys.unit(), metrics_relay.unit()):
            name = unit.name.removesuffix(".service")
            host.units[unit.name].command = _with_credentials(host, name, dict(unit.credentials), unit.words)
        _move(host, metrics_relay.SETTINGS)
        # Loopback addresses can't be endpoints, so this host writes none.
        path = host.root / "etc/kubernetes/menagerie/host.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "relay_port": None}))


def _with_credentials(host: Host, name: str, credentials: Mapping[str, str], words: Sequence[str]) -> list[str]:
    """Return a program's command. Like systemd, it copies the unit's credentials at each start."""
    folder = host.root / "run/credentials" / name
    copies = [f"cp {host.rooted(path)} {folder}/{each}" for each, path in credentials.items()]
    library = f"{host.root}/usr/local/lib/menagerie"
    command = " ".join(host.rooted(word) for word in words[1:])
    run = f"export CREDENTIALS_DIRECTORY={folder} PYTHONPATH={library} && exec {sys.executable} {command}"
    return ["sh", "-c", " && ".join([f"mkdir -p {folder}", *copies, run])]


def _move(host: Host, settings_path: str) -> None:
    """Give a relay its host's own address, and the ports of programs on this machine."""
    path = Path(host.rooted(settings_path))
    settings_ = json.loads(path.read_text())
    upstreams = at_ports(settings_["upstreams"].values(), host.moved)
    if host.reader == API_SERVERS:
        upstreams = [url.replace("127.0.0.1", host.address) for url in upstreams]
    own = {"address": host.address, "upstreams": dict(zip(settings_["upstreams"], upstreams, strict=True))}
    path.write_text(json.dumps(settings_ | own))


def _etcd(cluster: Cluster, role: Any, name: str, host: Host) -> list[str]:
    """Return a member's command with its own flags, but with separate ports."""
    ports = (settings(cluster, role).client_port, metrics_port(cluster, role), http_port(cluster, role))
    host.moved |= {port: free_port() for port in ports}
    moved = at_ports(etcd_flags(cluster, role, name, plan(cluster)), host.moved)
    (host.root / "var/lib/etcd").mkdir(parents=True, exist_ok=True)
    return [str(program("etcd")), *(host.rooted(flag) for flag in moved)]


def _api_server(cluster: Cluster, host: Host) -> list[str]:
    """Return the command with the unit's flags, without tunnels to nodes."""
    table = kube_apiserver.flags(cluster, plan(cluster))
    # Loopback addresses can't be endpoints of a Service, so aggregated APIs are found by its name.
    for gone in ("egress-selector-config-file", "shutdown-delay-duration", "enable-aggregator-routing"):
        del table[gone]
    table |= {"advertise-address": host.address, "bind-address": host.address}
    return _command("kube-apiserver", table, host)


def _controller_manager(cluster: Cluster, host: Host) -> dict[str, str]:
    """Return the unit's flags. It has no server here, and its kubeconfig has the address that kubeadm got."""
    table = controller_manager.flags(cluster)
    for gone in ("authentication-kubeconfig", "authorization-kubeconfig"):
        del table[gone]
    return table | {"secure-port": "0", "master": f"https://{host.address}:{API_PORT}"}


def _command(name: str, table: dict[str, str], host: Host) -> list[str]:
    return [str(program(name)), *(f"--{flag}={host.rooted(value)}" for flag, value in table.items())]


@contextmanager
def _systemd(made: Region) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = made.answer(self.path.strip("/").split("/"))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
