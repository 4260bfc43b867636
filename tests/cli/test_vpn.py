"""`vpn request` and `show vpn`, with simulated routers and stacks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from operations import gateways, router_requests
from operations.router_requests import Requested
from tests.cli.conftest import EXAMPLES

RUNNER = CliRunner()
HORUS = str(EXAMPLES / "horus")
GOOD = Requested("sjc1/edge-1", Path("vpn/edge-1.pem.csr"))
BAD = Requested("sjc1/edge-2", None, "Connection refused")


@pytest.mark.parametrize(("requests", "code"), [([GOOD], 0), ([GOOD, BAD], 1)])
def test_each_router_is_listed_and_one_without_a_request_is_a_failure(monkeypatch, requests, code) -> None:
    selections: list[tuple[str, ...]] = []
    monkeypatch.setattr(
        router_requests, "request", lambda _, __, only, **_options: selections.append(tuple(only)) or requests
    )
    plain = RUNNER.invoke(app, ["vpn", "request", HORUS, "--router", "sjc1/edge-1,sjc1/edge-2"])
    assert plain.exit_code == code
    assert selections == [("sjc1/edge-1", "sjc1/edge-2")]
    assert "sjc1/edge-1: vpn/edge-1.pem.csr" in plain.stdout
    assert ("sjc1/edge-2: none, Connection refused" in plain.stdout) is bool(code)
    as_json = RUNNER.invoke(app, ["vpn", "request", HORUS, "--json"])
    assert [row["why"] for row in json.loads(as_json.stdout)["requests"]] == [item.why for item in requests]


@pytest.mark.parametrize(
    ("certificate", "words"),
    [
        ({"expires": "2099-01-02T00:00:00+00:00", "wrong": None}, "IKE identity: until 2099-01-02, "),
        ({"expires": None, "wrong": "vpn/e.pem can't be read"}, "IKE identity: vpn/e.pem can't be read"),
    ],
)
def test_show_prints_when_a_certificate_expires_and_whom_the_router_trusts(monkeypatch, certificate, words) -> None:
    ends = {"file": "vpn/e.pem", "ca": "vpn/ca.pem", "gateway_subject": "CN=end-0", **certificate}
    tunnel = {
        "site": "sjc1", "router": "edge-1", "tunnel": 0, "router_address": "198.51.100.1", "gateway_address": None,
        "key": None, "certificate": ends, "ike": {"version": 2, "proposal": "p", "lifetime_s": 1},
        "esp": {"proposal": "p", "lifetime_s": 1}, "selectors": "s", "inside": {"router": "r", "gateway": "g"},
        "bgp": {"router_asn": 1, "gateway_asn": 2, "keepalive_s": 1, "hold_s": 3, "announce": [], "accept": []},
        "mtu": 1, "mss": 1,
    }  # fmt: skip
    monkeypatch.setattr(gateways, "gateway_addresses", lambda *_: ({}, {}))
    monkeypatch.setattr(gateways, "tunnel_settings", lambda *_: [tunnel])
    done = RUNNER.invoke(app, ["show", "vpn", HORUS], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    assert words in done.stdout
    assert "trusts    CN=end-0, if signed by the first of vpn/ca.pem" in done.stdout
    assert "also its IKE identity" not in done.stdout
