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
    """TLS to a server that made its certificate itself, a second ago, for this test."""
    # Without the authorities of the machine: to read them costs more than twenty requests.
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    return tls


class Line:
    """Requests to such a server at a port of 127.0.0.1. Each thread has a connection of its own, which stays open."""

    def __init__(self, port: int) -> None:
        self._port, self._tls, self._own = port, trusting(), threading.local()

    def ask(
        self, method: str, path: str, data: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        """(HTTP status, what it answers). OSError or HTTPException when it does not."""
        connection = self._connection()
        try:
            connection.request(method, path, data, dict(headers or {}))
            answer = connection.getresponse()
            return answer.status, answer.read()
        except BaseException:
            connection.close()
            raise

    def _connection(self) -> http.client.HTTPSConnection:
        """One on which something was asked a moment ago: servers end those that are idle for long. Else a new one."""
        found: http.client.HTTPSConnection | None = getattr(self._own, "connection", None)
        if found is None or time.monotonic() > self._own.fresh_until:
            if found:
                found.close()
            found = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=patience(30), context=self._tls)
        self._own.connection, self._own.fresh_until = found, time.monotonic() + _FRESH_S
        return found


class RealApi:
    """What `components.control_plane.host.api.Api` can do, to an API that knows one token, which may do everything."""

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
        """As cluster-bootstrap does, and stricter: (HTTP status, what the server says)."""
        query = {"fieldManager": "menagerie", "force": str(item["force"]).lower(), "fieldValidation": "Strict"}
        query |= {"dryRun": "All"} if dry_run else {}
        path = f"{item['path']}?{urllib.parse.urlencode(query)}"
        status, answer = self.call("PATCH", path, item["object"], "application/apply-patch+yaml")
        return status, answer.get("message", "")


@contextmanager
def running(
    program: Callable[[str], Path], folder: Path, *flags: str, etcd_flags: Sequence[str] = ()
) -> Iterator[RealApi]:
    """The API, ready. program: name -> path. flags: further ones of the API server.

    etcd_flags: of an etcd that runs already; else it gets one of its own.
    """
    with ExitStack() as ends:
        etcd = () if etcd_flags else ("--etcd-servers", ends.enter_context(storing(program, folder)))
        yield ends.enter_context(serving(program, folder, *(etcd_flags or etcd), *flags))


@contextmanager
def plain(folder: Path) -> Iterator[RealApi]:
    """The API as it is without further flags. Tests of the group `plain_api` share one."""
    with running(cached, folder) as api:
        yield api


@contextmanager
def storing(program: Callable[[str], Path], folder: Path) -> Iterator[str]:
    """An etcd that answers; its URL."""
    client, peer = free_ports(2)
    # Reserved ports are given up here, so that the programs get them.
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
    """An API server, ready. flags: those that name its etcd, and further ones."""
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
        # RBAC's own roles come a moment after the rest, and over another server's etcd the namespace is there before all.
        system = "/api/v1/namespaces/kube-system"
        _wait(lambda: api.ready() and api.call("GET", system)[0] == http.HTTPStatus.OK, folder / "kube-apiserver.log")
        yield api


def spending_memory() -> dict[str, str]:
    """The environment of a program of Go that is to collect its garbage less often: it holds about a third more memory."""
    return {"GOGC": "400", **os.environ}


@contextmanager
def started(name: str, command: Sequence[object], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program for the length of a block; what it says goes to a file of its name in the folder."""
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


def _wait(well: Callable[[], bool], log: Path) -> None:
    """Until it is; what can't be reached is not well yet. It fails with the end of the log."""

    def seen() -> bool:
        with suppress(OSError):
            return well()
        return False

    until(seen, lambda: log.read_text()[-2000:], every_s=0.2)
