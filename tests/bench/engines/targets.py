"""Made-up targets of a scrape, and a receiver of alerts: `python -m tests.bench.engines.targets PORT TARGETS SERIES`.

GET /t/<number> has SERIES series whose values change from scrape to scrape. A target fails while the file `down` of the folder
has its number, and has a million series while the file `flood` has it. POST of alerts in Alertmanager's form
(/api/v2/alerts) adds a line to `alerts`: seconds since the epoch, and the names of alerts.
"""

from __future__ import annotations

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FLOOD = 1_000_000
VARIANTS = 10


def body(number: int, series: int, variant: int) -> bytes:
    """Return the text of a target: counters, each with a label that only it has."""
    lines = (
        f'bench_bytes_total{{host="t{number}",device="device-{index}",direction="receive"}} {index * 1000 + variant * 7919}'
        for index in range(series)
    )
    return ("\n".join(lines) + "\n").encode()


class Targets:
    def __init__(self, folder: Path, count: int, series: int) -> None:
        self.folder = folder
        self.bodies = [[body(number, series, variant) for variant in range(VARIANTS)] for number in range(count)]
        self.flood = b""

    def is_in(self, name: str, number: int) -> bool:
        file = self.folder / name
        return file.exists() and str(number) in file.read_text().split()

    def text(self, number: int) -> bytes | None:
        """Return what the target answers now; None while it fails."""
        if self.is_in("down", number):
            return None
        if self.is_in("flood", number):
            self.flood = self.flood or body(number, FLOOD, 0)
            return self.flood
        return self.bodies[number][int(time.time()) % VARIANTS]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    targets: Targets

    def do_GET(self) -> None:
        text = self.targets.text(int(self.path.rpartition("/")[2]))
        self._answer(503 if text is None else 200, text or b"")

    def do_POST(self) -> None:
        alerts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        names = {alert["labels"]["alertname"] for alert in alerts}
        with (self.targets.folder / "alerts").open("a") as file:
            file.write(f"{time.time()} {' '.join(sorted(names))}\n")
        self._answer(200, b"")

    def _answer(self, code: int, text: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass


def main(port: str, folder: str, count: str, series: str) -> None:
    _Handler.targets = Targets(Path(folder), int(count), int(series))
    ThreadingHTTPServer(("127.0.0.1", int(port)), _Handler).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
