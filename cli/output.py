"""What the command prints: steps with their times, tables, JSON; colours only on a terminal."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text

console = Console(stderr=False, highlight=False, soft_wrap=True)
errors = Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    json.dump(value, sys.stdout, indent=2, sort_keys=True, default=str)
    sys.stdout.write("\n")


class Steps:
    """The named steps of a long piece of work: which are done, which runs, how many are left.

    On a terminal the running step is drawn in place; elsewhere each step is a line when it ends,
    and a long one reports what it waits for. `quiet` prints nothing (for --json).
    """

    def __init__(self, names: tuple[str, ...], *, quiet: bool = False) -> None:
        self._names = names
        self._done = 0
        self._quiet = quiet
        self._detail = ""
        self._current = ""
        self._started = time.monotonic()
        self._began = time.monotonic()
        self._live: Live | None = None
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Run one of the named steps."""
        self._current, self._detail, self._started = name, "", time.monotonic()
        try:
            if self._quiet:
                yield
            elif console.is_terminal:
                with Live(
                    get_renderable=self._draw, console=console, refresh_per_second=8, transient=True
                ) as self._live:
                    yield
            else:
                yield
        except BaseException:
            self._say(f"[red]✗[/] {name}")
            raise
        finally:
            self._live = None
        self._done += 1
        self.seconds[name] = round(time.monotonic() - self._started, 1)
        detail = f"  [dim]{self._detail}[/]" if self._detail else ""
        self._say(f"[green]✓[/] {name}{detail}")

    def detail(self, text: str) -> None:
        """What the running step is doing now."""
        if text == self._detail:
            return
        self._detail = text
        if not self._quiet and not console.is_terminal:
            errors.print(f"          {text}", style="dim", markup=False)

    def _say(self, text: str) -> None:
        if not self._quiet:
            took = time.monotonic() - self._started
            console.print(f"[dim]{self._done:>2}/{len(self._names)} {took:6.1f} s[/] {text}")

    def _draw(self) -> Text:
        took, total = time.monotonic() - self._started, time.monotonic() - self._began
        left = self._names[self._done + 1 :]
        line = Text(f"{self._done + 1:>2}/{len(self._names)} {took:6.1f} s   {self._current}", style="bold")
        if self._detail:
            line.append(f"  {self._detail}", style="dim")
        line.append(f"\n   {total:7.1f} s in all; left: {', '.join(left) or 'nothing'}", style="dim")
        return line
