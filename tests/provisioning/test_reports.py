"""Which reports are accepted, from whom."""

from __future__ import annotations

import http.client

import pytest

from cluster.errors import FailedError
from operations.provisioning.machines import SiteMachine, machines
from operations.provisioning.reports import Reports, listening, report_of
from tests.ports import free_port
from tests.provisioning.support import KEYS, cluster, local_cluster

ONE, TWO, _ = machines(cluster())
AT = str(ONE.address)


@pytest.fixture
def reports() -> Reports:
    listener = Reports()
    listener.expect(ONE)
    return listener


def test_a_machine_s_first_key_counts_and_a_second_one_is_reported(reports: Reports) -> None:
    assert reports.hear_key(ONE.hyphened, AT, KEYS[0]) == 204
    assert reports.hear_key(ONE.hyphened, AT, f"{KEYS[0]} again") == 204
    assert report_of(reports, ONE.name) == {"key": KEYS[0]}
    assert reports.hear_key(ONE.hyphened, AT, KEYS[1]) == 409
    assert report_of(reports, ONE.name)["key"] == KEYS[0]
    assert "two different SSH host keys" in report_of(reports, ONE.name)["refusal"]
    reports.expect(ONE)
    assert report_of(reports, ONE.name) == {}


@pytest.mark.parametrize(
    ("hyphened", "sender", "line", "status"),
    [
        (TWO.hyphened, str(TWO.address), KEYS[0], 403),
        (ONE.hyphened, str(TWO.address), KEYS[0], 403),
        ("../x", AT, KEYS[0], 403),
        (ONE.hyphened, AT, "-----BEGIN OPENSSH PRIVATE KEY-----", 400),
    ],
)
def test_other_senders_and_invalid_keys_are_rejected(
    reports: Reports, hyphened: str, sender: str, line: str, status: int
) -> None:
    assert reports.hear_key(hyphened, sender, line) == status
    assert reports.keys == {}


def test_a_key_is_stored_before_the_machine_gets_a_response() -> None:
    kept: list[str] = []

    def keep(machine: SiteMachine, key: str) -> None:
        kept.append(f"{machine.name} {key}")

    listener = Reports(keep)
    listener.expect(ONE)
    listener.hear_key(ONE.hyphened, AT, KEYS[0])
    listener.hear_key(ONE.hyphened, AT, KEYS[0])
    assert kept == [f"{ONE.name} {KEYS[0]}"]


def test_a_refusal_is_reported_in_words(reports: Reports) -> None:
    assert reports.hear_refusal(ONE.hyphened, AT, "several-disks") == 204
    assert "several disks match" in report_of(reports, ONE.name)["refusal"]
    assert reports.hear_refusal(ONE.hyphened, AT, "<b>") == 400


def test_long_invalid_and_unknown_http_requests_are_refused() -> None:
    port = free_port()
    one = machines(local_cluster(1))[0]
    reports = Reports()
    reports.expect(one)

    def ask(method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5, source_address=(str(one.address), 0))
        connection.request(method, path, body, headers or {})
        return connection.getresponse().status

    with listening(f"http://127.0.0.1:{port}", reports):
        assert ask("PUT", f"/key/{one.hyphened}", KEYS[0].encode()) == 204
        assert ask("PUT", f"/key/{one.hyphened}", b"x" * 2000) == 404
        assert ask("PUT", f"/key/{one.hyphened}", None, {"Content-Length": "-1"}) == 404
        assert ask("PUT", "/etc/passwd", b"x") == 404
        assert ask("GET", f"/refused/{one.hyphened}/no-disk") == 204
        assert ask("GET", "/") == 404
        assert ask("DELETE", "/") == 501
        with pytest.raises(FailedError, match="nothing else may listen there"):
            listening(f"http://127.0.0.1:{port}", reports).__enter__()
    with pytest.raises(FailedError, match="must be an address of this machine"):
        listening("http://192.0.2.1:8642", reports).__enter__()
