"""The command in this process, from its words to its streams and its exit code."""

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
    """Standard input at which somebody types."""

    def isatty(self) -> bool:
        return True


def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Menagerie:
    """Run a command line; `typed` is what somebody types at a terminal, without it there is none."""

    def call(*words: str, typed: str | None = None) -> Ran:
        monkeypatch.setattr("sys.stdin", io.StringIO() if typed is None else Terminal(typed))
        code = run(words)
        told = capsys.readouterr()
        return Ran(code, told.out, told.err)

    return call


def between_rounds(monkeypatch: pytest.MonkeyPatch, pause: Callable[[float], None]) -> None:
    """Call `pause` where a service sleeps between its rounds, and nowhere else: other threads and libraries sleep as ever."""
    monkeypatch.setattr("cli.rounds.time", SimpleNamespace(sleep=pause))
