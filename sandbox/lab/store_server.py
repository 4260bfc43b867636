"""The server of hosts' secrets and payloads: ``python -m sandbox.lab.store_server ADDRESS PORT POLICY_FILE HOSTS``.

``GET /v1/secrets/NAME`` answers 200 with the value, 403 when the host may not read that name, and 503 when there is no
policy yet, so that a host that starts early retries. ``PUT`` of a name that the host may write sets the value for
every host that reads it; written values are kept next to the policy. ``GET /v1/machines/NAME`` returns when a host was
created to hosts that may know, and 404 when there is no such host: it stands in for a cloud's API. HOSTS is the
folder of `sandbox.lab.hosts`. Standard library only.
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

_PREFIX = "/v1/secrets/"
_MACHINES = "/v1/machines/"


def written_file(policy: Path) -> Path:
    """Return the file with the values that hosts wrote (name -> value), next to the policy."""
    return policy.with_name("written.json")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], policy: Path, hosts: Path) -> None:
        self._hosts = hosts
        self._policy = policy
        self._written = written_file(policy)
        self._writing = threading.Lock()
        super().__init__(address, _Handler)

    def answer(self, asker: str, name: str, value: str | None = None) -> tuple[int, str]:
        """Return status and body for one request. value: to be stored, None to read."""
        try:
            rights = json.loads(self._policy.read_text()).get(asker, {})
        except FileNotFoundError:
            return 503, "the store has no policy yet; try again\n"
        right = "read" if value is None else "write"
        if name not in rights.get(right, ()):
            return 403, f"{asker} may not {right} {name}\n"
        with self._writing:
            written = json.loads(self._written.read_text()) if self._written.exists() else {}
            if value is None:
                return 200, written.get(name, str(rights["read"][name]))
            fresh = self._written.with_suffix(".new")
            fresh.write_text(json.dumps(written | {name: value}))
            fresh.replace(self._written)
        return 200, ""

    def machine(self, asker: str, name: str) -> tuple[int, str]:
        """Return status and body: when a host was created, for hosts that may know."""
        try:
            may = json.loads(self._policy.read_text()).get(asker, {}).get("machines", ())
        except FileNotFoundError:
            return 503, "the store has no policy yet; try again\n"
        if not may:
            return 403, f"{asker} may not read machines\n"
        record = self._hosts / name / "host.json"
        if name not in may or not record.exists():
            return 404, f"there is no machine {name}\n"
        return 200, json.dumps({"made": record.stat().st_mtime})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10
    # Otherwise a body waits until its headers are acknowledged, which a client on a keep-alive connection delays by 40 ms.
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        self._answer(None)

    def do_PUT(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())

    def _answer(self, value: str | None) -> None:
        asker = str(self.client_address[0])
        if self.path.startswith(_MACHINES) and value is None:
            self._send(*self.server.machine(asker, unquote(self.path.removeprefix(_MACHINES))))
            return
        if not self.path.startswith(_PREFIX):
            self._send(404, f"secrets are at {_PREFIX}NAME\n")
            return
        self._send(*self.server.answer(asker, unquote(self.path.removeprefix(_PREFIX)), value))

    def _send(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def make(address: str, port: int, policy: Path, hosts: Path = Path("/nonexistent")) -> _Server:
    """Return a server that already listens; port 0 picks a free port."""
    return _Server((address, port), policy, hosts)


if __name__ == "__main__":
    make(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4])).serve_forever()
