"""The status of a cluster and of the fleet as lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from cli.output import console

if TYPE_CHECKING:  # `up` imports this while the engine is in memory, and the clients of a status are 60 MB
    from operations.status import Status, StatusItem
    from operations.status.fleet import FleetStatus

_STATES = {"well": "green", "not built": "dim"}


def print_lines(shown: list[Text]) -> None:
    for line in shown:
        console.print(line)


def print_status(status: Status) -> None:
    """Print the status as a table, with the endpoint and the verdict last."""
    print_lines(lines(status))


def lines(status: Status) -> list[Text]:
    """Return the lines of `print_status`."""
    groups = max((len(item.group) for item in status.items), default=0)
    names = max((len(item.name) for item in status.items), default=0)
    group, rows = "", []
    for item in status.items:
        rows.append(_line(item, "" if item.group == group else item.group, groups, names))
        group = item.group
    bad = len(status.wrong)
    verdict = f"{bad} of {len(status.items)} not ok" if bad else "all healthy"
    rows.append(Text.assemble((f"{'endpoint':<{groups}}", "bold"), f"  {status.endpoint}; {verdict}"))
    return rows


def _line(item: StatusItem, group: str, groups: int, names: int) -> Text:
    mark = ("ok", "green") if item.ok else ("not ok", "red")
    line = Text.assemble((f"{group:<{groups}}", "bold"), f"  {item.name:<{names}}  ", mark)
    line.append(" " * (8 - len(mark[0])) + item.detail)
    if item.help:
        line.append(f"  → {item.help}", style="bold")
    return line


def rows(fleet: FleetStatus) -> list[Text]:
    """Return a row per cluster."""
    names = max((len(row.cluster) for row in fleet.rows), default=0)
    return [
        Text.assemble(
            (f"{row.cluster:<{names}}", "bold"),
            "  ",
            (f"{row.state:<9}", _STATES.get(row.state, "red")),
            f"  {row.detail}",
            (f"  → {row.help}" if row.help else "", "" if row.ok else "bold"),
        )
        for row in fleet.rows
    ]
