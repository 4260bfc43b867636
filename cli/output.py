"""The command's output: results on standard output, everything else on standard error; colours only on a terminal."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.segment import Segment
from rich.text import Text

from cli import exits
from cluster.errors import FailedError
from cluster.problems import Problem, legible, shown

_NO_LIMIT = 100_000


class _Console(Console):
    """A console that escapes control characters of any text, and ends the command when its reader is gone.

    Without a terminal no line has a limit: a program or a file gets whole cells of tables.
    """

    @property
    def options(self) -> ConsoleOptions:
        options = super().options
        return options if self.is_terminal else options.update(max_width=_NO_LIMIT)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            text = segment.text
            if segment.control or text == "\n" or text.isprintable():
                yield segment
            else:
                yield Segment("\n".join(map(legible, text.split("\n"))), segment.style)

    def on_broken_pipe(self) -> None:
        self.quiet = True
        give_up(self.file)
        raise SystemExit(exits.UNHEARD)


console = _Console(highlight=False, soft_wrap=True)
errors = _Console(stderr=True, highlight=False, soft_wrap=True)

DETAIL_EVERY_S = 5.0
_NARROWEST_DETAIL = 20


class OutputError(FailedError):
    """Standard output cannot be written, so no document can be printed."""

    code = "output"


def write_out(text: str) -> None:
    """Write text to standard output unchanged, in UTF-8 whatever the terminal's encoding: it may go to a file."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        console.on_broken_pipe()
    except OSError as error:
        give_up(sys.stdout)
        raise OutputError(f"standard output cannot be written: {error.strerror}") from None


def give_up(stream: IO[str]) -> None:
    """Discard what is still to be written; otherwise the interpreter would fail on it again at exit."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def flushed(code: int) -> int:
    """Flush all output and return the exit code of the process."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            give_up(stream)
            code = exits.UNHEARD if isinstance(error, BrokenPipeError) else code or exits.FAILED
    return code


def print_json(value: object) -> None:
    """Print a JSON document on standard output."""
    write_out(json.dumps(value, indent=2, sort_keys=True, default=str) + "\n")


def note(text: str) -> None:
    """Print a notice that the reader should not miss."""
    errors.print(Text(text, style="yellow"))


def print_problems(problems: list[Problem]) -> None:
    """Print the problems of specs, and where each code is explained."""
    for text, is_error in shown(problems):
        errors.print(text, markup=False, style="red" if is_error else "yellow")
    if problems:
        errors.print("docs/reference/errors.md explains every code", style="dim")


class Details:
    """Progress of long work as lines: every few seconds the newest detail, if it is new."""

    def __init__(self, prefix: str = "", every_s: float = DETAIL_EVERY_S) -> None:
        self._prefix = prefix
        self._every_s = every_s
        self._newest = self._printed = ""
        self._over = threading.Event()
        self._began = time.monotonic()

    def tell(self, text: str) -> None:
        """Keep a detail. It is printed at the next interval unless a newer one replaces it."""
        self._newest = text

    @contextmanager
    def lines(self) -> Iterator[None]:
        """Print details while the block runs."""
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._every_s):
            if self._newest not in ("", self._printed):
                self._printed = self._newest
                took = f"{time.monotonic() - self._began:6.0f} s"
                errors.print(f"     {took}   {self._prefix}{self._newest}", style="dim", markup=False)


class Steps:
    """The named steps of long work: which are done, which one runs, how long each took, which are left.

    On a terminal, the running step is one line that is redrawn. Elsewhere each step prints a line when it ends, and a
    long one reports every few seconds what it does. `quiet` prints nothing (for --json).
    """

    def __init__(self, names: tuple[str, ...], *, quiet: bool = False) -> None:
        self._names = names
        self._begun = 0
        self._quiet = quiet
        self._detail = ""
        self._details: Details | None = None
        self._started = self._began = time.monotonic()
        self.seconds: dict[str, float] = {}

    @property
    def total_s(self) -> float:
        """Seconds since the steps were created."""
        return round(time.monotonic() - self._began, 1)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Run one of the named steps."""
        self._begun += 1
        self._detail, self._started = "", time.monotonic()
        try:
            with self._shown(name):
                yield
        except BaseException:
            self._end(name, "✗", "red")
            raise
        self._end(name, "✓", "green")

    def detail(self, text: str) -> None:
        """Report what the running step is doing."""
        self._detail = text
        if self._details:
            self._details.tell(text)

    @contextmanager
    def _shown(self, name: str) -> Iterator[None]:
        if self._quiet:
            yield
        elif errors.is_terminal:
            with Live(get_renderable=lambda: self._line(name), console=errors, refresh_per_second=4, transient=True):
                yield
        else:
            self._details = Details(f"{name}: ")
            with self._details.lines():
                yield

    @property
    def _left(self) -> tuple[str, ...]:
        return self._names[self._begun :]

    def _end(self, name: str, mark: str, colour: str) -> None:
        self.seconds[name] = round(time.monotonic() - self._started, 1)
        if self._quiet:
            return
        left = f"left: {', '.join(self._left)}" if self._left and mark == "✓" else ""
        line = Text.assemble((self._head(), "dim"), " ", (mark, colour), f" {name:<{max(map(len, self._names))}}  ")
        line.append(left, style="dim")
        line.rstrip()
        errors.print(line)

    def _head(self) -> str:
        return f"{self._begun:>2}/{len(self._names)} {time.monotonic() - self._started:6.1f} s"

    def _line(self, name: str) -> Text:
        """Return the running step as one line. If room is short, the detail is cut, then the names of steps left become a number."""
        head = f"{self._head()}   {name}"
        tail = f"  left: {', '.join(self._left)}" if self._left else ""
        room = errors.width - 1 - len(head)
        if room - len(tail) < _NARROWEST_DETAIL:
            tail = f"  {len(self._left)} left" if self._left else ""
        detail = Text(f"  {self._detail}" if self._detail else "")
        detail.truncate(max(room - len(tail), 0), overflow="ellipsis")
        line = Text.assemble((head, "bold"), (detail.plain, "dim"), (tail, "dim"), no_wrap=True, overflow="ellipsis")
        line.truncate(errors.width - 1, overflow="ellipsis")
        return line
