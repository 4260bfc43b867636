"""The file of a test's results: a line a pair, so that a run that was cut short goes on where it was.

JSON lines. The first says what was planned; of two lines for one pair the later counts; a last line that was cut by a
kill is left out.
"""

from __future__ import annotations

import json
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from roce.plan import Plan


class OtherPlanError(Exception):
    """The file holds results of another plan."""


@dataclass(frozen=True)
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


class Results:
    """Results that stand in a file, and new ones that are added to it at once."""

    def __init__(self, path: Path, plan: Plan, *, fresh: bool = False) -> None:
        self.pairs: dict[tuple[str, str, str], Pair] = {}
        self._path = path
        self._lock = threading.Lock()
        head = {"cluster": plan.cluster, "plan": plan.fingerprint(), "options": asdict(plan.options)}
        lines = _lines(path) if not fresh else []
        if lines and lines[0].get("plan") != head["plan"]:
            raise OtherPlanError(
                f"{path} has results of other hosts, rails or options; begin anew with --fresh, or name another file"
            )
        for line in lines[1:]:
            self._keep(Pair(**line))
        # Written anew: what a kill cut off must not run into the next line.
        path.parent.mkdir(parents=True, exist_ok=True)
        written = [head, *(asdict(pair) for pair in self.pairs.values())]
        path.write_text("".join(json.dumps(line) + "\n" for line in written))

    def add(self, pair: Pair) -> None:
        """Keep a result; any thread may."""
        with self._lock:
            self._keep(pair)
            with self._path.open("a") as file:
                file.write(json.dumps(asdict(pair)) + "\n")

    def has(self, rail: str, sender: str, receiver: str) -> bool:
        """Whether the pair was measured. One that failed is tried again."""
        known = self.pairs.get((rail, sender, receiver))
        return known is not None and not known.error

    def _keep(self, pair: Pair) -> None:
        self.pairs[pair.key] = pair


def _lines(path: Path) -> list[dict[str, Any]]:
    try:
        text = path.read_text()
    except FileNotFoundError:
        return []
    found = []
    for line in text.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            break
    return found
