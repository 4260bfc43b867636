"""Made-up targets of a scrape, and a receiver of alerts: `python -m tests.bench.engines.targets PORT FOLDER TARGETS SERIES`.

GET /t/<number> has SERIES series whose values change from scrape to scrape. Files of the folder hold numbers of targets: those of
`down` fail, those of `flood` have a million series (those of target 1), and those of `ahead` write timestamps 300 s ahead of the clock. A POST of
alerts in Alertmanager's form to /<engine>/api/v2/alerts adds a line to `alerts-<engine>`: seconds since the epoch, and names.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FLOOD = 1_000_000
VARIANTS = 10
AHEAD_S = 300


def lines(number: int, series: int, variant: int) -> Iterator[str]:
    """Yield the samples of a target: counters, each with a label that only it has."""
    for index in range(series):
        labels = f'host="t{number}",device="device-{index}",direction="receive"'
        yield f"bench_bytes_total{{{labels}}} {index * 1000 + variant * 7919}"


def body(number: int, series: int, variant: int, at_ms: int | None = None) -> bytes:
    """Return the page of a target. at_ms: a timestamp of all samples."""
    end = "\n" if at_ms is None else f" {at_ms}\n"
    return "".join(line + end for line in lines(number, series, variant)).encode()


class Targets:
    def __init__(self, folder: Path, count: int, series: int, *, flood: bool = False) -> None:
        self.folder, self.series = folder, series
        self.bodies = [[body(number, series, variant) for variant in range(VARIANTS)] for number in range(count)]
        # Made before the first scrape: it takes seconds, and other targets would not answer meanwhile.
        self.flood = body(1, FLOOD, 0) if flood else b""

    def has(self, name: str, number: int) -> bool:
        file = self.folder / name
        return file.exists() and str(number) in file.read_text().split()

    def text(self, number: int) -> bytes | None:
        """Return what the target answers now; None while it fails."""
        now = time.time()
        if self.has("down", number):
            return None
        if self.has("flood", number):
            return self.flood
        if self.has("ahead", number):
            return body(number, self.series, int(now) % VARIANTS, int((now + AHEAD_S) * 1000))
        return self.bodies[number][int(now) % VARIANTS]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    targets: Targets

    def do_GET(self) -> None:
        text = self.targets.text(int(self.path.rpartition("/")[2]))
        self._answer(503 if text is None else 200, text or b"")

    def do_POST(self) -> None:
        alerts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        names = {alert["labels"]["alertname"] for alert in alerts}
        engine = self.path.split("/")[1]
        with (self.targets.folder / f"alerts-{engine}").open("a") as file:
            file.write(f"{time.time()} {' '.join(sorted(names))}\n")
        self._answer(200, b"")

    def _answer(self, code: int, text: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        try:
            self.wfile.write(text)
        except OSError:  # An engine stops reading a page that is too large.
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, *_: object) -> None:
        """An engine that is killed breaks its connections."""


def main(port: str, folder: str, count: str, series: str) -> None:
    _Handler.targets = Targets(Path(folder), int(count), int(series), flood=True)
    _Server(("127.0.0.1", int(port)), _Handler).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
