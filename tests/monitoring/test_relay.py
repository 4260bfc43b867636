"""The relay of metrics: whom it answers, what it passes on, and that nothing behind it or before it stops it."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from cluster.metrics import relay
from cluster.metrics.host import relay as program
from components.control_plane import metrics_relay, scraper
from stacks.certificates import Request, Signed, issue, new_authority
from tests.monitoring.relayed import (
    CA,
    CONTENT,
    SCRAPER,
    SERVER,
    STRANGER,
    ask,
    body,
    credentials,
    endless,
    expired,
    running,
    serving,
    trusting,
    upstream,
)
from tests.ports import free_port
from tests.waiting import until

TEXT = "etcd_server_has_leader 1\n"
OWN = issue(CA, SCRAPER)
COMPONENT = Request("kube-apiserver", addresses=("127.0.0.1",), usages=("server",))


@pytest.fixture
def relayed(tmp_path: Path) -> Iterator[int]:
    """Run a relay with one job; yield its port."""
    with upstream(body(TEXT)) as (url, _), running(tmp_path, {"etcd-main": url}) as port:
        yield port


def test_the_scraper_gets_what_the_program_answers(relayed: int, tmp_path: Path) -> None:
    status, headers, text = ask(tmp_path, relayed, "/metrics/etcd-main", OWN)
    assert (status, text.decode(), headers["Content-Type"]) == (200, TEXT, CONTENT)
    assert "Content-Encoding" not in headers
    wanting = {"Accept-Encoding": "gzip", "Accept": "application/openmetrics-text"}
    status, headers, text = ask(tmp_path, relayed, "/metrics/etcd-main", OWN, headers=wanting)
    assert (status, gzip.decompress(text).decode(), headers["Content-Encoding"]) == (200, TEXT, "gzip")


@pytest.mark.parametrize(
    "client",
    [
        pytest.param(None, id="no certificate"),
        pytest.param(issue(STRANGER, SCRAPER), id="of another authority with the same name"),
        pytest.param(expired(SCRAPER), id="expired"),
        pytest.param(issue(CA, replace(SCRAPER, usages=("server",))), id="for servers"),
    ],
)
def test_nobody_without_a_client_certificate_of_the_authority_gets_an_answer(
    relayed: int, tmp_path: Path, client: Signed | None
) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
        ask(tmp_path, relayed, "/metrics/etcd-main", client)
    assert ask(tmp_path, relayed, "/metrics/etcd-main", OWN)[0] == 200


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(Request("system:node:n", ("system:nodes",), usages=("client",)), id="a kubelet"),
        pytest.param(Request(scraper.USER, usages=("client",)), id="the scraper's common name alone"),
        pytest.param(Request("x", dns_names=("n",), usages=("client",)), id="another alternative name"),
        pytest.param(replace(SCRAPER, dns_names=(relay.SCRAPER, "n")), id="one name more"),
        pytest.param(replace(SCRAPER, dns_names=(f"x.{relay.SCRAPER}",)), id="a longer name"),
        pytest.param(replace(SCRAPER, addresses=("10.0.0.1",)), id="an address more"),
        pytest.param(Request("menagerie-operator", ("kubeadm:cluster-admins",), usages=("client",)), id="an operator"),
    ],
)
def test_another_client_of_the_authority_is_refused(relayed: int, tmp_path: Path, request_: Request) -> None:
    status, _, text = ask(tmp_path, relayed, "/metrics/etcd-main", issue(CA, request_))
    assert (status, text) == (403, b"this certificate is not the scraper's\n")


def test_a_session_of_the_scraper_is_not_resumed_without_its_certificate(relayed: int, tmp_path: Path) -> None:
    context = trusting(tmp_path, OWN)
    with (
        socket.create_connection(("127.0.0.1", relayed)) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
    ):
        assert secured.version() == "TLSv1.3"
        secured.sendall(b"GET /metrics/etcd-main HTTP/1.1\r\nHost: x\r\n\r\n")
        while secured.recv(4096):
            session = secured.session
        assert not session.has_ticket


def test_older_versions_of_tls_are_refused(relayed: int, tmp_path: Path) -> None:
    context = trusting(tmp_path, OWN)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_connection(("127.0.0.1", relayed)) as plain, pytest.raises(ssl.SSLError, match="version"):
        context.wrap_socket(plain, server_hostname="127.0.0.1")


@pytest.mark.parametrize(
    "path",
    ["/", "/metrics", "/metrics/", "/metrics/kube-apiserver", "/metrics/etcd-main/", "/metrics/etcd-main?a=b", "/x"],
)
def test_only_listed_jobs_can_be_read(relayed: int, tmp_path: Path, path: str) -> None:
    status, _, text = ask(tmp_path, relayed, path, OWN)
    assert (status, text) == (404, b"there is only /metrics/etcd-main\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "CONNECT"])
def test_nothing_can_be_done_but_reading(relayed: int, tmp_path: Path, method: str) -> None:
    assert ask(tmp_path, relayed, "/metrics/etcd-main", OWN, method)[0] == 501


def test_components_with_tls_see_a_client_that_may_read_metrics(tmp_path: Path) -> None:
    """The API server is verified; the scheduler makes its own certificate at its start."""
    itself = issue(new_authority("kube-scheduler"), Request("localhost", usages=("server",)))
    with ExitStack() as ends:
        api, at_api = ends.enter_context(upstream(body("api 1\n"), serving(tmp_path, issue(CA, COMPONENT))))
        scheduler, at_scheduler = ends.enter_context(upstream(body("scheduler 1\n"), serving(tmp_path, itself)))
        jobs = {"kube-apiserver": api, "kube-scheduler": scheduler}
        port = ends.enter_context(running(tmp_path, jobs, ("kube-scheduler",)))
        assert ask(tmp_path, port, "/metrics/kube-apiserver", OWN)[2] == b"api 1\n"
        assert ask(tmp_path, port, "/metrics/kube-scheduler", OWN)[2] == b"scheduler 1\n"
    for (peer,) in (at_api, at_scheduler):
        assert (("commonName", metrics_relay.USER),) in peer["subject"]


@pytest.mark.parametrize("signer", [STRANGER, CA], ids=["another authority", "another name"])
def test_an_api_server_that_is_not_this_hosts_is_not_believed(tmp_path: Path, signer: Signed) -> None:
    address = "10.0.0.1" if signer is CA else "127.0.0.1"
    wrong = issue(signer, replace(COMPONENT, addresses=(address,)))
    with (
        upstream(body(TEXT), serving(tmp_path, wrong)) as (url, clients),
        running(tmp_path, {"kube-apiserver": url}) as port,
    ):
        status, _, text = ask(tmp_path, port, "/metrics/kube-apiserver", OWN)
    assert (status, clients) == (502, [])
    assert b"CERTIFICATE_VERIFY_FAILED" in text


def test_a_program_that_is_down_is_a_502_until_it_is_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    down = f"http://127.0.0.1:{free_port()}/metrics"
    with upstream(body(TEXT)) as (url, _), running(tmp_path, {"etcd-main": url, "etcd-events": down}) as port:
        status, _, text = ask(tmp_path, port, "/metrics/etcd-events", OWN)
        assert (status, text) == (502, b"etcd-events does not answer: [Errno 111] Connection refused\n")
        assert ask(tmp_path, port, "/metrics/etcd-main", OWN)[2].decode() == TEXT
    assert "127.0.0.1: '/metrics/etcd-events': etcd-events does not answer" in capsys.readouterr().out


def test_a_refusal_of_the_program_is_not_passed_on_as_metrics(tmp_path: Path) -> None:
    with (
        upstream(lambda handler: handler.send_error(403, "no")) as (url, _),
        running(tmp_path, {"kube-scheduler": url}) as port,
    ):
        status, _, text = ask(tmp_path, port, "/metrics/kube-scheduler", OWN)
    assert (status, text) == (502, b"kube-scheduler answers 403 no\n")


def silent(handler: BaseHTTPRequestHandler) -> None:
    time.sleep(3)


def test_a_program_that_is_silent_is_a_504(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "WAIT_S", 1)
    with upstream(silent) as (url, _), running(tmp_path, {"etcd-main": url}) as port:
        status, _, text = ask(tmp_path, port, "/metrics/etcd-main", OWN)
    assert (status, text) == (504, b"etcd-main does not answer within 1 s\n")


def cut_short(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"a 1\n")


def stuck(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(b"a 1\n")
    time.sleep(5)


@pytest.mark.parametrize(
    ("answer", "bounds", "why"),
    [
        pytest.param(endless(0), {"MOST_BYTES": 2**20}, "it has more than 1048576 bytes", id="huge"),
        pytest.param(endless(0.2), {"LONGEST_S": 1}, "it takes longer than 1 s", id="a drip"),
        pytest.param(stuck, {"WAIT_S": 1}, "the rest does not come: timeout", id="stuck in the middle"),
        pytest.param(cut_short, {}, "996 bytes are missing", id="cut short"),
    ],
)
def test_half_an_answer_is_never_taken_for_a_whole_one(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: Any,
    bounds: dict[str, int],
    why: str,
) -> None:
    for name, value in bounds.items():
        monkeypatch.setattr(program, name, value)
    with ExitStack() as ends:
        url, _ = ends.enter_context(upstream(answer))
        good, _ = ends.enter_context(upstream(body(TEXT)))
        port = ends.enter_context(running(tmp_path, {"etcd-main": url, "etcd-events": good}))
        with pytest.raises((http.client.IncompleteRead, ConnectionError, ssl.SSLError)):
            ask(tmp_path, port, "/metrics/etcd-main", OWN)
        assert ask(tmp_path, port, "/metrics/etcd-events", OWN)[2].decode() == TEXT
    written = capsys.readouterr().out.replace("TimeoutError", "timeout")
    assert f"etcd-main: ended, because {why}" in written


def test_who_never_shakes_hands_loses_the_connection_and_keeps_only_its_own_address_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "OF_ONE_ADDRESS", 3)
    with ExitStack() as ends:
        url, _ = ends.enter_context(upstream(body(TEXT)))
        monkeypatch.setattr(program, "HANDSHAKE_S", 2)
        port = ends.enter_context(running(tmp_path, {"etcd-main": url}))
        for _ in range(3):
            ends.enter_context(socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.9", 0)))
        time.sleep(0.3)
        with socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.9", 0)) as fourth:
            fourth.settimeout(10)
            assert fourth.recv(1) == b""
        assert ask(tmp_path, port, "/metrics/etcd-main", OWN)[0] == 200, "the scraper has another address"
        until(lambda: admitted(tmp_path, port), "their places are not free again", 20)
        assert "timed out" in capsys.readouterr().out


def admitted(folder: Path, port: int) -> bool:
    """Return whether an address that was kept out is answered again."""
    try:
        return ask(folder, port, "/metrics/etcd-main", OWN, source="127.0.0.9")[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def test_many_scrapes_at_the_same_time_do_not_mix(tmp_path: Path) -> None:
    texts = {f"job-{number}": f"a {number}\n" * 50_000 for number in range(4)}
    with ExitStack() as ends:
        urls = {job: ends.enter_context(upstream(body(text)))[0] for job, text in texts.items()}
        port = ends.enter_context(running(tmp_path, urls))
        wrong: list[str] = []

        def scrape(job: str) -> None:
            for _ in range(3):
                if ask(tmp_path, port, f"/metrics/{job}", OWN)[2].decode() != texts[job]:
                    wrong.append(job)

        threads = [threading.Thread(target=scrape, args=(job,)) for job in (*texts, *texts)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert wrong == []


def test_garbage_does_not_end_it(relayed: int, tmp_path: Path) -> None:
    for data in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"\0" * 600, b""):
        with socket.create_connection(("127.0.0.1", relayed)) as plain:
            plain.sendall(data)
    context = trusting(tmp_path, OWN)
    for data in (
        b"\0\r\n\r\n",
        b"GET " + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /metrics/etcd-main HTTP/9\r\n\r\n",
    ):
        with (
            socket.create_connection(("127.0.0.1", relayed)) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
        ):
            secured.sendall(data)
            secured.recv(100)
    assert ask(tmp_path, relayed, "/metrics/etcd-main", OWN)[0] == 200


@pytest.mark.parametrize("missing", ["ca.crt", "relay.key", "kubeconfig", "settings"])
def test_without_one_of_its_files_it_says_so_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """systemd starts it again."""
    jobs = {"kube-apiserver": "https://127.0.0.1:1/metrics"}
    (credentials(tmp_path) / "settings").write_text(relay.settings("127.0.0.1", free_port(), jobs))
    (tmp_path / missing).unlink()
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    monkeypatch.setattr(program.sys, "argv", ["relay", str(tmp_path / "settings")])
    with pytest.raises(SystemExit, match="metrics-relay can't start: FileNotFoundError"):
        program.main()


def test_its_settings_say_nothing_that_is_secret() -> None:
    settings = json.loads(relay.settings("0.0.0.0", 2396, {"etcd-main": "http://127.0.0.1:2383/metrics"}))
    assert set(settings) == {"address", "port", "client", "upstreams", "unverified"}
    assert SERVER.usages == ("server",)
