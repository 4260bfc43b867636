"""A cluster's outputs, and an API over plain HTTP with prepared responses."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from cluster.outputs import ArtefactOutput, ClusterOutputs, EtcdOutput, HostOutput
from operations.record import store
from tests.operations.real_cluster import World, world
from tests.sharing import shared


def hosts(kind: str, count: int, section: int) -> tuple[HostOutput, ...]:
    return tuple(HostOutput(name=f"{kind}-{n}", address=f"10.77.0.{section}{n}") for n in range(1, count + 1))


def outputs(load_balancer_status: str | None = None) -> ClusterOutputs:
    return ClusterOutputs(
        cluster="lab",
        endpoint="10.77.0.10:6443",
        konnectivity="10.77.0.10:8132",
        ca_pem="",
        api_servers=hosts("api", 2, 1),
        etcds={
            "main": EtcdOutput(members=hosts("etcd-main", 3, 2), client_port=2379, ca_pem="ca"),
            "events": EtcdOutput(members=hosts("etcd-events", 3, 3), client_port=2379, ca_pem="ca"),
        },
        artefacts=ArtefactOutput(mirror=None, sha256={}, registry=None),
        load_balancer_status=load_balancer_status,
    )


@dataclass
class FakeAccess:
    """Substitute for `clients.access.Access`, for an API without TLS."""

    outputs: ClusterOutputs
    url: str = ""
    etcd_certificate: str = "certificate"
    etcd_key: str = "key"
    certificate: str = ""
    bucket_key: str = ""
    etcd_payloads: dict[str, str] = field(default_factory=dict)

    @property
    def server(self) -> str:
        return f"https://{self.outputs.endpoint}"

    def api(self, *, once: bool = False, connections: int | None = None) -> client.ApiClient:
        configuration = client.Configuration(host=self.url)
        configuration.retries = False if once else None
        return client.ApiClient(configuration)


@dataclass
class FakeServer:
    """Responds only to GETs: path without query -> text, or an object as JSON. asked: the paths, in order."""

    url: str = ""
    answers: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    silent: threading.Event = field(default_factory=threading.Event)
    """If set, requests get no response until it is cleared."""


@pytest.fixture(autouse=True)
def _records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a checkout's records in this test's folder."""
    monkeypatch.setattr(store, "STATE", tmp_path / "kept")


@pytest.fixture
def server() -> Iterator[FakeServer]:
    fake = FakeServer()
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.split("?")[0]
            fake.asked.append(path)
            if fake.silent.is_set():
                over.wait()
                return
            answer = fake.answers.get(path)
            self.send_response(404 if answer is None else 200)
            self.end_headers()
            self.wfile.write((answer if isinstance(answer, str) else json.dumps(answer)).encode())

        def log_message(self, *args: object) -> None:
            pass

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener.daemon_threads = True
    threading.Thread(target=listener.serve_forever, args=(0.01,), daemon=True).start()
    fake.url = f"http://127.0.0.1:{listener.server_port}"
    yield fake
    over.set()
    listener.shutdown()
    listener.server_close()


@pytest.fixture
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A real, empty API server with its controllers."""
    made = shared("cluster", lambda: world(tmp_path_factory.mktemp("cluster")))
    yield made
    made.clear()
