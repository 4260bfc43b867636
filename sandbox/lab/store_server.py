"""The server of hosts' secrets and payloads: ``python -m sandbox.lab.store_server ADDRESS PORT POLICY_FILE HOSTS``.

``GET /v1/secrets/NAME`` answers 200 with the value, 403 when the name is not among those that the asker reads and
503 when there is no policy yet, so that a host that starts early asks again. ``PUT`` of a name that the asker writes
makes the body its value for everybody who reads it; it is kept beside the policy. ``GET /v1/machines/NAME`` tells an asker who
may know it when a host was made, 404 of one that is not there: what a cloud's API is elsewhere. HOSTS is `sandbox.lab.hosts`' folder.
Standard library only.
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
    """What hosts wrote, beside what they may: name -> value."""
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
        """Status and body for one request; `value` is what is to be kept."""
        try:
            rights = json.loads(self._policy.read_text()).get(asker, {})
        except FileNotFoundError:
            return 503, "the store has no policy yet; ask again\n"
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
        """Status and body: when a host was made, to those who may know."""
        try:
            may = json.loads(self._policy.read_text()).get(asker, {}).get("machines", ())
        except FileNotFoundError:
            return 503, "the store has no policy yet; ask again\n"
        if not may:
            return 403, f"{asker} is told of no machine\n"
        record = self._hosts / name / "host.json"
        if name not in may or not record.exists():
            return 404, f"there is no machine {name}\n"
        return 200, json.dumps({"made": record.stat().st_mtime})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10
    # Else a body waits for the acknowledgement of its headers, which a client on a kept connection delays by 40 ms.
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
    """A server that listens already; port 0 chooses a free one."""
    return _Server((address, port), policy, hosts)


if __name__ == "__main__":
    make(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4])).serve_forever()
