"""A server of an aggregated API that trusts the published authorities, like servers built with k8s.io/apiserver."""

from __future__ import annotations

import base64
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from operations.keys.published import FIELDS, NAME, NAMESPACE
from stacks.certificates import Request, issue, new_authority
from tests.ports import free_port

GROUP = "menagerie.test"
_EMPTY = f'{{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "{GROUP}/v1", "resources": []}}'


@dataclass
class Aggregated:
    """issuers: of the client certificates of API servers. failures: errors of a client of the API."""

    issuers: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def published(core: client.CoreV1Api) -> str:
    return str(core.read_namespaced_config_map(NAME, NAMESPACE).data[FIELDS["front-proxy-ca"]])


@contextmanager
def aggregated(core: client.CoreV1Api, folder: Path) -> Iterator[Aggregated]:
    """Register the API, and call it repeatedly as an operator until the end."""
    made, over = Aggregated(), threading.Event()
    authority = new_authority("aggregated")
    with _server(made, core, authority, folder) as port:
        _register(core, authority.certificate, port)
        ready = threading.Event()
        thread = threading.Thread(target=_ask, args=(core.api_client, made, ready, over))
        thread.start()
        try:
            assert ready.wait(90), made.failures[-3:]
            yield made
        finally:
            over.set()
            thread.join(60)
            client.ApiregistrationV1Api(core.api_client).delete_api_service(f"v1.{GROUP}")


@contextmanager
def _server(made: Aggregated, core: client.CoreV1Api, authority: Any, folder: Path) -> Iterator[int]:
    own = issue(authority, Request("aggregated", dns_names=("aggregated.default.svc",)))
    pem = folder / "aggregated.pem"
    pem.write_text(own.certificate + own.private_key)

    class Handler(BaseHTTPRequestHandler):
        def setup(self) -> None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=published(core))
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_cert_chain(pem)
            self.request = context.wrap_socket(self.request, server_side=True)
            issuer = dict(part[0] for part in self.request.getpeercert()["issuer"])
            made.issuers.append(issuer["commonName"])
            super().setup()

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(_EMPTY.encode())

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:
            """Ignore errors: the client reports refusals."""

    port = free_port()
    with Server(("127.0.0.1", port), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield port
        server.shutdown()


def _register(core: client.CoreV1Api, ca_pem: str, port: int) -> None:
    service = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
    core.create_namespaced_service("default", {"metadata": {"name": "aggregated"}, "spec": service})
    spec = {
        "group": GROUP,
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "caBundle": base64.b64encode(ca_pem.encode()).decode(),
        "service": {"name": "aggregated", "namespace": "default", "port": port},
    }
    body = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": f"v1.{GROUP}"}}
    client.ApiregistrationV1Api(core.api_client).create_api_service({**body, "spec": spec})


def _ask(api: client.ApiClient, made: Aggregated, ready: threading.Event, over: threading.Event) -> None:
    while not over.wait(0.25):
        try:
            client.CustomObjectsApi(api).get_api_resources(GROUP, "v1", _request_timeout=5)
            if not ready.is_set():
                made.failures.clear()
                ready.set()
        except (ApiException, urllib3.exceptions.HTTPError) as error:
            made.failures.append(str(error))
