"""The answers of `doctor` as lines: state, what was found, what the plan needs, and below it the commands that mend it."""

from __future__ import annotations

from rich.text import Text

from cli.output import console
from operations.doctor.model import AnswerRow, Report, State

_COLOURS = {State.OK: "green", State.WRONG: "red", State.UNKNOWN: "yellow", State.NOT_ASKED: "dim"}
_WIDTH = max(map(len, State))


def print_report(report: Report) -> None:
    """Print all rows by group, and the verdict last."""
    names = max((len(row.name) for row in report.rows), default=0)
    groups = max((len(row.group) for row in report.rows), default=0)
    group = ""
    for row in report.rows:
        _print_row(row, "" if row.group == group else row.group, groups, min(names, 40))
        group = row.group
    counts = [f"{number} {state}" for state in State if (number := report.count(state))]
    console.print(
        Text.assemble((report.cluster, "bold"), f"  {report.cloud}; {', '.join(counts)}; nothing was changed")
    )


def _print_row(row: AnswerRow, group: str, groups: int, names: int) -> None:
    answer = row.answer
    line = Text.assemble((f"{group:<{groups}}", "bold"), f"  {row.name:<{names}}  ")
    line.append(f"{answer.state:<{_WIDTH}}", _COLOURS[answer.state])
    line.append(f"  {answer.finding}")
    if answer.needed:
        line.append(f"; needed: {answer.needed}")
    console.print(line)
    for command in answer.mend:
        console.print(Text(f"{'':<{groups}}  → {command}", style="bold"))
