"""The command `python -m tools`: build programs into the cache, or list them."""

from __future__ import annotations

import json
import time
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from cluster.errors import FailedError
from tools import build, files, manifest
from tools.build import BuildEvent

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console(stderr=True, highlight=False)


class Display:
    """One live line on a terminal. Otherwise a line when a module starts, every half minute, and when it is done."""

    def __init__(self) -> None:
        self._status = console.status("") if console.is_terminal else None
        self._next = 0.0

    def __call__(self, event: BuildEvent) -> None:
        if event.state in ("cached", "fetched", "built"):
            if self._status:
                self._status.stop()
            console.print(str(event), markup=False, soft_wrap=True)
        else:
            self._line(str(event), event.seconds == 0)

    def _line(self, text: str, first: bool) -> None:
        if self._status:
            self._status.update(text.replace("[", "\\["))
            self._status.start()
        elif first or time.monotonic() >= self._next:
            self._next = time.monotonic() + 30
            console.print(text, markup=False, soft_wrap=True)


def _list(as_json: bool) -> None:
    rows = build.states()
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    table = Table("program", "version", "module", "in the cache", "release pinned", box=None)
    for row in rows:
        columns = [str(row[key]) for key in ("program", "version", "module")]
        table.add_row(*columns, *("yes" if row[key] else "no" for key in ("built", "release")))
    Console().print(table)


@app.command()
def main(
    programs: Annotated[
        list[str] | None, typer.Argument(help="Programs to build; default: those that the lab needs.")
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the programs; build nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print program -> path as JSON.")] = False,
) -> None:
    """Build pinned programs into the cache; programs that are already there are skipped."""
    if listing:
        _list(as_json)
        return
    try:
        paths = build.ensure(programs or manifest.unasked(), Display())
        if not programs:
            for name in files.names():
                files.ensure(name)
    except (LookupError, FailedError) as error:
        console.print(f"error: {error}", style="red", markup=False, soft_wrap=True)
        raise typer.Exit(1) from None
    if as_json:
        print(json.dumps({name: str(path) for name, path in paths.items()}, indent=2))


if __name__ == "__main__":
    app(prog_name="python -m tools")
