"""What machines tell while they are installed: their SSH host key, or why they refuse their disk.

They have no certificate yet, so nothing proves who talks; but each may speak only from its own address in its own
rack, while it is being installed, and the first key that it tells is the one that counts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from cluster.errors import FailedError
from operations.provisioning.known_hosts import parse_key
from operations.provisioning.machines import Machine

_LONGEST_KEY = 1024
_PATIENCE_S = 20
REFUSALS = {
    "no-disk": "no disk fits provisioning.disk",
    "several-disks": "several disks fit provisioning.disk; it must mean one",
    "holds-something": "its disk holds something, and is left alone; to overwrite it: machines render --wipe, and install again",
}


@dataclass
class Reports:
    """What was heard. Threads of the server write, others read. keep: told of each key before the machine is answered."""

    keep: Callable[[Machine, str], None] = lambda *_: None
    keys: dict[str, str] = field(default_factory=dict)
    refusals: dict[str, str] = field(default_factory=dict)
    other_keys: set[str] = field(default_factory=set)
    expected: dict[str, Machine] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def expect(self, machine: Machine, key: str = "") -> None:
        """Hear this machine from now on. key: what it had told already; else it is forgotten."""
        with self.lock:
            self.keys.pop(machine.name, None)
            if key:
                self.keys[machine.name] = key
            self.refusals.pop(machine.name, None)
            self.other_keys.discard(machine.name)
            self.expected[machine.hyphened] = machine

    def hear_key(self, hyphened: str, sender: str, line: str) -> int:
        """Status of HTTP for it."""
        key = parse_key(line)
        with self.lock:
            machine = self._known(hyphened, sender)
            if machine is None:
                return 403
            if key is None:
                return 400
            if machine.name not in self.keys:
                self.keep(machine, key)
                self.keys[machine.name] = key
            if self.keys[machine.name] != key:
                self.other_keys.add(machine.name)
                return 409
            return 204

    def hear_refusal(self, hyphened: str, sender: str, reason: str) -> int:
        """The same of a disk that isn't taken."""
        with self.lock:
            machine = self._known(hyphened, sender)
            if machine is None:
                return 403
            if reason not in REFUSALS:
                return 400
            self.refusals[machine.name] = REFUSALS[reason]
            return 204

    def _known(self, hyphened: str, sender: str) -> Machine | None:
        machine = self.expected.get(hyphened)
        return machine if machine and str(machine.address) == sender else None


@contextmanager
def listening(url: str, reports: Reports) -> Iterator[None]:
    """Hear machines at `url` for the length of a block."""
    parts = urlsplit(url)
    assert parts.hostname is not None and parts.port is not None  # as the spec's type has it
    try:
        server = ThreadingHTTPServer((parts.hostname, parts.port), _handler(reports))
    except OSError as error:
        raise FailedError(
            f"machines can't be heard at {url} (provisioning.reports): {error.strerror}; it must be an address of this "
            "machine, and nothing else may listen there",
            code="reports",
        ) from None
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(reports: Reports) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE_S

        def do_PUT(self) -> None:
            length = self.headers.get("Content-Length", "")
            match self.path.split("/"):
                case ["", "key", hyphened] if length.isdigit() and int(length) <= _LONGEST_KEY:
                    line = self.rfile.read(int(length)).decode(errors="replace")
                    self._answer(reports.hear_key(hyphened, self.client_address[0], line))
                case _:
                    self._answer(404)

        def do_GET(self) -> None:
            """busybox's wget, which is all that the installer has, can't PUT."""
            match self.path.split("/"):
                case ["", "refused", hyphened, reason]:
                    self._answer(reports.hear_refusal(hyphened, self.client_address[0], reason))
                case _:
                    self._answer(404)

        def _answer(self, status: int) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


def said(reports: Reports, name: str) -> Mapping[str, str]:
    """What one machine told: key, refusal, or a second key that isn't the first."""
    with reports.lock:
        found = {"key": reports.keys.get(name, ""), "refusal": reports.refusals.get(name, "")}
        if name in reports.other_keys:
            found["refusal"] = (
                "two different SSH host keys were told for it; one of them isn't its own: install it again"
            )
    return {what: text for what, text in found.items() if text}
