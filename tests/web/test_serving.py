"""The pages over real HTTP and TLS, by the command's own server."""

from __future__ import annotations

import http.client
import socket
import ssl

import pytest

from cluster.errors import FailedError
from controllers.web.app import application
from controllers.web.facts import Site
from controllers.web.guards import ClusterGuard, LinkGuard
from controllers.web.serving import listening, serving
from stacks.certificates import Request, issue, new_authority
from tests.web.support import NOW_S, facts


@pytest.fixture
def served(lab):
    """Yield the port and the secret of a server."""
    listener = listening("127.0.0.1", 0)
    port = listener.getsockname()[1]
    guard = LinkGuard("127.0.0.1", port)
    with serving(application(Site(lambda: (facts(lab),), lambda: NOW_S), guard), listener):
        yield port, guard.secret


def ask(port, method, path, headers=None, context=None):
    """Return the status and the body of an answer."""
    if context:
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=context)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_pages_come_over_http_with_the_secret_and_head_has_no_body(served):
    port, secret = served
    assert "lab" in ask(port, "GET", f"/{secret}/")[1]
    assert ask(port, "HEAD", f"/{secret}/") == (200, "")
    assert ask(port, "GET", "/")[0] == 403
    assert ask(port, "POST", f"/{secret}/")[0] == 405
    assert ask(port, "GET", f"/{secret}/", {"Host": "evil.example"})[0] == 421


def test_two_host_headers_or_none_are_refused(served):
    port, secret = served
    for hosts in ((), (f"127.0.0.1:{port}", "evil.example")):
        with socket.create_connection(("127.0.0.1", port), 20) as raw:
            lines = [f"GET /{secret}/ HTTP/1.1", *(f"Host: {host}" for host in hosts), "Connection: close", "", ""]
            raw.sendall("\r\n".join(lines).encode())
            status = raw.makefile().readline()
        assert status.split()[1] in ("400", "421"), status


def test_the_server_ends_with_its_block_and_its_port_is_free_again(lab):
    listener = listening("127.0.0.1", 0)
    port = listener.getsockname()[1]
    with serving(application(Site(lambda: (), lambda: NOW_S), LinkGuard("127.0.0.1", port)), listener):
        assert ask(port, "GET", "/")[0] == 403
    with pytest.raises(OSError, match="refused"):
        ask(port, "GET", "/")
    listening("127.0.0.1", port).close()


def test_a_port_that_is_taken_is_an_error_with_the_way_out():
    taken = listening("127.0.0.1", 0)
    try:
        with pytest.raises(FailedError, match="can't listen on 127.0.0.1:.* in use; choose another with --port"):
            listening("127.0.0.1", taken.getsockname()[1])
    finally:
        taken.close()


def test_with_tls_a_browser_without_a_token_is_asked_for_one(lab, tmp_path):
    authority = new_authority("web")
    signed = issue(authority, Request("web", addresses=("127.0.0.1",)))
    listener = listening("127.0.0.1", 0)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    (tmp_path / "pair.pem").write_text(signed.certificate + signed.private_key)
    context.load_cert_chain(tmp_path / "pair.pem")
    trusting = ssl.create_default_context(cadata=authority.certificate)
    with serving(
        application(Site(lambda: (facts(lab),), lambda: NOW_S), ClusterGuard(lambda: None)), listener, context
    ):
        port = listener.getsockname()[1]
        assert ask(port, "GET", "/", context=trusting)[0] == 401
