"""Status of all clusters of a checkout, checked in parallel, one row each."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from cluster.waiting import join_all
from operations.status.model import Status

PATIENCE_S = 30.0
"""Time-out for a cluster that does not respond; the other rows wait for it."""


@dataclass(frozen=True)
class FleetRow:
    """One cluster's row. state: not built, well, not well, no answer, or unknown after an error."""

    cluster: str
    state: str
    ok: bool
    detail: str = ""
    help: str = ""


@dataclass(frozen=True)
class FleetStatus:
    rows: tuple[FleetRow, ...]

    @property
    def ok(self) -> bool:
        return all(row.ok for row in self.rows)

    def to_json(self) -> dict[str, object]:
        return {"ok": self.ok, "clusters": [asdict(row) for row in self.rows]}


Look = Callable[[str], Status | None]
"""Returns a cluster's status, None if it is not built. Any error it raises is shown in the cluster's row."""


def read_fleet(clusters: Sequence[str], look: Look, patience_s: float = PATIENCE_S) -> FleetStatus:
    """Return one row per cluster, in this order. Does not wait for a check that takes longer; it ends with the process."""
    rows: dict[str, FleetRow] = {}

    def check(cluster: str) -> None:
        try:
            rows[cluster] = row_of(cluster, look(cluster))
        except Exception as error:  # noqa: BLE001 - a cluster that can't be checked must not hide the others
            lines = str(error).splitlines() or [type(error).__name__]
            rows[cluster] = FleetRow(cluster, "unknown", False, lines[0], f"./menagerie status {cluster}")

    # Daemon threads: the process would wait for the threads of a pool at its end.
    threads = [threading.Thread(target=check, args=(cluster,), daemon=True) for cluster in clusters]
    for thread in threads:
        thread.start()
    join_all(threads, patience_s)
    return FleetStatus(tuple(rows.get(cluster) or _silent(cluster, patience_s) for cluster in clusters))


def row_of(cluster: str, status: Status | None) -> FleetRow:
    """Return a cluster's row. It shows the first problem: parts are ordered so that each one can break the next."""
    if status is None:
        return FleetRow(cluster, "not built", True, "", f"./menagerie up {cluster}")
    if status.ok:
        return FleetRow(cluster, "well", True, f"{len(status.items)} ok; {status.endpoint}")
    first, count = status.wrong[0], len(status.wrong)
    more = f" (and {count - 1} more)" if count > 1 else ""
    return FleetRow(cluster, "not well", False, f"{first.name}: {first.detail}{more}", first.help)


def _silent(cluster: str, patience_s: float) -> FleetRow:
    return FleetRow(
        cluster, "no answer", False, f"no response within {patience_s:.0f} s", f"./menagerie status {cluster}"
    )
