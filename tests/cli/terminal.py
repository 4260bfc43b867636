"""Run the command in this process, and capture its streams and its exit code."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from cli.running import run


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Menagerie = Callable[..., Ran]


class Terminal(io.StringIO):
    """Standard input of a terminal with typed text."""

    def isatty(self) -> bool:
        return True


def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Menagerie:
    """Return a function that runs a command line. `typed`: input on a terminal; without it there is no terminal.

    An interrupt ends no children: those of this process are servers of other tests.
    """
    monkeypatch.setattr("cli.interrupts.end_children", lambda: None)

    def call(*words: str, typed: str | None = None) -> Ran:
        monkeypatch.setattr("sys.stdin", io.StringIO() if typed is None else Terminal(typed))
        code = run(words)
        streams = capsys.readouterr()
        return Ran(code, streams.out, streams.err)

    return call


def between_rounds(monkeypatch: pytest.MonkeyPatch, pause: Callable[[float], None]) -> None:
    """Call `pause` instead of a service's sleep between rounds. Other threads and libraries sleep as usual."""
    monkeypatch.setattr("cli.actions.rounds.time", SimpleNamespace(sleep=pause))
