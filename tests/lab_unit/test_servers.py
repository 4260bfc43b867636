from __future__ import annotations

import hashlib
import http.client
import json
import threading
from collections.abc import Callable, Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from sandbox.lab import mirror_server, state, store_server

Get = Callable[[str], tuple[int, bytes]]


def _serve(server: ThreadingHTTPServer) -> Iterator[Get]:
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()

    def get(path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=5)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    yield get
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return tmp_path / "policy.json"


@pytest.fixture
def ask(policy: Path) -> Iterator[Get]:
    yield from _serve(store_server.make("127.0.0.1", 0, policy))


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[Get]:
    (tmp_path / "secret").write_text("outside")
    (tmp_path / "tree" / "dl.k8s.io").mkdir(parents=True)
    (tmp_path / "tree" / "dl.k8s.io" / "kubelet").write_bytes(bytes(range(256)) * 8192)
    yield from _serve(mirror_server.make("127.0.0.1", 0, tmp_path / "tree"))


def test_a_host_may_read_what_is_on_its_list(ask: Get, policy: Path) -> None:
    policy.write_text(json.dumps({"127.0.0.1": {"read": {"ca.key": "KEY\nEND\n"}}}))
    assert ask("/v1/secrets/ca.key") == (200, b"KEY\nEND\n")


def test_a_host_cannot_read_what_is_on_the_list_of_another(ask: Get, policy: Path) -> None:
    policy.write_text(json.dumps({"127.0.0.1": {"read": {"a": "A"}}, "10.79.2.12": {"read": {"b": "B"}}}))
    status, body = ask("/v1/secrets/b")
    assert status == 403
    assert b"127.0.0.1 may not read b" in body


def test_a_host_without_a_list_can_read_nothing(ask: Get, policy: Path) -> None:
    policy.write_text(json.dumps({"10.79.2.12": {"read": {"b": "B"}}}))
    assert ask("/v1/secrets/b")[0] == 403


def test_a_request_before_there_is_a_policy_can_be_retried(ask: Get) -> None:
    assert ask("/v1/secrets/a")[0] == 503


def test_a_new_policy_applies_from_the_next_request(ask: Get, policy: Path) -> None:
    state.write(policy, {"127.0.0.1": {"read": {"a": "old"}}}, 0o600)
    before = ask("/v1/secrets/a")
    state.write(policy, {"127.0.0.1": {"read": {"a": "new"}}}, 0o600)
    assert (before, ask("/v1/secrets/a")) == ((200, b"old"), (200, b"new"))


@pytest.mark.parametrize("path", ["/", "/v1/secrets", "/v1/", "/policy.json"])
def test_the_store_serves_only_secrets(ask: Get, policy: Path, path: str) -> None:
    policy.write_text(json.dumps({"127.0.0.1": {"read": {"": "all", "secrets": "all", "policy.json": "all"}}}))
    assert ask(path)[0] == 404


def test_the_mirror_serves_a_complete_file(mirror: Get) -> None:
    status, body = mirror("/dl.k8s.io/kubelet")
    assert status == 200
    assert hashlib.sha256(body).digest() == hashlib.sha256(bytes(range(256)) * 8192).digest()


@pytest.mark.parametrize("path", ["/", "/dl.k8s.io/", "/dl.k8s.io/kubeadm", "/../secret", "/%2e%2e/secret"])
def test_the_mirror_serves_no_listing_and_nothing_outside_its_tree(mirror: Get, path: str) -> None:
    status, body = mirror(path)
    assert status == 404
    assert b"outside" not in body
