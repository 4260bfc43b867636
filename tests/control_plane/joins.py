"""A real API server and controller manager with authenticated tokens, and requests like those of kubelets."""

from __future__ import annotations

import base64
import http.client
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from components.control_plane.host.api import ApiError
from stacks.certificates import new_authority
from tests.control_plane.real_api import TOKEN, RealApi, running, started, trusting
from tests.waiting import until

CSR = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
SECRETS = "/api/v1/namespaces/kube-system/secrets"


class AsHosts:
    """Stands in for `menagerie_host.api.Api` in the programs of API-server hosts."""

    def __init__(self, real: RealApi, user: str = "") -> None:
        """user: the identity of requests; without one, everything is allowed."""
        self.real = real
        self.user = user
        self.host, self.port = "127.0.0.1", real.port

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        status, answer = self.real.call(method, path, body, kind, self.user)
        if status >= 400:
            raise ApiError(status, f"{method} {path}: {answer.get('message')}")
        return answer

    def apply(self, path: str, thing: dict[str, Any], manager: str, force: bool) -> None:
        status, message = self.real.apply({"path": path, "object": thing, "force": force})
        if status >= 400:
            raise ApiError(status, message)

    def watch(self, path: str, version: str, wait_s: int = 0) -> Iterator[dict[str, Any]]:
        yield from ()


def asked_pem(key: ec.EllipticCurvePrivateKey, name: str, organization: str = "system:nodes", **more: Any) -> str:
    subject = [(NameOID.ORGANIZATION_NAME, organization), (NameOID.COMMON_NAME, name)]
    builder = x509.CertificateSigningRequestBuilder(x509.Name([x509.NameAttribute(*each) for each in subject]))
    if names := more.get("names"):
        builder = builder.add_extension(
            x509.SubjectAlternativeName([x509.DNSName(each) for each in names]), critical=False
        )
    return base64.b64encode(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)).decode()


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@dataclass
class Cluster:
    """The API, its signer, and ways to act as somebody in it."""

    real: RealApi
    folder: Path
    counter: int = 0
    keys: dict[str, ec.EllipticCurvePrivateKey] = field(default_factory=dict)

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        return AsHosts(self.real).call(method, path, body, kind)

    def as_(self, method: str, path: str, body: Any = None, *, bearer: str = "", identity: Path | None = None) -> Any:
        """Return (HTTP status, answer) of a request with a token or a certificate."""
        tls = trusting()
        if identity:
            tls.load_cert_chain(identity)
        connection = http.client.HTTPSConnection("127.0.0.1", self.real.port, timeout=30, context=tls)
        try:
            headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {bearer}"} if bearer else {})}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        finally:
            connection.close()

    def ask(self, bearer: str, name: str, key: ec.EllipticCurvePrivateKey | None = None, **changes: Any) -> str:
        """Request a node's client certificate like a kubelet; return the name of the request."""
        key = key or new_key()
        spec = {
            "signerName": CLIENT,
            "request": asked_pem(key, f"system:node:{name}", **changes),
            "usages": changes.get("usages", ["digital signature", "client auth"]),
        }
        self.counter += 1
        body = {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"name": f"node-csr-{self.counter}"},
            "spec": spec,
        }
        # The API server learns of a new token after a moment.
        status, answer = 401, None

        def is_accepted() -> bool:
            nonlocal status, answer
            status, answer = self.as_("POST", CSR, body, bearer=bearer)
            return status != 401

        until(is_accepted, lambda: str(answer), every_s=0)
        assert status == 201, answer
        self.keys[body["metadata"]["name"]] = key
        return str(body["metadata"]["name"])

    def status(self, request: str) -> dict[str, Any]:
        state: dict[str, Any] = self.call("GET", f"{CSR}/{request}").get("status") or {}
        return state

    def approved(self, request: str) -> bool:
        return any(each["type"] == "Approved" for each in self.status(request).get("conditions") or ())

    def identity(self, request: str) -> Path:
        """Wait for the signed certificate and return its file, which also has the key."""
        certificate = ""

        def signed() -> bool:
            nonlocal certificate
            certificate = self.status(request).get("certificate", "")
            return bool(certificate)

        until(signed, lambda: f"nobody signed {request}: {self.status(request)}", every_s=0.05)
        key = self.keys[request].private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path = self.folder / f"{request}.pem"
        path.write_bytes(base64.b64decode(certificate) + key)
        return path

    def token(self, groups: str, identity: str = "") -> str:
        """Create a bootstrap token with these groups."""
        self.counter += 1
        identity = identity or f"t{self.counter:05d}"
        plain = {
            "token-id": identity,
            "token-secret": "0123456789abcdef",
            "expiration": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600)),
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": groups,
        }
        thing = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": f"bootstrap-token-{identity}", "namespace": "kube-system"},
            "type": "bootstrap.kubernetes.io/token",
            "stringData": plain,
        }
        self.call("POST", SECRETS, thing)
        return f"{identity}.0123456789abcdef"

    def node(self, name: str) -> None:
        self.call("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})

    def until_approved_by_anybody(self, request: str) -> None:
        until(lambda: self.approved(request), f"{request} was not approved", every_s=0.05)

    def kubeconfig(self) -> Path:
        """Return a kubeconfig with all rights, by the token of these tests."""
        path = self.folder / "kubeconfig"
        cluster = {"server": f"https://127.0.0.1:{self.real.port}", "insecure-skip-tls-verify": True}
        text = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "it", "cluster": cluster}],
            "users": [{"name": "me", "user": {"token": TOKEN}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
            "current-context": "it",
        }
        path.write_text(json.dumps(text))
        return path


@contextmanager
def joining(program: Callable[[str], Path], folder: Path) -> Iterator[Cluster]:
    """Run an API server and a controller manager with the flags of `components.control_plane.kube_apiserver` and `controller_manager` that joining depends on."""
    authority = new_authority("kubernetes")
    (folder / "ca.crt").write_text(authority.certificate)
    (folder / "ca.key").write_text(authority.private_key)
    flags = (
        "--enable-bootstrap-token-auth", "--client-ca-file", folder / "ca.crt",
        "--authorization-mode", "Node", "--enable-admission-plugins", "NodeRestriction",
    )  # fmt: skip
    with running(program, folder, *map(str, flags)) as real:
        cluster = Cluster(real, folder)
        command = [
            program("kube-controller-manager"), "--kubeconfig", cluster.kubeconfig(), "--secure-port", "0",
            "--leader-elect=false",
            "--controllers", "certificatesigningrequest-approving-controller,certificatesigningrequest-signing-controller",
            "--cluster-signing-cert-file", folder / "ca.crt", "--cluster-signing-key-file", folder / "ca.key",
        ]  # fmt: skip
        with started("kube-controller-manager", command, folder):
            yield cluster


def kubeadms_own(program: Callable[[str], Path], cluster: Cluster, folder: Path) -> None:
    """Run the steps that an API server of an earlier release does at its boot."""
    command = [program("kubeadm"), "init", "phase", "bootstrap-token", "--skip-token-print"]
    done = subprocess.run([*command, "--kubeconfig", cluster.kubeconfig()], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
