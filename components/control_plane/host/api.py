"""A Kubernetes API client for a kubeconfig with embedded credentials. Standard library only."""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import ssl
import tempfile
import time
import urllib.parse
from pathlib import Path
from typing import Any, Callable, Iterator

WATCH_S = 300


class ApiError(Exception):
    """The API refused a request. status: the HTTP code."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"HTTP {status}: {message}")
        self.status = status


class Api:
    """Talks to the server of a kubeconfig that kubeadm wrote: one cluster, one user, embedded credentials."""

    def __init__(self, kubeconfig: Path) -> None:
        text = kubeconfig.read_text()
        server = urllib.parse.urlsplit(_field(text, "server"))
        self.host, self.port = server.hostname or "", server.port or 443
        self._tls = ssl.create_default_context(cadata=decoded(text, "certificate-authority-data"))
        # ssl loads a client certificate only from a file: in memory (/dev/shm or a private /tmp), and deleted at once.
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as pem:
            os.fchmod(pem.fileno(), 0o600)
            pem.write(decoded(text, "client-certificate-data") + decoded(text, "client-key-data"))
            pem.flush()
            self._tls.load_cert_chain(pem.name)

    def call(
        self, method: str, path: str, body: Any | None = None, kind: str = "application/json", timeout_s: float = 30
    ) -> Any:
        """Return the answer's JSON. ApiError if the API refuses, OSError if it can't be reached."""
        connection = http.client.HTTPSConnection(self.host, self.port, timeout=timeout_s, context=self._tls)
        try:
            answer = _send(connection, method, path, body, kind)
            return json.loads(answer.read() or b"null")
        finally:
            connection.close()

    def text(self, path: str) -> str:
        """Return the answer's text, such as a health check's."""
        connection = http.client.HTTPSConnection(self.host, self.port, timeout=10, context=self._tls)
        try:
            return _send(connection, "GET", path, None, "").read().decode()
        finally:
            connection.close()

    def watch(self, path: str, version: str, wait_s: int = WATCH_S) -> Iterator[dict[str, Any]]:
        """Yield objects added or changed since a version of the list. The server ends the watch after `wait_s`."""
        query = f"{'&' if '?' in path else '?'}resourceVersion={version}&watch=true&timeoutSeconds={wait_s}"
        connection = http.client.HTTPSConnection(self.host, self.port, timeout=wait_s + 30, context=self._tls)
        try:
            for line in _send(connection, "GET", path + query, None, ""):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                if event["type"] in ("ADDED", "MODIFIED"):
                    yield event["object"]
        finally:
            connection.close()

    def apply(self, path: str, thing: dict[str, Any], manager: str, force: bool) -> None:
        """Server-side apply: make the object at `path` contain at least `thing`.

        ApiError with 409 if another manager changed one of its fields and `force` is False.
        """
        query = urllib.parse.urlencode({"fieldManager": manager, "force": str(force).lower()})
        self.call("PATCH", f"{path}?{query}", thing, "application/apply-patch+yaml")

    def wait_until_ready(self, path: str, timeout_s: float) -> None:
        """Wait until the health check `path` returns 200. TimeoutError has the last failure."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                self.text(path)
                return
            except (ApiError, OSError, http.client.HTTPException) as error:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"https://{self.host}:{self.port}{path}: {error}") from None
            time.sleep(0.25)


def forever(step: Callable[[], None]) -> None:
    """Repeat `step`. Print a failure, and retry after two seconds."""
    while True:
        try:
            step()
        except (ApiError, OSError, http.client.HTTPException, ValueError) as error:
            print(f"trying again: {error}", flush=True)
            time.sleep(2.0)


def _send(
    connection: http.client.HTTPSConnection, method: str, path: str, body: Any | None, kind: str
) -> http.client.HTTPResponse:
    data = None if body is None else json.dumps(body).encode()
    connection.request(method, path, data, {"Content-Type": kind} if data else {})
    answer = connection.getresponse()
    if answer.status >= 400:
        text = answer.read().decode(errors="replace")
        try:
            text = json.loads(text)["message"]
        except (ValueError, KeyError, TypeError):
            pass
        raise ApiError(answer.status, f"{method} {path}: {text}")
    return answer


def _field(text: str, name: str) -> str:
    match = re.search(rf"^\s*{name}: *\"?([^\s\"]+)", text, re.MULTILINE)
    if not match:
        raise ValueError(f"the kubeconfig has no {name}")
    return match[1]


def decoded(text: str, name: str) -> str:
    """Return a base64 field of a kubeconfig, decoded. ValueError if it is missing."""
    return base64.b64decode(_field(text, name)).decode()
