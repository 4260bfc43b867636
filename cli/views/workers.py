"""Progress of a run over many workers: a few redrawn lines on a terminal, plain lines elsewhere."""

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
    """Take progress and print it while `shown`. quiet: print nothing, for --json.

    Ansible's events arrive in the thread that runs it; another thread draws the picture.
    """

    def __init__(self, hosts: int, *, quiet: bool = False) -> None:
        self._tally = Tally(hosts)
        self._quiet = quiet
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._details: Details | None = None
        self._reported: set[str] = set()

    def hear(self, progress: Progress) -> None:
        """Take one event."""
        with self._lock:
            self._tally.hear(progress, time.monotonic())
            if self._details:
                self._details.tell(words(self._tally.count, self._tally.left_s()))
                self._print_new_failures()

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show progress while the block runs."""
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
        """Print the final line."""
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
        """Return what a terminal shows: counts, a bar, running hosts, and why hosts fail."""
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

    def _print_new_failures(self) -> None:
        """Print each kind of failure once, when it first happens. The final line has the counts."""
        for message in self._tally.failures.keys() - self._reported:
            self._reported.add(message)
            errors.print(
                f"     {time.monotonic() - self._began:6.0f} s   workers: {message}", style="red", markup=False
            )


def _bar(count: Count, width: int) -> Text:
    """Return done, failed and running hosts as segments of a bar."""
    parts = ((count.done, "█", "green"), (count.failed + count.unreachable, "█", "red"), (count.running, "▒", "yellow"))
    bar = Text()
    for number, sign, colour in parts:
        cells = number * width // max(count.total, 1)
        bar.append(sign * (cells or (1 if number else 0)), colour)
    bar.append("░" * max(width - len(bar), 0), "dim")
    return bar
