"""The program by which a host of the lab reads its store, and the boot program on top of it, against the lab's server."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from components.userdata import Payload
from sandbox.lab import store_server
from stacks.lab.store import LabStore
from tests.userdata.placed import boot

PAYLOAD = Payload('{"files": [{"path": "/etc/a", "text": "ä\\n"}]}\n')
OTHER = Payload('{"files": []}\n')


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return tmp_path / "policy.json"


@pytest.fixture
def server(policy: Path) -> Iterator[store_server._Server]:
    server_ = store_server.make("127.0.0.1", 0, policy)
    thread = threading.Thread(target=server_.serve_forever, args=(0.02,))
    thread.start()
    yield server_
    server_.shutdown()
    thread.join()
    server_.server_close()


@pytest.fixture
def url(server: store_server._Server) -> str:
    return f"http://127.0.0.1:{server.server_port}"


@pytest.fixture
def cut_short() -> Iterator[str]:
    """URL of a server that closes the connection in the middle of its answer."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread.join()


def _program(tmp_path: Path, url: str) -> Path:
    program = tmp_path / "menagerie-secret"
    program.write_text(LabStore(url).script().replace("/usr/bin/python3", sys.executable, 1))
    program.chmod(0o755)
    return program


def _ask(tmp_path: Path, url: str, *names: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([_program(tmp_path, url), *names], check=False, capture_output=True)


def _hold(policy: Path, values: dict[str, str], *written: str) -> None:
    policy.write_text(json.dumps({"127.0.0.1": {"read": values, "write": written}}))


def _put(tmp_path: Path, url: str, value: bytes) -> subprocess.CompletedProcess[bytes]:
    program = [_program(tmp_path, url), "--put", "join-token"]
    return subprocess.run(program, check=False, capture_output=True, input=value)


def test_a_host_reads_its_own_secrets_to_the_byte(tmp_path: Path, policy: Path, url: str) -> None:
    _hold(policy, {"etcd-main-ca.crt": "\0key ä\n", "b": "2", "c": "3"})
    done = _ask(tmp_path, url, "etcd-main-ca.crt", "c")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"etcd-main-ca.crt": "\0key ä\n", "c": "3"})


def test_all_requested_secrets_use_one_connection(
    tmp_path: Path, policy: Path, url: str, server: store_server._Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections = []
    accept = server.get_request
    monkeypatch.setattr(server, "get_request", lambda: connections.append(accept()) or connections[-1])
    _hold(policy, dict.fromkeys("abc", "x"))
    assert _ask(tmp_path, url, "a", "b", "c").returncode == 0
    assert len(connections) == 1


def test_secrets_of_another_host_are_refused_and_each_refusal_is_reported(
    tmp_path: Path, policy: Path, url: str
) -> None:
    _hold(policy, {"own": "1"})
    done = _ask(tmp_path, url, "sa.key", "own", "ca.key")
    assert (done.returncode, done.stdout) == (1, b"")
    assert [line.partition("/v1/secrets/")[2] for line in done.stderr.decode().splitlines()] == [
        "sa.key: HTTP 403 Forbidden",
        "ca.key: HTTP 403 Forbidden",
    ]


def test_a_store_without_a_policy_is_a_transient_failure(tmp_path: Path, url: str) -> None:
    done = _ask(tmp_path, url, "sa.key")
    assert (done.returncode, done.stdout) == (69, b"")
    assert b"/v1/secrets/sa.key: HTTP 503" in done.stderr


def test_a_store_that_is_down_differs_from_one_that_refuses(tmp_path: Path) -> None:
    done = _ask(tmp_path, "http://127.0.0.1:1", "sa.key")
    assert done.returncode == 69
    assert b"refused" in done.stderr


def test_a_truncated_answer_is_not_a_secret(tmp_path: Path, cut_short: str) -> None:
    done = _ask(tmp_path, cut_short, "sa.key")
    assert (done.returncode, done.stdout) == (69, b"")
    assert b"/v1/secrets/sa.key: IncompleteRead(4 bytes read, 96 more expected)" in done.stderr


@pytest.fixture
def boots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """boots(url): a host with this store, whose user data refers to PAYLOAD; returns the folder in which it keeps files."""

    def set_up(url: str) -> Path:
        reference = tmp_path / "host" / "payload.sha256"
        reference.parent.mkdir(exist_ok=True)
        reference.write_text(f"{PAYLOAD.sha256}  {PAYLOAD.name}\n")
        monkeypatch.setattr(boot, "PAYLOAD", reference)
        monkeypatch.setattr(boot, "STORE", str(_program(tmp_path, url)))
        return reference.parent

    return set_up


def _kept(host: Path) -> list[str]:
    return [path.name for path in host.iterdir() if path.name != "payload.sha256"]


def test_a_host_boots_with_its_payload(policy: Path, url: str, boots: Callable[[str], Path]) -> None:
    host = boots(url)
    _hold(policy, {PAYLOAD.name: PAYLOAD.packed()})
    assert boot.load_payload() == json.loads(PAYLOAD.text)
    assert _kept(host) == [PAYLOAD.name]


def test_an_older_host_boots_after_the_store_got_the_payload_of_newer_ones(
    policy: Path, url: str, boots: Callable[[str], Path]
) -> None:
    boots(url)
    _hold(policy, {PAYLOAD.name: PAYLOAD.packed()})
    boot.load_payload()
    _hold(policy, {OTHER.name: OTHER.packed()})
    assert boot.load_payload() == json.loads(PAYLOAD.text)


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ({OTHER.name: OTHER.packed()}, f"{PAYLOAD.name}: HTTP 403 Forbidden"),
        ({PAYLOAD.name: OTHER.packed()}, f"sha256 is {OTHER.sha256}, expected {PAYLOAD.sha256}"),
        ({PAYLOAD.name: PAYLOAD.packed()[:-8]}, f"{PAYLOAD.name} is truncated or damaged"),
        ({PAYLOAD.name: ""}, f"no value for {PAYLOAD.name}"),
    ],
    ids=["of another host", "another", "cut short in the store", "empty"],
)
def test_a_wrong_payload_is_reported_and_not_kept(
    policy: Path, url: str, boots: Callable[[str], Path], held: dict[str, str], message: str
) -> None:
    host = boots(url)
    _hold(policy, held)
    with pytest.raises(boot.Failure, match=message):
        boot.load_payload()
    assert _kept(host) == []


def test_a_host_without_its_payload_reports_a_silent_store(url: str, boots: Callable[[str], Path]) -> None:
    for silent, reason in (("http://127.0.0.1:1", "refused"), (url, "HTTP 503 Service Unavailable")):
        host = boots(silent)
        with pytest.raises(boot.StoreSilent, match=f"{PAYLOAD.name}: .*{reason}"):
            boot.load_payload()
        assert _kept(host) == []


def test_a_payload_truncated_in_transit_is_not_kept(cut_short: str, boots: Callable[[str], Path]) -> None:
    host = boots(cut_short)
    with pytest.raises(boot.StoreSilent, match="IncompleteRead"):
        boot.load_payload()
    assert _kept(host) == []


def test_all_permitted_hosts_read_a_value_that_a_host_writes(tmp_path: Path, policy: Path, url: str) -> None:
    _hold(policy, {"join-token": "", "own": "1"}, "join-token")
    done = _put(tmp_path, url, b"t.\xc3\xa4")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert json.loads(_ask(tmp_path, url, "join-token", "own").stdout) == {"join-token": "t.ä", "own": "1"}


def test_a_writer_of_a_value_needs_a_separate_right_to_read_it(tmp_path: Path, policy: Path, url: str) -> None:
    _hold(policy, {"own": "1"}, "join-token")
    assert _put(tmp_path, url, b"t").returncode == 0
    assert b"/v1/secrets/join-token: HTTP 403 Forbidden" in _ask(tmp_path, url, "join-token").stderr


def test_a_reader_of_a_value_cannot_write_it(tmp_path: Path, policy: Path, url: str) -> None:
    _hold(policy, {"join-token": ""})
    done = _put(tmp_path, url, b"t")
    assert done.returncode == 1
    assert b"/v1/secrets/join-token: HTTP 403 Forbidden" in done.stderr


def test_a_value_outlives_the_server_and_a_new_policy(tmp_path: Path, policy: Path, url: str) -> None:
    """An API server writes a token once and marks it as written; it does not write it again for 20 minutes."""
    _hold(policy, {"join-token": ""}, "join-token")
    _put(tmp_path, url, b"t")
    _hold(policy, {"join-token": "", "own": "2"}, "join-token")
    server = store_server.make("127.0.0.1", 0, policy)
    assert server.answer("127.0.0.1", "join-token") == (200, "t")
    server.server_close()
