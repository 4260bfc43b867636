"""Members of an etcd as a table and as JSON, and the question before one is changed."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.text import Text

from cli.output import console

if TYPE_CHECKING:
    from operations.etcds.look import Seen, View

_COLUMNS = ("member", "address", "health", "role", "version", "revision", "database", "disk free", "fsync p99", "kept")


def print_view(view: View) -> None:
    """A line for each member, in columns; a pipe gets all of it."""
    rows = [_COLUMNS, *(_cells(each) for each in view.seen)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    console.print(Text(f"etcd {view.etcd.role}", style="bold"))
    for row, style in zip(rows, ("dim", *("" if each.healthy else "red" for each in view.seen)), strict=True):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        console.print(Text(line.rstrip(), style=style))


def _cells(seen: Seen) -> tuple[str, ...]:
    from operations.etcds.look import mb

    status, agent = seen.status, seen.agent
    fsync = agent.get("fsync_p99_s")
    return (
        seen.name,
        str(seen.member.address),
        seen.ailment or "healthy",
        "" if status is None else "learner" if status.learner else "leader" if status.leads else "follower",
        status.version if status else "",
        str(status.revision) if status else "",
        f"{mb(status.size_in_use)} of {mb(status.size)}" if status else "",
        mb(agent["disk_free"]) if agent else "no agent",
        f"{fsync * 1000:.1f} ms" if fsync else "",
        str(len(agent.get("kept_aside", {})) or ""),
    )


def told(view: View) -> dict[str, Any]:
    """All that is known of the members, for --json."""
    return {
        "etcd": view.etcd.role,
        "members": [
            {
                "name": each.name,
                "address": str(each.member.address),
                "ailment": each.ailment,
                "status": asdict(each.status) if each.status else None,
                "host": each.agent or None,
                "agent_error": each.agent_error,
            }
            for each in view.seen
        ],
    }
