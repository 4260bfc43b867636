"""A host whose clock isn't the API's is told before any certificate is judged by it."""

from __future__ import annotations

import email.utils
import http.server
import time
from contextlib import ExitStack

import pytest

from stacks import certificates
from tests.roles.serving import serving, tls_of


@pytest.fixture
def api(tmp_path):
    """api(seconds): host:port of an API whose clock is that far from this one's; None for one that tells no time."""
    # Of an authority that nobody knows: a wrong clock would refuse any certificate.
    tls = tls_of(certificates.new_authority("x"), tmp_path)
    with ExitStack() as stops:

        def served(skew):
            class Handler(http.server.BaseHTTPRequestHandler):
                def do_HEAD(self):
                    self.send_response_only(200)
                    if skew is not None:
                        self.send_header("Date", email.utils.formatdate(time.time() + skew, usegmt=True))
                    self.end_headers()

                def log_message(self, *_):
                    pass

            return stops.enter_context(serving(Handler, tls))

        yield served


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
