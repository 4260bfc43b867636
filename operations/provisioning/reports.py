"""Receives the reports of machines during installation: their SSH host key, or why they refuse their disk.

Machines have no certificate yet, so nothing authenticates them. But each may report only from its own address in its own
rack while it is being installed, and only its first key counts.
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
from operations.provisioning.machines import SiteMachine

_LONGEST_KEY = 1024
_PATIENCE_S = 20
REFUSALS = {
    "no-disk": "no disk matches provisioning.disk",
    "several-disks": "several disks match provisioning.disk; it must match exactly one",
    "holds-something": "its disk is not empty and was not changed; to overwrite it, run machines render --wipe and install again",
}


@dataclass
class Reports:
    """Received reports. The server's threads write, others read. keep: called with each key before the machine gets
    a response."""

    keep: Callable[[SiteMachine, str], None] = lambda *_: None
    keys: dict[str, str] = field(default_factory=dict)
    refusals: dict[str, str] = field(default_factory=dict)
    other_keys: set[str] = field(default_factory=set)
    expected: dict[str, SiteMachine] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def expect(self, machine: SiteMachine, key: str = "") -> None:
        """Accept reports of this machine from now on. key: its earlier key; an earlier report without it is dropped."""
        with self.lock:
            self.keys.pop(machine.name, None)
            if key:
                self.keys[machine.name] = key
            self.refusals.pop(machine.name, None)
            self.other_keys.discard(machine.name)
            self.expected[machine.hyphened] = machine

    def hear_key(self, hyphened: str, sender: str, line: str) -> int:
        """Take a reported key. Return the HTTP status for the response."""
        key = parse_key(line)
        with self.lock:
            machine = self._sender_of(hyphened, sender)
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
        """Take a reported refusal of a disk. Return the HTTP status for the response."""
        with self.lock:
            machine = self._sender_of(hyphened, sender)
            if machine is None:
                return 403
            if reason not in REFUSALS:
                return 400
            self.refusals[machine.name] = REFUSALS[reason]
            return 204

    def _sender_of(self, hyphened: str, sender: str) -> SiteMachine | None:
        machine = self.expected.get(hyphened)
        return machine if machine and str(machine.address) == sender else None


@contextmanager
def listening(url: str, reports: Reports) -> Iterator[None]:
    """Serve `reports` at `url` for the length of a block."""
    parts = urlsplit(url)
    assert parts.hostname is not None and parts.port is not None  # ensured by the spec's type
    try:
        server = ThreadingHTTPServer((parts.hostname, parts.port), _handler(reports))
    except OSError as error:
        raise FailedError(
            f"can't listen for machines at {url} (provisioning.reports): {error.strerror}; it must be an address of this "
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
            """Take refusals by GET: the installer has only busybox's wget, which can't PUT."""
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


def report_of(reports: Reports, name: str) -> Mapping[str, str]:
    """Return one machine's report: key, refusal, or both if there was a second, different key."""
    with reports.lock:
        report = {"key": reports.keys.get(name, ""), "refusal": reports.refusals.get(name, "")}
        if name in reports.other_keys:
            report["refusal"] = (
                "two different SSH host keys were reported for it, so one of them isn't its own: install it again"
            )
    return {what: text for what, text in report.items() if text}
