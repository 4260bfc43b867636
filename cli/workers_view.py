"""A run over many workers as it goes: a few lines drawn anew on a terminal, plain lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.live import Live
from rich.text import Text

from cli.output import Details, errors
from inventories.report import Progress, RunReport
from inventories.tally import Count, Tally, words

_SHOWN = 4


class View:
    """Hears of progress while `shown`. quiet: prints nothing, for --json.

    Ansible's events come in the thread that runs it, and the picture is drawn in another.
    """

    def __init__(self, hosts: int, *, quiet: bool = False) -> None:
        self._tally = Tally(hosts)
        self._quiet = quiet
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._details: Details | None = None
        self._told: set[str] = set()

    def hear(self, progress: Progress) -> None:
        """Take one progress."""
        with self._lock:
            self._tally.hear(progress, time.monotonic())
            if self._details:
                self._details.tell(words(self._tally.count, self._tally.left_s()))
                self._tell_new_failures()

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show it for the length of a block."""
        if self._quiet:
            yield
        elif errors.is_terminal:
            with Live(get_renderable=self.picture, console=errors, refresh_per_second=4, transient=True):
                yield
        else:
            self._details = Details("workers: ")
            with self._details.lines():
                yield

    def end(self, report: RunReport) -> None:
        """One line that stays."""
        if self._quiet:
            return
        with self._lock:
            count = self._tally.count
        mark, colour = ("✓", "green") if report.succeeded else ("✗", "red")
        seconds = time.monotonic() - self._began
        errors.print(
            Text.assemble((f"    {seconds:6.1f} s ", "dim"), (mark, colour), f" workers  {words(count, None)}")
        )

    def picture(self) -> Text:
        """What a terminal shows: counts, a bar, who runs, and why hosts fail."""
        with self._lock:
            count, left_s = self._tally.count, self._tally.left_s()
            running = list(self._tally.running.items())
            failures = self._tally.failures.most_common(_SHOWN)
        width = max(min(errors.width - 1, 100), 20)
        lines = [Text(f"{time.monotonic() - self._began:6.1f} s   {words(count, left_s)}", "bold"), _bar(count, width)]
        if running:
            names = ", ".join(f"{host} {role}" for host, role in running[:_SHOWN])
            lines.append(Text(f"running: {names}{' …' if len(running) > _SHOWN else ''}", "dim"))
        lines += [Text(f"{number} × {message}", "red") for message, number in failures]
        for line in lines:
            line.truncate(width, overflow="ellipsis")
        return Text("\n").join(lines)

    def _tell_new_failures(self) -> None:
        """Each kind of failure once, when it comes; how many have it tells the end."""
        for message in self._tally.failures.keys() - self._told:
            self._told.add(message)
            errors.print(
                f"     {time.monotonic() - self._began:6.0f} s   workers: {message}", style="red", markup=False
            )


def _bar(count: Count, width: int) -> Text:
    """Done, broken and running hosts as parts of a line."""
    parts = ((count.done, "█", "green"), (count.failed + count.unreachable, "█", "red"), (count.running, "▒", "yellow"))
    made = Text()
    for number, sign, colour in parts:
        cells = number * width // max(count.total, 1)
        made.append(sign * (cells or (1 if number else 0)), colour)
    made.append("░" * max(width - len(made), 0), "dim")
    return made
