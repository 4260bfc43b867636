"""End to end on a real API server: a kubelet's identity reports its host's state, and the companion removes the taint.

And what neither may do: the kubelet can't change taints, and the companion can't change anything else of a Node.
"""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from cluster import places
from cluster import preflight as names
from components.control_plane import gpu
from components.control_plane import preflight as rights
from components.control_plane.host.api import Api, ApiError
from components.control_plane.host.preflight import Gate
from tests.control_plane.real_api import spending_memory
from tests.ports import free_port
from tests.programs import PROGRAMS, needs
from tests.strict_certificates import strict

pytestmark = needs(("etcd", "kube-apiserver"))
PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}


class Authority:
    """A CA in memory that issues client certificates."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")])
        self.pem = self._signed(self.name, self.key, ca=True)
        self.write("ca", self.pem, self.key)

    def _signed(self, subject: x509.Name, key: Any, ca: bool = False) -> str:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        )
        builder = strict(builder, key.public_key(), self.key.public_key(), is_authority=ca)
        return builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()

    def write(self, name: str, pem: str, key: Any) -> str:
        text = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        ).decode()
        (self.folder / f"{name}.crt").write_text(pem)
        (self.folder / f"{name}.key").write_text(text)
        (self.folder / f"{name}.pem").write_text(pem + text)
        return text

    def kubeconfig(self, user: str, group: str, port: int) -> Path:
        key = ec.generate_private_key(ec.SECP256R1())
        parts = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
        parts += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
        pem = self._signed(x509.Name(parts), key)
        name = user.replace(":", "-")
        text = self.write(name, pem, key)

        def data(value: str) -> str:
            return base64.b64encode(value.encode()).decode()

        path = self.folder / f"{name}.conf"
        path.write_text(
            f"server: https://127.0.0.1:{port}\ncertificate-authority-data: {data(self.pem)}\n"
            f"client-certificate-data: {data(pem)}\nclient-key-data: {data(text)}\n"
        )
        return path


class Server:
    """A kube-apiserver with its etcd on loopback, with the same authorization as ours."""

    def __init__(self, folder: Path) -> None:
        self.ca = Authority(folder)
        self.port = free_port()
        self.processes: list[subprocess.Popen[bytes]] = []
        client, peer = free_port(), free_port()
        etcd = ["etcd", "--unsafe-no-fsync", f"--data-dir={folder / 'etcd'}", "--log-level=error"]
        etcd += [f"--{kind}-client-urls=http://127.0.0.1:{client}" for kind in ("listen", "advertise")]
        etcd += [f"--listen-peer-urls=http://127.0.0.1:{peer}"]
        self.start(folder, etcd)
        key = folder / "ca.key"
        api = ["kube-apiserver", f"--etcd-servers=http://127.0.0.1:{client}", f"--secure-port={self.port}"]
        api += [f"--tls-cert-file={folder / 'ca.crt'}", f"--tls-private-key-file={key}"]
        api += [f"--client-ca-file={folder / 'ca.crt'}", "--bind-address=127.0.0.1", f"--cert-dir={folder}"]
        api += ["--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged"]
        api += ["--service-cluster-ip-range=10.0.0.0/24", "--service-account-issuer=https://x"]
        api += [f"--service-account-signing-key-file={key}", f"--service-account-key-file={key}"]
        self.start(folder, api)
        self.admin = self.api("admin", "system:masters")
        for _ in range(30):
            try:
                self.admin.wait_until_ready("/readyz", 2)
                return
            except TimeoutError:
                if self.processes[-1].poll() is not None:
                    break
        self.stop()
        raise AssertionError((folder / "kube-apiserver.log").read_text()[-2000:])

    def start(self, folder: Path, words: list[str]) -> None:
        with (folder / f"{words[0]}.log").open("wb") as log:
            command = [PROGRAMS[words[0]], *words[1:]]
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=spending_memory()))

    def api(self, user: str, group: str = "") -> Api:
        return Api(self.ca.kubeconfig(user, group, self.port))

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
            process.wait(30)


def wait_for_policy(server: Server) -> None:
    """Wait until the API server has compiled the policy and enforces it."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "probe"}}
    server.admin.call("POST", "/api/v1/nodes", node)
    companion, path = server.api(names.USER), "/api/v1/nodes/probe?dryRun=All"
    for _ in range(300):
        try:
            companion.call("PATCH", path, {"spec": {"unschedulable": True}}, "application/merge-patch+json")
        except ApiError as error:
            if "may change nothing" in str(error):
                return
        time.sleep(0.1)
    raise AssertionError("the admission policy was never enforced")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("api"))
    try:
        for document in rights.objects():
            group, plural = document["apiVersion"], PLURALS.get(document["kind"], f"{document['kind'].lower()}s")
            server.admin.apply(f"/apis/{group}/{plural}/{document['metadata']['name']}", document, "test", True)
        wait_for_policy(server)
        yield server
    finally:
        server.stop()


@pytest.fixture
def joined(server: Server) -> Iterator[str]:
    """Provide a node that has registered itself like a kubelet, with the taint."""
    name = f"w-{os.urandom(3).hex()}"
    taint = {key: value for key, value in names.TAINT.model_dump(mode="json").items() if value}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"taints": [taint]}}
    server.api(f"system:node:{name}", "system:nodes").call("POST", "/api/v1/nodes", node)
    yield name
    server.admin.call("DELETE", f"/api/v1/nodes/{name}")


def taints(server: Server, name: str) -> list[str]:
    node = server.admin.call("GET", f"/api/v1/nodes/{name}")
    # Excludes the API server's own taints on a node that is not Ready (TaintNodesByCondition).
    own = "node.kubernetes.io/"
    return [taint["key"] for taint in node["spec"].get("taints", ()) if not taint["key"].startswith(own)]


def host_api(server: Server, preflight: Any, name: str) -> Any:
    """Return the check's client, with the kubelet's files."""
    path = server.ca.kubeconfig(f"system:node:{name}", "system:nodes", server.port)
    return preflight.node.Api(str(path), str(path.with_suffix(".pem")))


def test_a_healthy_host_loses_its_taint_and_a_faulty_one_gets_it_back(server, preflight, joined, tmp_path):
    import sys

    main = sys.modules["menagerie_preflight.__main__"]
    host = preflight.host.Host(str(tmp_path))
    gate = Gate(server.api(names.USER))
    node = server.admin.call("GET", f"/api/v1/nodes/{joined}")
    gate.decide(node, time.time())
    assert taints(server, joined) == [names.KEY]  # the host has not reported yet

    while time.gmtime()[:6] <= time.strptime(node["metadata"]["creationTimestamp"], "%Y-%m-%dT%H:%M:%SZ")[:6]:
        time.sleep(0.05)
    api = host_api(server, preflight, joined)
    assert main.report(host, api, joined) == "True"
    gate.decide(server.admin.call("GET", f"/api/v1/nodes/{joined}"), time.time())
    assert taints(server, joined) == []

    settings = tmp_path / preflight.host.SETTINGS.lstrip("/")
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"expected": {"kind": "x", "memory_gib": 10_000_000}}))
    assert main.report(host, api, joined) == "False"
    gate.decide(server.admin.call("GET", f"/api/v1/nodes/{joined}"), time.time())
    assert taints(server, joined) == [names.KEY]
    conditions = server.admin.call("GET", f"/api/v1/nodes/{joined}")["status"]["conditions"]
    assert [(condition["reason"], condition["message"][:17]) for condition in conditions] == [
        ("MemoryMissing", "0 GiB of memory, ")
    ]


def test_a_kubelet_can_neither_remove_its_taint_nor_report_for_another_node(server, preflight, joined):
    kubelet = server.api(f"system:node:{joined}", "system:nodes")
    remove_taints = [{"op": "remove", "path": "/spec/taints"}]
    with pytest.raises(ApiError, match="not allowed to modify taints"):
        kubelet.call("PATCH", f"/api/v1/nodes/{joined}", remove_taints, "application/json-patch+json")
    other = server.api("system:node:other", "system:nodes")
    body = preflight.node.patch({"type": names.CONDITION, "status": "True"})
    with pytest.raises(ApiError, match="403"):
        other.call("PATCH", f"/api/v1/nodes/{joined}/status", body, "application/strategic-merge-patch+json")


BEYOND = {
    "label": {"metadata": {"labels": {"a": "b"}}},
    "annotation": {"metadata": {"annotations": {"a": "b"}}},
    "cordon": {"spec": {"unschedulable": True}},
    "finalizer": {"metadata": {"finalizers": ["a/b"]}},
    "other taint": {
        "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": names.KEY, "effect": "NoSchedule"}]}
    },
    "other effect": {"spec": {"taints": [{"key": names.KEY, "effect": "NoExecute"}]}},
    "range of pods": {"spec": {"podCIDR": "10.9.0.0/24", "podCIDRs": ["10.9.0.0/24"]}},
}


@pytest.mark.parametrize("change", BEYOND.values(), ids=BEYOND)
def test_the_companion_can_change_only_its_taint(server, joined, change):
    companion = server.api(names.USER)
    path = f"/api/v1/nodes/{joined}"
    with pytest.raises(ApiError, match=f"{names.USER} may change no"):
        companion.call("PATCH", path, change, "application/merge-patch+json")


def test_the_companion_sees_only_nodes(server, joined):
    companion = server.api(names.USER)
    for method, path in (
        ("GET", "/api/v1/secrets"),
        ("GET", "/api/v1/pods"),
        ("DELETE", f"/api/v1/nodes/{joined}"),
        ("PATCH", f"/api/v1/nodes/{joined}/status"),
    ):
        with pytest.raises(ApiError, match="403"):
            companion.call(method, path, {} if method == "PATCH" else None)
    assert companion.call("GET", "/api/v1/nodes")["kind"] == "NodeList"


def test_the_daemon_sets_of_gpus_are_accepted_unchanged(server, build):
    query = "fieldManager=test&force=true&fieldValidation=Strict&dryRun=All"
    for document in gpu.objects(build({"pools": {"workers": {"hardware": "dgx-h100"}}})):
        path = f"/apis/apps/v1/namespaces/kube-system/daemonsets/{document['metadata']['name']}"
        applied = server.admin.call("PATCH", f"{path}?{query}", document, "application/apply-patch+yaml")
        assert applied["spec"]["template"]["spec"]["nodeSelector"] == {places.GPU_LABEL: "true"}
