"""The real metrics-server with its own arguments, a real API server, and kubelets of a few lines: whom it believes."""

from __future__ import annotations

import http
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from components.control_plane import metrics
from components.control_plane.ports import METRICS_SERVER_PORT
from stacks.certificates import Request, Signed, issue, new_authority
from tests.control_plane.real_api import TOKEN, Line, RealApi, plain, started
from tests.ports import free_port
from tests.programs import program
from tests.waiting import until

pytestmark = pytest.mark.timeout(240)
KUBELETS, STRANGER, SERVING = (new_authority(name) for name in ("kubelet-serving", "stranger", "kubernetes"))
CORES = 0.25
"""What each kubelet says that its only container uses."""


@contextmanager
def kubelet(folder: Path, authority: Signed) -> Iterator[int]:
    """Serve a kubelet's metrics over TLS with a certificate of an authority, at 127.0.0.1; yield the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            now, stamp = time.time(), int(time.time() * 1000)
            of_pod = 'container="c",namespace="default",pod="p"'
            self.send_response(200)
            self.end_headers()
            self.wfile.write(
                f"node_cpu_usage_seconds_total {now * CORES} {stamp}\n"
                f"node_memory_working_set_bytes 1e+09 {stamp}\n"
                f"container_cpu_usage_seconds_total{{{of_pod}}} {now * CORES} {stamp}\n"
                f"container_memory_working_set_bytes{{{of_pod}}} 5e+07 {stamp}\n"
                f"container_start_time_seconds{{{of_pod}}} {now - 900}\n".encode()
            )

        def log_message(self, *args: object) -> None:
            pass

    own = issue(authority, Request("system:node:n", ("system:nodes",), (), ("127.0.0.1",), ("server",)))
    folder.mkdir()
    (folder / "kubelet.pem").write_text(own.certificate + own.private_key)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "kubelet.pem")
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def node(api: RealApi, name: str, port: int) -> None:
    """Create a Ready Node whose kubelet is at a port of 127.0.0.1."""
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "conditions": [{"type": "Ready", "status": "True"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }
    assert api.call("POST", "/api/v1/nodes", {"metadata": {"name": name}})[0] == http.HTTPStatus.CREATED
    patch = api.call("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, "application/merge-patch+json")
    assert patch[0] == http.HTTPStatus.OK


def words(folder: Path, api: RealApi, port: int) -> list[str]:
    """Return the pod's arguments, with this machine's paths, and a kubeconfig instead of the pod's account."""
    config = folder / "kubeconfig"
    cluster = {
        "server": f"https://127.0.0.1:{api.port}",
        "certificate-authority": f"{folder}/certificates/apiserver.crt",
    }
    named = [{"name": "x", "context": {"cluster": "x", "user": "x"}}]
    config.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "x", "cluster": cluster}],
                "users": [{"name": "x", "user": {"token": TOKEN}}],
                "contexts": named,
                "current-context": "x",
            }
        )
    )
    own = [each.replace("/etc/metrics-server", str(folder / "keys")) for each in metrics.arguments()]
    moved = [each.replace(str(METRICS_SERVER_PORT), str(port)) for each in own]
    more = [f"--{each}kubeconfig={config}" for each in ("", "authentication-", "authorization-")]
    return [*moved, *more, "--authentication-tolerate-lookup-failure", "--bind-address=127.0.0.1"]


def place(folder: Path, own: Signed) -> None:
    for name, text in (("serving/tls.crt", own.certificate), ("serving/tls.key", own.private_key)):
        (folder / "keys" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "keys" / name).write_text(text)


def shown(port: int) -> x509.Certificate:
    return x509.load_pem_x509_certificate(ssl.get_server_certificate(("127.0.0.1", port)).encode())


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    """Run metrics-server with two nodes: `good`, and `unknown` with a certificate of a stranger. Yield its folder and port."""
    folder, port = tmp_path_factory.mktemp("metrics"), free_port()
    place(folder, issue(SERVING, Request("metrics-server", dns_names=(metrics.HOST,), usages=("server",))))
    (folder / "keys/kubelets").mkdir()
    (folder / "keys/kubelets/ca.crt").write_text(KUBELETS.certificate)
    with ExitStack() as ends:
        api = ends.enter_context(plain(folder))
        for name, authority in (("good", KUBELETS), ("unknown", STRANGER)):
            node(api, name, ends.enter_context(kubelet(folder / name, authority)))
        pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "good", "containers": [{"name": "c", "image": "x"}]}}
        pods = "/api/v1/namespaces/default/pods"
        assert api.call("POST", pods, pod)[0] == http.HTTPStatus.CREATED
        # It follows pods that run.
        running = {"status": {"phase": "Running"}}
        patch = api.call("PATCH", f"{pods}/p/status", running, "application/merge-patch+json")
        assert patch[0] == http.HTTPStatus.OK
        ends.enter_context(started("metrics-server", [program("metrics-server"), *words(folder, api, port)], folder))
        until(lambda: ready(port), lambda: (folder / "metrics-server.log").read_text()[-3000:], 60, 0.2)
        yield folder, port


def ready(port: int) -> bool:
    try:
        return Line(port).ask("GET", "/readyz")[0] == http.HTTPStatus.OK
    except OSError:
        return False


def asked(port: int, path: str) -> tuple[int, Any]:
    status, answer = Line(port).ask("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
    return status, json.loads(answer)


def test_only_a_kubelet_with_a_certificate_of_the_authority_has_metrics(running: tuple[Path, int]) -> None:
    folder, port = running
    status, listed = asked(port, f"/apis/{metrics.GROUP}/{metrics.VERSION}/nodes")
    assert (status, [each["metadata"]["name"] for each in listed["items"]]) == (http.HTTPStatus.OK, ["good"])
    assert "certificate signed by unknown authority" in (folder / "metrics-server.log").read_text()


def test_the_use_of_a_pod_is_what_its_kubelet_says(running: tuple[Path, int]) -> None:
    _, port = running
    status, pod = asked(port, f"/apis/{metrics.GROUP}/{metrics.VERSION}/namespaces/default/pods/p")
    assert status == http.HTTPStatus.OK
    (container,) = pod["containers"]
    used = float(container["usage"]["cpu"].removesuffix("n")) / 1e9
    assert used == pytest.approx(CORES, rel=0.01)


def test_nobody_without_a_name_reads_metrics(running: tuple[Path, int]) -> None:
    _, port = running
    path = f"/apis/{metrics.GROUP}/{metrics.VERSION}/nodes"
    assert Line(port).ask("GET", path)[0] in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN)


def test_it_shows_another_certificate_as_soon_as_its_file_changes(running: tuple[Path, int]) -> None:
    """A rotation of keys gives pods three minutes (operations/keys/rotation.py)."""
    folder, port = running
    other = issue(
        new_authority("kubernetes-2"), Request("metrics-server", dns_names=(metrics.HOST,), usages=("server",))
    )
    expected = x509.load_pem_x509_certificate(other.certificate.encode())
    assert shown(port) != expected
    place(folder, other)
    until(lambda: shown(port) == expected, "it still shows the former certificate", 90, 1.0)
