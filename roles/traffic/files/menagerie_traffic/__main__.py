"""Count the packets of this node's pods by namespace, direction and class.

    menagerie-traffic run              follow the pods, keep the table, write metrics; for systemd
    menagerie-traffic show [--json]    the totals now
    menagerie-traffic off              remove the table, now and at boot; totals stay in their file

Placed by Menagerie's role traffic. The table `ip menagerie_traffic` belongs to this program alone: nft list table ip
menagerie_traffic.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import threading
from typing import Any

from . import Refused, agent, api, metrics, totals
from .plan import planned
from .reservations import Reservations
from .table import Table

SETTINGS = "/etc/menagerie/traffic.json"
UNIT = "menagerie-traffic.service"


def settings(path: str = SETTINGS) -> dict[str, Any]:
    with open(path) as handle:
        given: dict[str, Any] = json.load(handle)
    return given


def report(line: str) -> None:
    print(line, flush=True)


def run(given: dict[str, Any]) -> None:
    table = Table(planned(given))
    changed, stopped = threading.Event(), threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    following = api.Following(api.Api(), changed, report)
    following.start()
    counting = agent.Agent(
        table,
        Reservations(given["reservations"], given["attachments"]),
        following,
        agent.Settings(given["metrics"], every_s=given["every_s"]),
        report,
    )
    agent.run(counting, changed, stopped)


def now(given: dict[str, Any]) -> totals.State:
    """Return the totals with what the kernel has counted since they were written."""
    state, table = totals.read(), Table(planned(given))
    return totals.counted(state, state.table._replace(boot=totals.boot(), handle=table.handle()), table.counters())


def show(state: totals.State, as_json: bool) -> None:
    rows = metrics.plain(state)
    if as_json:
        print(json.dumps({"counters": rows, "resets": state.resets}))
        return
    print(f"{'NAMESPACE':<40} {'':<4} {'CLASS':<9} {'BYTES':>20} {'PACKETS':>16}")
    for row in rows:
        name = row["namespace"] or "(unknown)"
        print(f"{name:<40} {row['direction']:<4} {row['class']:<9} {row['bytes']:>20} {row['packets']:>16}")


def off(given: dict[str, Any]) -> None:
    subprocess.run(["systemctl", "disable", "--now", UNIT], check=True)
    Table(planned(given)).remove()


def main() -> None:
    parser = argparse.ArgumentParser(prog="menagerie-traffic", description="count packets of pods by namespace")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("run")
    verbs.add_parser("show").add_argument("--json", action="store_true")
    verbs.add_parser("off")
    asked = parser.parse_args()
    try:
        given = settings()
        if asked.verb == "show":
            show(now(given), asked.json)
        else:
            {"run": run, "off": off}[asked.verb](given)
    except (Refused, OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        sys.exit(f"menagerie-traffic: {str(error) or repr(error)}")


if __name__ == "__main__":
    main()
