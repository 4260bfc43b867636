"""Journal of the state of each host, in a file that survives a crash.

There is one line per host, appended when the host is done; the newest line of a host counts. A new run starts by
replacing the file atomically. Before a run touches a host whose state is to change, its old state is removed: an interrupted
run can leave it between the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cluster.journal import Lines
from inventories.desired import Digests


class ConfigureJournal:
    """The journal in a file, which need not exist."""

    def __init__(self, path: Path) -> None:
        self._lines = Lines(path)
        self._known = dict(self._lines.read(_parse))

    def is_at(self, host: str, target: Digests) -> bool:
        """Return whether the host is in that state, after one run or several with one role each."""
        known = self._known.get(host, {})
        return all(known.get(role) == digest for role, digest in target.items())

    def begin(self, target: Mapping[str, Digests]) -> None:
        """Remove the states that hosts are about to leave, before any host is touched."""
        for host, states in target.items():
            known = self._known.get(host, {})
            stays = {role: digest for role, digest in known.items() if states.get(role, digest) == digest}
            if stays != known:
                self._known[host] = stays
        self._replace()

    def done(self, target: Mapping[str, Digests]) -> None:
        """Record that these hosts are in their states."""
        entries = []
        for host, states in target.items():
            if not self.is_at(host, states):
                self._known[host] = {**self._known.get(host, {}), **states}
                entries.append(_entry(host, self._known[host]))
        if entries:
            self._lines.append(entries)

    def forget(self, hosts: Sequence[str]) -> None:
        """Remove everything about these hosts."""
        for host in hosts:
            self._known.pop(host, None)
        self._replace()

    def _replace(self) -> None:
        self._lines.replace(_entry(host, states) for host, states in sorted(self._known.items()) if states)


def _entry(host: str, states: Digests) -> dict[str, Any]:
    return {"host": host, "roles": states}


def _parse(entry: dict[str, Any]) -> tuple[str, Digests]:
    return str(entry["host"]), {str(role): str(digest) for role, digest in entry["roles"].items()}
