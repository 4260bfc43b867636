"""A host whose clock differs from the API's is refused before any certificate is checked against it."""

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
    """Provide a function that starts an API whose clock is off by `skew` seconds (None: no Date), and returns host:port."""
    # From an unknown authority: with a wrong clock, any certificate would be refused.
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
def test_clocks_that_agree_and_an_api_without_a_date_pass(host, api, skew):
    host("clock").refuse_skew(api(skew))


def test_an_api_that_is_down_is_left_to_the_join_to_report(host):
    host("clock").refuse_skew("127.0.0.1:1")


@pytest.mark.parametrize(("skew", "word"), [(312, "behind it"), (-312, "ahead of it")])
def test_the_error_has_both_clocks_and_the_fix(host, api, skew, word):
    clock = host("clock")
    with pytest.raises(clock.Refused) as refused:
        clock.refuse_skew(api(skew))
    text = str(refused.value)
    assert text.count(" UTC") == 2
    phrases = [f"{phrase} s {word}" for phrase in (311, 312, 313)]
    assert any(phrase in text for phrase in phrases), text
    assert "chronyc makestep" in text
