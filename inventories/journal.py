"""Which host was brought to which state, in a file that a run can lose no word of.

A line a host, appended once the host is done; the newest line of a host counts. A new run begins with a whole file that
is put in the place of the old one at once.
Before a run touches a host that is to be at another state, its old state is struck out: a run that is cut leaves it
between the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cluster.journal import Lines
from inventories.desired import Digests


class Journal:
    """path: the file; it need not exist."""

    def __init__(self, path: Path) -> None:
        self._lines = Lines(path)
        self._known = dict(self._lines.read(_parse))

    def is_at(self, host: str, wanted: Digests) -> bool:
        """Whether the host was brought to that state, by one run or by several with a role each."""
        known = self._known.get(host, {})
        return all(known.get(role) == digest for role, digest in wanted.items())

    def begin(self, wanted: Mapping[str, Digests]) -> None:
        """Strike out what hosts are now moved away from, before any of them is touched."""
        for host, states in wanted.items():
            known = self._known.get(host, {})
            stays = {role: digest for role, digest in known.items() if states.get(role, digest) == digest}
            if stays != known:
                self._known[host] = stays
        self._replace()

    def done(self, wanted: Mapping[str, Digests]) -> None:
        """These hosts are at their states."""
        entries = []
        for host, states in wanted.items():
            if not self.is_at(host, states):
                self._known[host] = {**self._known.get(host, {}), **states}
                entries.append(_entry(host, self._known[host]))
        if entries:
            self._lines.append(entries)

    def forget(self, hosts: Sequence[str]) -> None:
        """Nothing is known of these hosts any more."""
        for host in hosts:
            self._known.pop(host, None)
        self._replace()

    def _replace(self) -> None:
        self._lines.replace(_entry(host, states) for host, states in sorted(self._known.items()) if states)


def _entry(host: str, states: Digests) -> dict[str, Any]:
    return {"host": host, "roles": states}


def _parse(entry: dict[str, Any]) -> tuple[str, Digests]:
    return str(entry["host"]), {str(role): str(digest) for role, digest in entry["roles"].items()}
