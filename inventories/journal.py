"""Which host was brought to which state: a file that a run can lose no word of, however it ends.

One line of JSON a host, appended in one write once the host is done; the newest line of a host counts. A line that was
cut is left out when it is read. A new run begins with a whole file that is put in the place of the old one at once.
Before a run touches a host that is to be at another state, its old state is struck out: a run that is cut leaves it
between the two.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from inventories.desired import Digests

FORMAT = 1


class Journal:
    """path: the file; it need not exist."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = dict(_read(path))

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
        lines = []
        for host, states in wanted.items():
            if not self.is_at(host, states):
                self._known[host] = {**self._known.get(host, {}), **states}
                lines.append(_line(host, self._known[host]))
        if lines:
            self._append("".join(lines))

    def forget(self, hosts: Sequence[str]) -> None:
        """Nothing is known of these hosts any more."""
        for host in hosts:
            self._known.pop(host, None)
        self._replace()

    def _append(self, text: str) -> None:
        """One write, so that another process sees whole lines only (open(2), O_APPEND)."""
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)

    def _replace(self) -> None:
        """Write beside, flush, rename: after a power cut there is the old file or the new one."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = self._path.with_suffix(".new")
        beside.touch(mode=0o600)
        with beside.open("w") as file:
            file.writelines(_line(host, states) for host, states in sorted(self._known.items()) if states)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._path)


def _line(host: str, states: Digests) -> str:
    return json.dumps({"v": FORMAT, "host": host, "roles": states}, separators=(",", ":")) + "\n"


def _read(path: Path) -> Iterable[tuple[str, Digests]]:
    """(host, its states), oldest first. A line of another format or a damaged one tells nothing."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            entry = json.loads(line)
            if entry["v"] == FORMAT:
                yield str(entry["host"]), {str(role): str(digest) for role, digest in entry["roles"].items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
