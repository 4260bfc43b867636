"""Programs of the cache that tests run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from cluster.errors import FailedError
from tools import build, files


def built() -> dict[str, Path]:
    """Those that are there, by name; none without Go, which tells how they are named."""
    try:
        return {str(each["program"]): Path(str(each["path"])) for each in build.states() if each["built"]}
    except FailedError:
        return {}


def program(name: str) -> Path:
    """Its path; the test is skipped where it was not built yet."""
    found = built()
    if name not in found:
        pytest.skip(_missing([name]))
    return found[name]


def needs(names: Iterable[str]) -> pytest.MarkDecorator:
    """A mark that skips tests where one of these is not there."""
    missing = set(names) - set(built())
    return pytest.mark.skipif(bool(missing), reason=_missing(missing))


def _missing(names: Iterable[str]) -> str:
    return f"not in the cache: .venv/bin/python -m tools {' '.join(sorted(names))}"


def file(name: str) -> Path:
    """A file of tools/programs.toml; the test is skipped where it can't be fetched."""
    try:
        return files.ensure(name)
    except FailedError as error:
        pytest.skip(str(error))
