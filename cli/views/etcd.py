"""The members of an etcd as a table and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.text import Text

from cli.output import console
from operations.etcds.look import EtcdView, MemberState, mb

_COLUMNS = ("member", "address", "health", "role", "version", "revision", "database", "disk free", "fsync p99", "kept")


def print_view(view: EtcdView) -> None:
    """Print a line per member, in columns. A pipe gets full lines."""
    rows = [_COLUMNS, *(_cells(member) for member in view.members)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    console.print(Text(f"etcd {view.etcd.role}", style="bold"))
    for row, style in zip(rows, ("dim", *("" if member.healthy else "red" for member in view.members)), strict=True):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        console.print(Text(line.rstrip(), style=style))


def _cells(member: MemberState) -> tuple[str, ...]:
    status, agent = member.status, member.agent
    fsync = agent.get("fsync_p99_s")
    return (
        member.name,
        str(member.member.address),
        member.problem or "healthy",
        "" if status is None else "learner" if status.learner else "leader" if status.leads else "follower",
        status.version if status else "",
        str(status.revision) if status else "",
        f"{mb(status.size_in_use)} of {mb(status.size)}" if status else "",
        mb(agent["disk_free"]) if agent else "no agent",
        f"{fsync * 1000:.1f} ms" if fsync else "",
        str(len(agent.get("kept_aside", {})) or ""),
    )


def as_document(view: EtcdView) -> dict[str, Any]:
    """Return everything known about the members, for --json."""
    return {
        "etcd": view.etcd.role,
        "members": [
            {
                "name": member.name,
                "address": str(member.member.address),
                "ailment": member.problem,
                "status": asdict(member.status) if member.status else None,
                "host": member.agent or None,
                "agent_error": member.agent_error,
            }
            for member in view.members
        ],
    }
