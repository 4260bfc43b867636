"""All clusters of a checkout, a row each, looked at side by side."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from operations.status.model import Status

PATIENCE_S = 30.0
"""For a cluster that does not answer: the others' rows wait as long."""


@dataclass(frozen=True)
class Row:
    """A cluster in a line. state: not built, well, not well, no answer, or unknown for an error."""

    cluster: str
    state: str
    ok: bool
    detail: str = ""
    help: str = ""


@dataclass(frozen=True)
class Fleet:
    rows: tuple[Row, ...]

    @property
    def ok(self) -> bool:
        return all(row.ok for row in self.rows)

    def to_json(self) -> dict[str, object]:
        return {"ok": self.ok, "clusters": [asdict(row) for row in self.rows]}


Look = Callable[[str], Status | None]
"""How a cluster is, None where it is not built. Whatever it raises is told in the cluster's row."""


def read_fleet(clusters: Sequence[str], look: Look, patience_s: float = PATIENCE_S) -> Fleet:
    """A row each, in this order. One that takes longer is left behind, and ends with the process at the latest."""
    rows: dict[str, Row] = {}

    def one(cluster: str) -> None:
        try:
            rows[cluster] = row_of(cluster, look(cluster))
        except Exception as error:  # noqa: BLE001 - a cluster that can't be looked at hides no other
            told = str(error).splitlines() or [type(error).__name__]
            rows[cluster] = Row(cluster, "unknown", False, told[0], f"./menagerie status {cluster}")

    # Daemons: a pool's threads are waited for when the process ends.
    threads = [threading.Thread(target=one, args=(cluster,), daemon=True) for cluster in clusters]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + patience_s
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0.0))
    return Fleet(tuple(rows.get(cluster) or _silent(cluster, patience_s) for cluster in clusters))


def row_of(cluster: str, status: Status | None) -> Row:
    """The first thing that is wrong stands for all: parts come in the order in which one breaks the next."""
    if status is None:
        return Row(cluster, "not built", True, "", f"./menagerie up {cluster}")
    if status.ok:
        return Row(cluster, "well", True, f"{len(status.items)} ok; {status.endpoint}")
    first, count = status.wrong[0], len(status.wrong)
    more = f" (and {count - 1} more)" if count > 1 else ""
    return Row(cluster, "not well", False, f"{first.name}: {first.detail}{more}", first.help)


def _silent(cluster: str, patience_s: float) -> Row:
    return Row(cluster, "no answer", False, f"none within {patience_s:.0f} s", f"./menagerie status {cluster}")
