"""A host whose clock isn't the API's is told before any certificate is judged by it."""

from __future__ import annotations

import email.utils
import http.server
import ssl
import threading
import time

import pytest

from stacks import certificates
from stacks.certificates import Request


@pytest.fixture
def api(tmp_path):
    """api(seconds): host:port of an API whose clock is that far from this one's; None for one that tells no time."""
    stops = []

    def served(skew):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_HEAD(self):
                self.send_response_only(200)
                if skew is not None:
                    self.send_header("Date", email.utils.formatdate(time.time() + skew, usegmt=True))
                self.end_headers()

            def log_message(self, *_):
                pass

        # Of an authority that nobody knows: a wrong clock would refuse any certificate.
        leaf = certificates.issue(certificates.new_authority("x"), Request("api", addresses=("127.0.0.1",)))
        (tmp_path / "leaf").write_text(leaf.certificate + leaf.private_key)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(tmp_path / "leaf")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        stops.append((server, thread))
        return f"127.0.0.1:{server.server_port}"

    yield served
    for server, thread in stops:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("skew", [0, 50, -50, None])
def test_clocks_that_agree_and_an_api_that_tells_no_time_are_let_through(host, api, skew):
    host("clock").refuse_skew(api(skew))


def test_an_api_that_is_down_is_the_join_s_to_tell(host):
    host("clock").refuse_skew("127.0.0.1:1")


@pytest.mark.parametrize(("skew", "word"), [(312, "behind it"), (-312, "ahead of it")])
def test_both_clocks_and_the_way_out_are_named(host, api, skew, word):
    clock = host("clock")
    with pytest.raises(clock.Refused) as refused:
        clock.refuse_skew(api(skew))
    text = str(refused.value)
    assert text.count(" UTC") == 2
    seconds = [f"{each} s {word}" for each in (311, 312, 313)]
    assert any(each in text for each in seconds), text
    assert "chronyc makestep" in text
