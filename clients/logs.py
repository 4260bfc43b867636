"""Logs of our programs that run unattended: one event a line, with the time in UTC, the level and the module."""

from __future__ import annotations

import logging
import sys
import time

from cluster.problems import legible

PACKAGES = ("cli", "clients", "controllers", "operations")
"""Our packages that log. Everything else logs from WARNING on, which is Python's default."""


class _Lines(logging.Formatter):
    """Further lines of an event are indented, so that text from outside cannot look like another event."""

    converter = staticmethod(time.gmtime)

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%SZ")

    def format(self, record: logging.LogRecord) -> str:
        return "\n  ".join(map(legible, super().format(record).split("\n")))


class _ToStandardError(logging.Handler):
    """Writes each event at once, to `sys.stderr` as it is at that moment."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(f"{self.format(record)}\n")
            sys.stderr.flush()
        except Exception:  # noqa: BLE001 - logging must not stop the program
            self.handleError(record)


_HANDLER = _ToStandardError()
_HANDLER.setFormatter(_Lines())


def set_up() -> None:
    """Log to standard error from INFO on. A second call changes nothing."""
    logging.getLogger().addHandler(_HANDLER)
    for package in PACKAGES:
        logging.getLogger(package).setLevel(logging.INFO)
