"""A loop's HTTP endpoints: metrics in Prometheus' text format and a health check."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Metric, disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

log = logging.getLogger(__name__)

# Otherwise each counter has a second series, with the time of its first count.
disable_created_metrics()

Sample = tuple[str, Mapping[str, str], float]
"""Name without prefix, labels, value."""


class Answer(NamedTuple):
    """The response to a GET."""

    text: str
    status: HTTPStatus = HTTPStatus.OK
    kind: str = "text/plain"


Pages = Mapping[str, Callable[[], Answer]]
"""Path -> function that returns the response. Called from any thread."""


class Metrics(Collector):
    """A loop's counters, and gauges that each pass replaces all at once. prefix: of all names. gauges: name -> meaning."""

    def __init__(self, prefix: str, gauges: Mapping[str, str]) -> None:
        self._prefix, self._meanings = prefix, gauges
        self._gauges: tuple[Metric, ...] = ()
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"{self._prefix}{name}", meaning, labels, registry=self.registry)

    def replace(self, samples: Iterable[Sample]) -> None:
        """Replace the samples of all gauges. A gauge without any is left out."""
        gauges = {name: Metric(f"{self._prefix}{name}", says, "gauge") for name, says in self._meanings.items()}
        for name, labels, value in samples:
            gauges[name].add_sample(f"{self._prefix}{name}", dict(labels), value)
        self._gauges = tuple(gauge for gauge in gauges.values() if gauge.samples)

    def collect(self) -> Iterable[Metric]:
        return self._gauges

    def page(self) -> Answer:
        """Return the page of metrics in the text format that every Prometheus reads."""
        return Answer(generate_latest(self.registry).decode(), kind=CONTENT_TYPE_PLAIN_0_0_4)


def wellness(good: bool, text: str) -> Answer:
    """Return 200 or 503 with the reason."""
    return Answer(f"{text}\n", HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE)


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log the error; the base class prints it."""
        log.warning("a request from %s failed", client_address[0], exc_info=sys.exception())


@contextmanager
def serving(pages: Pages, address: str, port: int) -> Iterator[int]:
    """Serve the pages for the length of a block and yield the port. Raises OSError if the address can't be bound."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(self.path)
            paths = " and ".join(pages)
            answer = page() if page else Answer(f"not found; this server has {paths}\n", HTTPStatus.NOT_FOUND)
            body = answer.text.encode()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = _Server((address, port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.2,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
