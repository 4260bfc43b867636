"""Requests in plain JSON: what is sent to an API server, and what its answers become."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.api_errors import ApiSilentError, ApiStatusError
from clients.kube import Kube
from clients.objects import PLACES
from clients.rest import Rest
from cluster.errors import FailedError


@dataclass
class Server:
    """Answers requests in order. answers: (status, JSON). requests: (method, path with query, headers, body)."""

    url: str = ""
    answers: list[tuple[int, Any]] = field(default_factory=list)
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def api(self, **api_key: str) -> client.ApiClient:
        configuration = client.Configuration(host=self.url)
        configuration.api_key, configuration.retries = api_key, False
        return client.ApiClient(configuration)

    @property
    def sent(self) -> list[str]:
        return [f"{method} {path}" for method, path, _, _ in self.requests]


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            state.requests.append((self.command, self.path, headers, body))
            if not state.answers:
                state.over.wait()  # silent
                return
            status, content = state.answers.pop(0)
            self.send_response_only(status)
            self.send_header("Date", "Thu, 26 Nov 2026 03:00:00 GMT")
            self.end_headers()
            self.wfile.write(json.dumps(content).encode() if content is not None else b"")

        do_GET = do_PATCH = do_DELETE = answer

        def log_message(self, *args: object) -> None:
            pass

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener.daemon_threads = True
    threading.Thread(target=listener.serve_forever, args=(0.01,), daemon=True).start()
    state.url = f"http://127.0.0.1:{listener.server_port}"
    yield state
    state.over.set()
    listener.shutdown()
    listener.server_close()


def page(*names: str, following: str = "") -> tuple[int, Any]:
    return 200, {"metadata": {"continue": following}, "items": [{"metadata": {"name": name}} for name in names]}


def test_lists_follow_the_token_of_each_page_and_keep_their_selectors(server: Server) -> None:
    server.answers = [page("a", following="x/+="), page("b")]
    listed = list(Kube(server.api()).list("Pod", "ns", labels="app=web", fields="spec.nodeName=n"))
    assert listed == [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}} for name in "ab"]
    path = "GET /api/v1/namespaces/ns/pods?labelSelector=app%3Dweb&fieldSelector=spec.nodeName%3Dn&limit=500"
    assert server.sent == [path, f"{path}&continue=x%2F%2B%3D"]


def test_an_expired_list_is_read_again_without_pages(server: Server) -> None:
    server.answers = [page("a", following="1"), (410, {}), page("a", "b")]
    assert [each["metadata"]["name"] for each in Rest(server.api()).list("/x")] == ["a", "b"]
    assert server.sent == ["GET /x?limit=500", "GET /x?limit=500&continue=1", "GET /x"]


def test_a_snapshot_has_the_servers_time(server: Server) -> None:
    server.answers = [page("a", following="1"), page("b")]
    at, items = Kube(server.api()).snapshot("Lease", "kube-node-lease")
    assert (at, len(items)) == (datetime(2026, 11, 26, 3, tzinfo=UTC), 2)


def test_writes_name_their_manager_and_the_kind_of_their_body(server: Server) -> None:
    server.answers = [(200, {"kind": "Secret"}), (200, {}), (200, None)]
    kube, key = Kube(server.api(), "tests"), ("Secret", "ns", "s")
    thing = {"kind": "Secret", "metadata": {"namespace": "ns", "name": "s"}}
    assert kube.apply(thing, dry_run=True) == {"kind": "Secret"}
    kube.patch(key, {"data": None})
    kube.delete(key)
    path = "/api/v1/namespaces/ns/secrets/s"
    assert server.sent == [
        f"PATCH {path}?fieldManager=tests&force=true&fieldValidation=Strict&dryRun=All",
        f"PATCH {path}?fieldManager=tests",
        f"DELETE {path}",
    ]
    assert [(headers.get("content-type"), json.loads(body or "null")) for _, _, headers, body in server.requests] == [
        ("application/apply-patch+yaml", thing),
        ("application/merge-patch+json", {"data": None}),
        (None, None),
    ]


def test_a_token_is_sent_as_the_library_sends_it(server: Server) -> None:
    server.answers = [(200, {}), (200, {}), (200, {})]
    Rest(server.api()).get("/x")
    Rest(server.api(authorization="Bearer t")).get("/x")
    client.CoreV1Api(server.api(authorization="Bearer t")).read_namespace("x")
    assert [headers.get("authorization") for _, _, headers, _ in server.requests] == [None, "Bearer t", "Bearer t"]


@pytest.mark.parametrize(("status", "retryable"), [(403, False), (404, False), (429, True), (503, True)])
def test_a_refusal_is_an_error_of_the_command_and_of_the_library(server: Server, status: int, retryable: bool) -> None:
    server.answers = [(status, {"message": "no"})]
    with pytest.raises(ApiStatusError) as caught:
        Rest(server.api()).get("/x")
    error = caught.value
    assert isinstance(error, FailedError)
    assert isinstance(error, ApiException)
    assert (error.status, error.body, error.retryable, error.code) == (status, '{"message": "no"}', retryable, "api")
    assert str(error) == f'the API server answers {status} {error.reason}: {{"message": "no"}}'


def test_silence_is_an_error_of_the_command_and_of_urllib3_after_the_time_out(server: Server) -> None:
    with pytest.raises(ApiSilentError) as caught:
        Rest(server.api(), timeout_s=0.05).get("/x")
    assert isinstance(caught.value, urllib3.exceptions.HTTPError)
    assert (caught.value.why, caught.value.code) == ("ReadTimeoutError", "api-unreachable")


def test_a_resource_that_is_not_there_is_not_served(server: Server) -> None:
    server.answers = [(404, {}), (200, {"resources": [{"name": "jobs"}]}), (403, {})]
    kube = Kube(server.api())
    job = PLACES["Job"]
    assert (kube.serves(job), kube.serves(job)) == (False, True)
    with pytest.raises(ApiStatusError):
        kube.serves(job)
