"""What `status` makes of the API server's and the load balancer's answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from cluster.outputs import ArtefactOutput, ClusterOutputs, EtcdOutput, HostOutput
from operations.status import Item, Status, balancer_backends

_CSV = (
    "# pxname,svname,status,weight\n"
    "api,FRONTEND,OPEN,\n"
    "api,api-1,UP,1\n"
    "api,api-2,DOWN,1\n"
    "api,BACKEND,UP,1\n"
    "konnectivity,api-1,UP,1\n"
)


@pytest.fixture
def statistics() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(_CSV.encode())

        def log_message(self, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/;csv"
    server.shutdown()


def _outputs(url: str) -> ClusterOutputs:
    servers = (HostOutput(name="api-1", address="10.0.0.1"), HostOutput(name="api-2", address="10.0.0.2"))
    return ClusterOutputs(
        cluster="lab",
        endpoint="10.0.0.10:6443",
        konnectivity="10.0.0.10:8132",
        ca_pem="",
        api_servers=servers,
        etcds={"main": EtcdOutput(members=(), client_port=2379, ca_pem="")},
        artefacts=ArtefactOutput(mirror=None, sha256={}, registry=None),
        load_balancer_status=url,
    )


def test_backends_are_the_api_servers_only_each_with_its_state(statistics: str) -> None:
    assert balancer_backends(_outputs(statistics)) == [("api-1", "10.0.0.1", "UP"), ("api-2", "10.0.0.2", "DOWN")]


def test_one_item_that_is_not_ok_makes_the_status_not_ok() -> None:
    good, bad = Item("nodes", "a", True, "Ready"), Item("nodes", "b", False, "NotReady")
    assert Status("lab", "", (good,)).ok
    assert not Status("lab", "", (good, bad)).ok


def test_the_json_of_a_status_holds_every_item() -> None:
    item = Item("nodes", "a", True, "Ready")
    assert Status("lab", "https://x", (item,)).to_json()["items"] == [
        {"group": "nodes", "name": "a", "ok": True, "detail": "Ready"}
    ]
