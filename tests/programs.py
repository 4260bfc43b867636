"""Programs from the cache that tests run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from cluster.errors import FailedError
from tools import build, files


def built() -> dict[str, Path]:
    """Return the built programs by name. Without Go, which determines their paths, there are none."""
    try:
        return {str(state["program"]): Path(str(state["path"])) for state in build.states() if state["built"]}
    except FailedError:
        return {}


def program(name: str) -> Path:
    """Return a program's path. Skip the test if it was not built yet."""
    programs = built()
    if name not in programs:
        pytest.skip(_missing([name]))
    return programs[name]


def needs(names: Iterable[str]) -> pytest.MarkDecorator:
    """Return a mark that skips tests if one of these programs is missing."""
    missing = set(names) - set(built())
    return pytest.mark.skipif(bool(missing), reason=_missing(missing))


def _missing(names: Iterable[str]) -> str:
    return f"not in the cache: .venv/bin/python -m tools {' '.join(sorted(names))}"


def file(name: str) -> Path:
    """Return a file of tools/programs.toml. Skip the test if it can't be fetched."""
    try:
        return files.ensure(name)
    except FailedError as error:
        pytest.skip(str(error))
