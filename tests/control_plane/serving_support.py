"""A control plane on loopback with its rendered flags, the approver of serving certificates as its unit starts it, and requests
with the identities of kubelets: real etcds, API server, controller manager, konnectivity.

There is no systemd, and TLS servers stand in for kubelets.
"""

from __future__ import annotations

import base64
import http.server
import ipaddress
import json
import os
import socket
import ssl
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from cluster.artefacts import ArtefactSource, catalogue
from cluster.spec import Cluster
from components.control_plane import host_config, konnectivity, manifests, paths
from components.control_plane.host.api import Api, ApiError
from network.addresses import plan
from stacks.certificates import Request, Signed, issue
from tests.bench.loopback import Shape, api_server, companions, etcd, started
from tests.bench.loopback_files import kubeconfig, write
from tests.ports import free_ports
from tests.programs import program
from tests.waiting import until

SHAPE = Shape(10, 0)
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SIGNER = "kubernetes.io/kubelet-serving"
APPROVER = "menagerie:kubelet-csr-approver"


@dataclass
class Plane:
    """A control plane. authority: Kubernetes' CA, which signs for clients and the API server."""

    cluster: Cluster
    folder: Path
    address: str
    authority: Signed
    _counter: list[int] = field(default_factory=lambda: [0])

    def signed(self, name: str, *groups: str) -> Signed:
        return issue(self.authority, Request(name, groups, usages=("client",)))

    def kubeconfig(self, name: str, *groups: str) -> Path:
        path = self.folder / "users" / f"{name.replace(':', '-')}.conf"
        path.write_text(kubeconfig(self.address, self.authority, self.signed(name, *groups)))
        return path

    def api(self, name: str = "admin", *groups: str) -> Api:
        return Api(self.kubeconfig(name, *(groups or ("system:masters",))))

    def node(self, name: str) -> Api:
        """Return the API with the identity of a node's kubelet."""
        return self.api(f"system:node:{name}", "system:nodes")

    def register(self, name: str, *addresses: str) -> None:
        """Register a Node with addresses, like a kubelet."""
        own = self.node(name)
        try:
            own.call("POST", "/api/v1/nodes", {"metadata": {"name": name}})
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
        self.say(name, *addresses)

    def say(self, name: str, *addresses: str) -> None:
        reported = [{"type": "InternalIP", "address": each} for each in addresses]
        status = {"addresses": reported, "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}}
        kind = "application/merge-patch+json"
        self.node(name).call("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, kind)

    def ask(self, name: str, names: Sequence[str], addresses: Sequence[str] = ()) -> tuple[str, str]:
        """Request a serving certificate as a kubelet; return the name of the request and the key."""
        self._counter[0] += 1
        key = ec.generate_private_key(ec.SECP256R1())
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        request_name = f"csr-{self._counter[0]}"
        spec = {
            "signerName": SIGNER,
            "request": base64.b64encode(request(key, name, names, addresses)).decode(),
            "usages": ["digital signature", "server auth"],
        }
        self.node(name).call("POST", CSRS, {"metadata": {"name": request_name}, "spec": spec})
        return request_name, pem.decode()

    def state(self, name: str) -> dict[str, Any]:
        status: dict[str, Any] = self.api().call("GET", f"{CSRS}/{name}").get("status", {})
        return status

    def approve(self, name: str) -> None:
        """Approve a request as an operator who checks nothing. The approver may have approved it before."""
        thing = self.api().call("GET", f"{CSRS}/{name}")
        thing["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "Test"}]}
        try:
            self.api().call("PUT", f"{CSRS}/{name}/approval", thing)
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise

    def given(self, name: str, key: str) -> Signed:
        """Return the certificate of an approved request."""
        wait(lambda: bool(self.state(name).get("certificate")), lambda: f"{name}: {self.state(name)}")
        return Signed(base64.b64decode(self.state(name)["certificate"]).decode(), key)

    def refused(self, name: str, good: tuple[str, Sequence[str], Sequence[str]]) -> bool:
        """Return whether a request is still undecided after a later, valid one was granted."""
        later, key = self.ask(*good)
        self.given(later, key)
        return not self.state(name).get("conditions")

    def trusted_by_clients_of_the_api(self, signed: Signed, name: str) -> str:
        """Return "" if clients that trust the cluster's authority, like kubelets, pods and operators, accept this server as `name`."""
        with listener("127.0.0.1", 0, signed, []) as port:
            tls = ssl.create_default_context(cadata=(self.folder / "etc/kubernetes/pki/ca.crt").read_text())
            try:
                with (
                    socket.create_connection(("127.0.0.1", port), 10) as plain,
                    tls.wrap_socket(plain, server_hostname=name),
                ):
                    return ""
            except ssl.SSLError as error:
                return str(error)


def request(key: ec.EllipticCurvePrivateKey, node: str, names: Sequence[str], addresses: Sequence[str]) -> bytes:
    subject = [(NameOID.ORGANIZATION_NAME, "system:nodes"), (NameOID.COMMON_NAME, f"system:node:{node}")]
    others: list[x509.GeneralName] = [x509.DNSName(each) for each in names]
    others += [x509.IPAddress(ipaddress.ip_address(each)) for each in addresses]
    builder = x509.CertificateSigningRequestBuilder(x509.Name([x509.NameAttribute(*each) for each in subject]))
    builder = builder.add_extension(x509.SubjectAlternativeName(others), critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@contextmanager
def listener(address: str, port: int, signed: Signed, requested: list[str], says: str = "stolen") -> Iterator[int]:
    """Run a TLS server in place of a kubelet or an impostor; yield its port. requested: the paths of its requests."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requested.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(says.encode())

        def log_message(self, *args: object) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        allow_reuse_address = True

        def handle_error(self, *args: object) -> None:
            pass

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as pem:
        pem.write(signed.certificate + signed.private_key)
        pem.flush()
        tls.load_cert_chain(pem.name)
    server = Server((address, port), Handler)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def wait(true: Callable[[], bool], why: Callable[[], str]) -> None:
    """Wait until `true` returns true; an unreachable or refusing server is not ready yet."""

    def is_ready() -> bool:
        with suppress(ApiError, OSError):
            return true()
        return False

    until(is_ready, why)


@contextmanager
def up(cluster: Cluster, folder: Path) -> Iterator[Plane]:
    """Run everything except workers. cluster: one API server and one member per etcd, in 127.0.0.0/8."""
    plan_ = plan(cluster)
    write(cluster, plan_, folder)
    pki = folder / paths.PKI.lstrip("/")
    authority = Signed((pki / "ca.crt").read_text(), (pki / "ca.key").read_text())
    plane = Plane(cluster, folder, str(plan_.api_servers[0].address), authority)
    socket_ = folder / "konnectivity.socket"
    egress = folder / paths.CONFIG.lstrip("/") / "egress.yaml"
    egress.write_text(egress.read_text().replace(paths.KONNECTIVITY_SOCKET, str(socket_)))
    api = [*api_server(SHAPE, cluster, plan_, folder), f"--egress-selector-config-file={egress}"]
    manager = companions(SHAPE, cluster, plan_, folder)["kube-controller-manager"]
    with ExitStack() as ends:

        def run(name: str, words: Sequence[str], log: str = "") -> None:
            ends.enter_context(started([str(program(name)), *words], folder / f"{log or name}.log"))

        for role in SHAPE.roles:
            run("etcd", etcd(SHAPE, cluster, plan_, role, folder), f"etcd-{role}")
        run("kube-apiserver", api)
        admin = plane.api()
        system, log = "/api/v1/namespaces/kube-system", folder / "kube-apiserver.log"
        wait(lambda: bool(admin.call("GET", system)), lambda: _end(log))
        for item in json.loads(manifests.render(cluster, plan_)):
            admin.apply(item["path"], item["object"], "menagerie", force=True)
        run("kube-controller-manager", manager)
        ends.enter_context(_approver(plane))
        yield plane


@contextmanager
def _approver(plane: Plane) -> Iterator[None]:
    """Run the approver as its unit does, with the files of its host."""
    cluster, folder = plane.cluster, plane.folder
    source = ArtefactSource(mirror=None, sha256={each.source: "0" * 64 for each in catalogue().values()})
    library = folder / "library/menagerie_host"
    library.mkdir(parents=True)
    for file in host_config(cluster, plan(cluster), source).files:
        if "/menagerie_host/" in file.path:
            text = file.text.replace("/etc/kubernetes", f"{folder}/etc/kubernetes")
            (library / Path(file.path).name).write_text(text)
    (folder / "credentials").mkdir()
    plane.kubeconfig(APPROVER, "nobody").replace(folder / "credentials/kubeconfig")
    words = [f"PYTHONPATH={library.parent}", f"CREDENTIALS_DIRECTORY={folder}/credentials", sys.executable, "-sB", "-m"]
    with started(["/usr/bin/env", *words, "menagerie_host.approver"], folder / "approver.log"):
        yield


@contextmanager
def tunnels(plane: Plane) -> Iterator[tuple[str, int]]:
    """Run konnectivity's server with its rendered flags; yield the address for agents."""
    agents, admin, health = free_ports(3)
    folder = plane.folder / "tunnels"
    folder.mkdir(exist_ok=True)
    for end in ("crt", "key"):
        (folder / f"apiserver.{end}").write_bytes((plane.folder / f"etc/kubernetes/pki/apiserver.{end}").read_bytes())
    plane.kubeconfig(konnectivity.USER, "nobody").replace(folder / "kubeconfig")
    own = {
        "uds-name": str(plane.folder / "konnectivity.socket"),
        "agent-port": str(agents),
        "admin-port": str(admin),
        "health-port": str(health),
    }
    table = konnectivity.flags(plane.cluster, str(folder)) | own
    words = [str(program("proxy-server")), *(f"--{name}={value}" for name, value in table.items())]
    with started(words, folder / "server.log"):
        wait(lambda: (plane.folder / "konnectivity.socket").exists(), lambda: _end(folder / "server.log"))
        yield plane.address, agents


@contextmanager
def agent(plane: Plane, at: tuple[str, int], token: str, pretends: str, log: str) -> Iterator[Path]:
    """Run a real agent that claims an address; yield its log."""
    admin, health = free_ports(2)
    path = plane.folder / "tunnels" / f"{log}.token"
    path.write_text(token)
    words = [
        f"--ca-cert={plane.folder}/etc/kubernetes/pki/ca.crt", f"--service-account-token-path={path}",
        f"--proxy-server-host={at[0]}", f"--proxy-server-port={at[1]}", f"--agent-identifiers=ipv4={pretends}",
        f"--admin-server-port={admin}", f"--health-server-port={health}", "--sync-interval=1s",
    ]  # fmt: skip
    log_file = plane.folder / "tunnels" / f"{log}.log"
    with started([str(program("proxy-agent")), *words], log_file):
        yield log_file


def _end(log: Path) -> str:
    return log.read_text(errors="replace")[-2000:] if log.exists() else os.fspath(log)
