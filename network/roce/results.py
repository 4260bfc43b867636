"""The result file of a test: one line per pair, so that an interrupted run can resume.

The format is JSON lines. The first line has the plan. If a pair has two lines, the later one counts. Unreadable lines, which
a killed run may leave, are ignored and stay in the file: it is append-only, unless a run starts over.
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
from network.roce.plan import MeasurementPlan

_KIND = "a result file of roce test"
_MOST_BYTES = 2**30
"""The largest file to read. 2,000 hosts have 16 million pairs on 8 rails, of 130 bytes each; nobody measures a tenth of them."""


@dataclass(frozen=True, config=ConfigDict(allow_inf_nan=False, strict=True))
class Pair:
    """The result of a pair. rail: site/rail. line_gbit_s: the speed of the slower port. error: why there is no result."""

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
    """The results in a file. New ones are appended at once.

    unread: the number of unreadable lines. Raises RefusedError if the file is of another plan, and ForeignFileError if it is
    not a result file.
    """

    def __init__(self, path: Path, plan: MeasurementPlan, *, fresh: bool = False) -> None:
        self.pairs: dict[tuple[str, str, str], Pair] = {}
        self.unread = 0
        self._path = path
        self._lock = threading.Lock()
        head = {"cluster": plan.cluster, "plan": plan.fingerprint(), "options": asdict(plan.options)}
        data = _data(path)
        first, _, rest = data.partition(b"\n")
        if data and not _is_head(existing := _object(first)):
            raise ForeignFileError(path, _KIND)
        if data and not fresh:
            if existing["plan"] != head["plan"]:
                raise RefusedError(
                    f"{path} has results of other hosts, rails or options; start over with --fresh, or name another file",
                    code="other-plan",
                )
            for pair in self._read(rest):
                self._keep(pair)
            if not data.endswith(b"\n"):  # end a line that a kill cut off
                self._append("\n")
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, f"{json.dumps(head)}\n".encode())

    def add(self, pair: Pair) -> None:
        """Keep a result. Thread-safe."""
        with self._lock:
            self._keep(pair)
            self._append(json.dumps(asdict(pair)) + "\n")

    def has(self, rail: str, sender: str, receiver: str) -> bool:
        """Return whether the pair was measured successfully. A failed one is measured again."""
        pair = self.pairs.get((rail, sender, receiver))
        return pair is not None and not pair.error

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
    """Return the JSON value of a line; None if it is not JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _is_head(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"cluster", "plan", "options"} and isinstance(value["plan"], str)
