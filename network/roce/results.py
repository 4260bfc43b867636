"""The file of a test's results: a line a pair, so that a run that was cut short goes on where it was.

JSON lines. The first says what was planned; of two lines for one pair the later counts. A line that can't be read, as a
kill leaves one, tells nothing and stays where it is: the file is only ever added to, or begun anew.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from cluster.errors import RefusedError
from cluster.reading import UnreadableError, read_bytes
from cluster.writing import ForeignFileError, replace
from network.roce.plan import Plan

_KIND = "a file of results of roce test"
_MOST_BYTES = 2**30
"""Of a file: 2,000 hosts have 16 million pairs on 8 rails, of 130 bytes; nobody measures a tenth of them."""


@dataclass(frozen=True, config=ConfigDict(allow_inf_nan=False, strict=True))
class Pair:
    """What one pair gave. rail: site/rail. line_gbit_s: the speed of the slower of both ports. error: why there is none."""

    rail: str
    sender: str
    receiver: str
    gbit_s: float | None = None
    line_gbit_s: float | None = None
    mtu: int | None = None
    error: str = ""

    @property
    def share(self) -> float | None:
        return self.gbit_s / self.line_gbit_s if self.gbit_s is not None and self.line_gbit_s else None

    @property
    def key(self) -> tuple[str, str, str]:
        return self.rail, self.sender, self.receiver


_PAIR = TypeAdapter(Pair)


class Results:
    """Results that stand in a file, and new ones that are added to it at once.

    unread: how many of its lines tell nothing. Raises RefusedError, and ForeignFileError for a file of another kind.
    """

    def __init__(self, path: Path, plan: Plan, *, fresh: bool = False) -> None:
        self.pairs: dict[tuple[str, str, str], Pair] = {}
        self.unread = 0
        self._path = path
        self._lock = threading.Lock()
        head = {"cluster": plan.cluster, "plan": plan.fingerprint(), "options": asdict(plan.options)}
        data = _data(path)
        first, _, rest = data.partition(b"\n")
        if data and not _is_head(found := _object(first)):
            raise ForeignFileError(path, _KIND)
        if data and not fresh:
            if found["plan"] != head["plan"]:
                raise RefusedError(
                    f"{path} has results of other hosts, rails or options; begin anew with --fresh, or name another file",
                    code="other-plan",
                )
            for pair in self._read(rest):
                self._keep(pair)
            if not data.endswith(b"\n"):  # what a kill cut off must not run into the next line
                self._append("\n")
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, f"{json.dumps(head)}\n".encode())

    def add(self, pair: Pair) -> None:
        """Keep a result; any thread may."""
        with self._lock:
            self._keep(pair)
            self._append(json.dumps(asdict(pair)) + "\n")

    def has(self, rail: str, sender: str, receiver: str) -> bool:
        """Whether the pair was measured. One that failed is tried again."""
        known = self.pairs.get((rail, sender, receiver))
        return known is not None and not known.error

    def _read(self, lines: bytes) -> Iterator[Pair]:
        for line in filter(None, lines.splitlines()):
            try:
                yield _PAIR.validate_json(line)
            except ValidationError:
                self.unread += 1

    def _append(self, text: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(text)

    def _keep(self, pair: Pair) -> None:
        self.pairs[pair.key] = pair


def _data(path: Path) -> bytes:
    try:
        return read_bytes(path, _MOST_BYTES)
    except UnreadableError as error:
        if error.missing:
            return b""
        raise


def _object(line: bytes) -> Any:
    """What a line says, None where it is no JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _is_head(found: Any) -> bool:
    return isinstance(found, dict) and set(found) == {"cluster", "plan", "options"} and isinstance(found["plan"], str)
