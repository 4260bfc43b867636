"""The program by which a host of the lab reads its secrets, against the store that the lab runs."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import store_server
from stacks.lab.store import LabStore


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return tmp_path / "policy.json"


@pytest.fixture
def url(policy: Path) -> Iterator[str]:
    server = store_server.make("127.0.0.1", 0, policy)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def _ask(tmp_path: Path, url: str, *names: str) -> subprocess.CompletedProcess[bytes]:
    program = tmp_path / "menagerie-secret"
    program.write_text(LabStore(url).script())
    return subprocess.run([sys.executable, program, *names], check=False, capture_output=True)


def test_a_host_reads_its_own_secret_to_the_byte(tmp_path: Path, policy: Path, url: str) -> None:
    policy.write_text(json.dumps({"127.0.0.1": {"etcd-main-ca.crt": "\0key ä\n"}}))
    done = _ask(tmp_path, url, "etcd-main-ca.crt")
    assert (done.returncode, done.stdout) == (0, "\0key ä\n".encode())


def test_a_secret_of_another_host_is_refused_and_the_refusal_is_told(tmp_path: Path, policy: Path, url: str) -> None:
    policy.write_text(json.dumps({"10.79.2.12": {"sa.key": "KEY"}}))
    done = _ask(tmp_path, url, "sa.key")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"/v1/secrets/sa.key: HTTP 403" in done.stderr


def test_a_store_that_has_no_policy_yet_is_asked_again(tmp_path: Path, url: str) -> None:
    done = _ask(tmp_path, url, "sa.key")
    assert (done.returncode, done.stdout) == (69, b"")
    assert b"/v1/secrets/sa.key: HTTP 503" in done.stderr


def test_a_store_that_is_down_is_told_apart_from_one_that_refuses(tmp_path: Path) -> None:
    done = _ask(tmp_path, "http://127.0.0.1:1", "sa.key")
    assert done.returncode == 69
    assert b"refused" in done.stderr
