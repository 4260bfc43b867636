"""Programs from the cache that tests run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from cluster.errors import FailedError
from tests import beside
from tools import build, files


def built() -> dict[str, Path]:
    """Return the built programs by name. Without Go, which determines their paths, there are none."""
    try:
        return {str(state["program"]): Path(str(state["path"])) for state in build.states() if state["built"]}
    except FailedError:
        return {}


_running: list[pytest.Item] = []


def starts(item: pytest.Item) -> None:
    """Note the test that starts now."""
    _running[:] = [item]


def _refuse_unmarked() -> None:
    """`make check` runs tests without these marks, and builds no program."""
    marks = ("engine", "lab", "needs_programs", "programs", "timed")
    if _running and not any(_running[0].get_closest_marker(name) for name in marks):
        raise AssertionError(
            f"{_running[0].nodeid} runs a program: mark it with programs, or list its file in tests/levels.py"
        )


def program(name: str) -> Path:
    """Return a program's path. Wait for it if programs are being built; skip the test if it was not built."""
    _refuse_unmarked()
    if missing := _missing_of({name}):
        pytest.skip(_missing(missing))
    return _paths[name]


_paths: dict[str, Path] = {}
"""Programs that were found. Tests may name another cache later."""


def _missing_of(names: set[str]) -> set[str]:
    """Return the programs that are missing after the build, if one is in progress."""
    if not names <= _paths.keys():
        _paths.update(built())
    if not names <= _paths.keys():
        beside.wait_for_programs()
        _paths.update(built())
    return names - _paths.keys()


class _Programs(Mapping[str, Path]):
    """The built programs by name. They are looked up when they are used: some may still be built while tests are collected."""

    def __getitem__(self, name: str) -> Path:
        return program(name)

    def __iter__(self) -> Iterator[str]:
        return iter(built())

    def __len__(self) -> int:
        return len(built())


PROGRAMS = _Programs()


def needs(names: Iterable[str]) -> pytest.MarkDecorator:
    """Return a mark that skips tests if one of these programs is missing when they start."""
    return pytest.mark.needs_programs(*names)


def skip_without_programs(item: pytest.Item) -> None:
    """Skip a test if a program that `needs` names for it is missing."""
    names = {name for mark in item.iter_markers("needs_programs") for name in mark.args}
    if missing := _missing_of(names):
        pytest.skip(_missing(missing))


def _missing(names: Iterable[str]) -> str:
    return f"not in the cache: .venv/bin/python -m tools {' '.join(sorted(names))}"


def file(name: str) -> Path:
    """Return a file of tools/programs.toml. Skip the test if it can't be fetched."""
    try:
        return files.ensure(name)
    except FailedError as error:
        pytest.skip(str(error))
