"""Looking at a cluster once or repeatedly, and printing what is seen."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from datetime import UTC, datetime

import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from cli import exits
from cli.output import console, print_json, write_out
from cli.sections import Look, Report


def show(look: Look, watch_s: float | None, *, as_json: bool) -> None:
    """Look and print, once or until interrupted, and exit."""
    if watch_s:
        with suppress(KeyboardInterrupt):  # a watch ends this way
            _watch(look, watch_s, as_json=as_json)
        raise typer.Exit(exits.DONE)
    looked = look()
    if as_json:
        print_json(looked.document)
    else:
        looked.show()
    raise typer.Exit(looked.code)


def _watch(look: Look, every_s: float, *, as_json: bool) -> None:
    """Look and print until interrupted."""
    if as_json:
        while True:
            document = {"at": datetime.now(UTC).isoformat(timespec="seconds"), **look().document}
            write_out(json.dumps(document, sort_keys=True, default=str) + "\n")
            time.sleep(every_s)
    if console.is_terminal:
        # A separate console, so that capturing the other one does not capture what Live draws.
        screen = type(console)(highlight=False, soft_wrap=True)
        waiting = Text("looking …", style="dim")
        with Live(waiting, console=screen, auto_refresh=False, redirect_stdout=False) as live:
            while True:
                live.update(Group(*_shown(look()), Text(f"{datetime.now():%H:%M:%S}", style="dim")), refresh=True)
                time.sleep(every_s)
    before: set[str] = set()
    while True:
        now = [line.plain for line in _shown(look())]
        for line in now:
            if line not in before:
                console.print(f"{datetime.now():%H:%M:%S} {line}", markup=False)
        before = set(now)
        time.sleep(every_s)


def _shown(looked: Report) -> list[Text]:
    with console.capture() as captured:
        looked.show()
    return list(Text.from_ansi(captured.get()).split("\n"))
