"""Workers in the region of these tests: the real program that follows authorities, with each worker's files in a folder.

The kubelet is a substitute: it requests certificates as a kubelet does, with the identity in its kubeconfig, and uses what
it read at its start.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from kubernetes import client

from clients.access import Access
from cluster.pools import POOL_LABEL
from operations.keys.kubelets import ANNOTATION
from stacks.certificates import Request, Signed, issue
from tests.operations.keys.region import Host, Region

CLIENT, SERVING = "kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"
ADDRESS = "127.0.0.1"
"""Groups of every node."""
_LIBRARY = Path(__file__).parents[3] / "roles" / "module_utils" / "menagerie_host"
_USAGES = {CLIENT: "client auth", SERVING: "server auth"}


def asked_for(access: Access, node: str, held: Signed, signer: str) -> Signed:
    """Return the certificate that a kubelet gets for its current one. Approves serving ones, because no approver runs."""
    key = ec.generate_private_key(ec.SECP256R1())
    own = [(NameOID.ORGANIZATION_NAME, "system:nodes"), (NameOID.COMMON_NAME, f"system:node:{node}")]
    builder = x509.CertificateSigningRequestBuilder(x509.Name([x509.NameAttribute(*each) for each in own]))
    if signer == SERVING:
        names = [x509.DNSName(node), x509.IPAddress(ipaddress.ip_address(ADDRESS))]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    text = base64.b64encode(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)).decode()
    as_node = client.CertificatesV1Api(replace(access, certificate=held.certificate, key=held.private_key).api())
    spec = {"signerName": signer, "request": text, "usages": ["digital signature", _USAGES[signer]]}
    made = as_node.create_certificate_signing_request({"metadata": {"generateName": "csr-"}, "spec": spec})
    name = made.metadata.name
    if signer == SERVING:
        condition = client.V1CertificateSigningRequestCondition(type="Approved", status="True", reason="Test")
        made.status = client.V1CertificateSigningRequestStatus(conditions=[condition])
        client.CertificatesV1Api(access.api()).replace_certificate_signing_request_approval(name, made)
    for _ in range(600):
        if certificate := as_node.read_certificate_signing_request(name).status.certificate:
            pem = key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            return Signed(base64.b64decode(certificate).decode(), pem.decode())
        time.sleep(0.2)
    raise AssertionError(f"nobody signed {name}")


@dataclass
class Worker:
    """A node. started: monotonic time of its kubelet's start, 0 while it does not run."""

    world: Region
    host: Host
    started: float = 0.0
    starts: int = 0

    @property
    def conf(self) -> Path:
        return self.host.root / "etc/kubernetes/kubelet.conf"

    def link(self, kind: str) -> Path:
        return self.host.root / f"var/lib/kubelet/pki/kubelet-{kind}-current.pem"

    def identity(self, conf: Path | None = None) -> Signed:
        """Return the certificate and key in a kubeconfig."""
        text = (conf or self.conf).read_text()
        path = re.search(r"client-certificate: (\S+)", text)
        assert path
        pem = Path(path[1]).read_text()
        return Signed(pem, pem)

    def access(self) -> Access:
        """Return a client like its kubelet's, with its certificate and its trusted authorities."""
        own, cluster = self.identity(), yaml.safe_load(self.conf.read_text())["clusters"][0]["cluster"]
        trusted = base64.b64decode(cluster["certificate-authority-data"]).decode()
        access = self.world.access()
        outputs = access.outputs.model_copy(update={"ca_pem": trusted})
        return replace(access, outputs=outputs, certificate=own.certificate, key=own.private_key)

    def answer(self, verb: str) -> str:
        """Return systemctl's output about the kubelet."""
        if verb in ("stop", "try-restart"):
            self.started = 0.0
        if verb in ("start", "try-restart"):
            self._start()
        state = "active" if self.started else "inactive"
        return f"ActiveState={state}\nInactiveExitTimestampMonotonic={int(self.started * 1e6)}\n"

    def _start(self) -> None:
        self.started, self.starts = time.monotonic(), self.starts + 1
        bootstrap = self.host.root / "etc/kubernetes/bootstrap-kubelet.conf"
        if not self.link("client").exists():
            self._place("client", asked_for(self.world.access(), self.host.name, self.identity(bootstrap), CLIENT))
        if not self.link("server").exists():
            self._place("server", asked_for(self.world.access(), self.host.name, self.identity(), SERVING))

    def _place(self, kind: str, signed: Signed) -> None:
        path = self.link(kind).with_name(f"kubelet-{kind}-{time.monotonic_ns()}.pem")
        path.write_text(signed.certificate + signed.private_key)
        self.link(kind).symlink_to(path)

    def follow(self) -> None:
        """Do what menagerie-refresh does in the region, and `configure` at a site with the same code."""
        authorities = json.loads(str(self.world.outputs()["authorities"]))
        for name in ("kubernetes-ca", "kubelet-serving-ca"):
            (self.host.root / f"etc/menagerie/{name}.crt").write_text(authorities[name])
        words = (sys.executable, "-m", "menagerie_host.in_region", "refresh")
        done = self.host.run(*words)
        assert done.returncode == 0, done.stderr

    def says(self) -> dict[str, object]:
        node = client.CoreV1Api(self.world.access().api()).read_node(self.host.name)
        report: dict[str, object] = json.loads((node.metadata.annotations or {}).get(ANNOTATION, "{}"))
        return report


@contextmanager
def worker(world: Region, name: str, *, in_region: bool) -> Iterator[Worker]:
    """Yield a node that joined before the ring was ever rotated, with a release that did not report on it."""
    host = Host(name, "workers", "", world.folder / name)
    made = Worker(world, host)
    for folder in ("etc/kubernetes/pki", "etc/menagerie", "var/lib/kubelet/pki", "run/menagerie", "bin"):
        (host.root / folder).mkdir(parents=True)
    library = host.root / "usr/local/lib/menagerie/menagerie_host"
    shutil.copytree(_LIBRARY, library)
    for path in library.glob("*.py"):
        path.write_text(host.rooted(path.read_text()))
    systemctl = host.root / "bin/systemctl"
    systemctl.write_text(
        (world.api.root / "bin/systemctl").read_text().replace(f"/{world.api.name}$words", f"/{name}$words")
    )
    systemctl.chmod(0o755)
    _join(made, in_region=in_region)
    world.workers[name] = made
    try:
        yield made
    finally:
        del world.workers[name]
        client.CoreV1Api(world.access().api()).delete_node(name)
        shutil.rmtree(host.root)


def _join(made: Worker, *, in_region: bool) -> None:
    pki = made.world.api.root / "etc/kubernetes/pki"
    trusted = (pki / "ca.crt").read_text()
    name = made.host.name
    for kind, cert, key in (
        ("client", "ca.crt", "ca.key"),
        ("server", "kubelet-serving-ca-signing.crt", "kubelet-serving-ca.key"),
    ):
        authority = Signed((pki / cert).read_text(), (pki / key).read_text())
        own = Request(f"system:node:{name}", ("system:nodes",), addresses=(ADDRESS,), usages=(kind,))
        made._place(kind, issue(authority, own))
    cluster = {
        "certificate-authority-data": base64.b64encode(trusted.encode()).decode(),
        "server": f"https://{made.world.access().outputs.endpoint}",
    }
    user = {"client-certificate": str(made.link("client")), "client-key": str(made.link("client"))}
    made.conf.write_text(yaml.safe_dump({"clusters": [{"cluster": cluster}], "users": [{"user": user}]}))
    (made.host.root / "etc/kubernetes/pki/ca.crt").write_text(trusted)
    join = {
        "ca": str(made.host.root / "etc/menagerie/kubernetes-ca.crt"),
        "serving_ca": str(made.host.root / "etc/menagerie/kubelet-serving-ca.crt"),
        "endpoint": made.world.access().outputs.endpoint,
    }
    (made.host.root / "etc/menagerie/worker.json").write_text(json.dumps({"join": join}))
    labels = {POOL_LABEL: "p"} if in_region else {}
    body = client.V1Node(metadata=client.V1ObjectMeta(name=name, labels=labels))
    client.CoreV1Api(made.world.access().api()).create_node(body)
    made.started = time.monotonic()
