"""A real kube-apiserver over a real etcd, both from the cache of programs, on this machine's loopback."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.ports import free_ports
from tests.programs import program as cached
from tests.waiting import patience, until

TOKEN = "a-token-of-this-test"
_FRESH_S = 20


def trusting() -> ssl.SSLContext:
    """Return a TLS context for a server with a self-signed certificate, which it just made for this test."""
    # Without the machine's authorities: reading them takes longer than twenty requests.
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    return tls


class Line:
    """Requests to such a server on a port of 127.0.0.1. Each thread has its own connection, which stays open."""

    def __init__(self, port: int) -> None:
        self._port, self._tls, self._own = port, trusting(), threading.local()

    def ask(
        self, method: str, path: str, data: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Return (HTTP status, answer). Raises OSError or HTTPException without an answer."""
        connection = self._connection()
        try:
            connection.request(method, path, data, dict(headers or {}))
            answer = connection.getresponse()
            return answer.status, answer.read()
        except BaseException:
            connection.close()
            raise

    def _connection(self) -> http.client.HTTPSConnection:
        """Return this thread's connection if it was used recently, otherwise a new one: servers close idle connections."""
        connection: http.client.HTTPSConnection | None = getattr(self._own, "connection", None)
        if connection is None or time.monotonic() > self._own.fresh_until:
            if connection:
                connection.close()
            connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=patience(30), context=self._tls)
        self._own.connection, self._own.fresh_until = connection, time.monotonic() + _FRESH_S
        return connection


class RealApi:
    """The methods of `components.control_plane.host.api.Api`, for an API with one token that may do everything."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.line = Line(port)

    def ready(self) -> bool:
        return self.line.ask("GET", "/readyz", headers={"Authorization": f"Bearer {TOKEN}"})[0] == http.HTTPStatus.OK

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        kind: str = "application/json",
        as_user: str = "",
        as_group: str = "",
    ) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        who = {"Impersonate-User": as_user} if as_user else {}
        who |= {"Impersonate-Group": as_group} if as_group else {}
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": kind, **who}
        status, answer = self.line.ask(method, path, data, headers)
        return status, json.loads(answer or b"null")

    def apply(self, item: dict[str, Any], *, dry_run: bool = False) -> tuple[int, str]:
        """Apply an object like cluster-bootstrap, with strict validation. Return (HTTP status, message)."""
        query = {"fieldManager": "menagerie", "force": str(item["force"]).lower(), "fieldValidation": "Strict"}
        query |= {"dryRun": "All"} if dry_run else {}
        path = f"{item['path']}?{urllib.parse.urlencode(query)}"
        status, answer = self.call("PATCH", path, item["object"], "application/apply-patch+yaml")
        return status, answer.get("message", "")


@contextmanager
def running(
    program: Callable[[str], Path], folder: Path, *flags: str, etcd_flags: Sequence[str] = ()
) -> Iterator[RealApi]:
    """Run the API until the block ends. program: name -> path. flags: further ones of the API server.

    etcd_flags: of a running etcd; without them it gets its own.
    """
    with ExitStack() as ends:
        etcd = () if etcd_flags else ("--etcd-servers", ends.enter_context(storing(program, folder)))
        yield ends.enter_context(serving(program, folder, *(etcd_flags or etcd), *flags))


@contextmanager
def plain(folder: Path) -> Iterator[RealApi]:
    """Run the API without further flags. Tests of the group `plain_api` share one."""
    with running(cached, folder) as api:
        yield api


@contextmanager
def storing(program: Callable[[str], Path], folder: Path) -> Iterator[str]:
    """Run an etcd; yield its URL when it answers."""
    client, peer = free_ports(2)
    # Reserved ports are released here, so that the programs can use them.
    command = [
        program("etcd"), "--data-dir", folder / "etcd", "--listen-client-urls", f"http://127.0.0.1:{client}",
        "--advertise-client-urls", f"http://127.0.0.1:{client}", "--listen-peer-urls", f"http://127.0.0.1:{peer}",
        "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}", "--unsafe-no-fsync",
        "--initial-cluster", f"default=http://127.0.0.1:{peer}",
    ]  # fmt: skip
    url = f"http://127.0.0.1:{client}"
    with started("etcd", command, folder):
        _wait(lambda: _answers(f"{url}/health"), folder / "etcd.log")
        yield url


@contextmanager
def serving(program: Callable[[str], Path], folder: Path, *flags: str) -> Iterator[RealApi]:
    """Run an API server until the block ends. flags: those that name its etcd, and further ones."""
    (port,) = free_ports(1)
    (folder / "tokens.csv").write_text(f"{TOKEN},tester,1,system:masters\n")
    key = folder / "sa.key"
    subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key], check=True)
    command = [
        program("kube-apiserver"), "--bind-address", "127.0.0.1",
        "--secure-port", str(port), "--cert-dir", folder / "certificates", "--token-auth-file", folder / "tokens.csv",
        "--service-cluster-ip-range", "10.79.4.0/24", "--service-account-issuer", "https://test.invalid",
        "--service-account-key-file", key, "--service-account-signing-key-file", key,
        "--authorization-mode", "RBAC", "--allow-privileged", "--disable-admission-plugins", "ServiceAccount", *flags,
    ]  # fmt: skip
    with started("kube-apiserver", command, folder):
        api = RealApi(port)
        # RBAC's roles appear a moment after the rest; with another server's etcd, the namespace exists from the start.
        system = "/api/v1/namespaces/kube-system"
        _wait(lambda: api.ready() and api.call("GET", system)[0] == http.HTTPStatus.OK, folder / "kube-apiserver.log")
        yield api


def spending_memory() -> dict[str, str]:
    """Return the environment for a Go program that collects garbage less often. It uses about a third more memory."""
    return {"GOGC": "400", **os.environ}


@contextmanager
def started(name: str, command: Sequence[object], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program until the block ends; its output goes to a file with its name in the folder."""
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log, env=spending_memory())
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def _answers(url: str) -> bool:
    with urllib.request.urlopen(url, timeout=patience(5)) as answer:
        return bool(answer.status == http.HTTPStatus.OK)


def _wait(ready: Callable[[], bool], log: Path) -> None:
    """Wait until `ready` returns true; an unreachable server is not ready yet. Fails with the end of the log."""

    def is_ready() -> bool:
        with suppress(OSError):
            return ready()
        return False

    until(is_ready, lambda: log.read_text()[-2000:], every_s=0.2)
