"""Servers that tests of a group share: the first test starts one, and it stops after the group's last test in this process.

Servers shared by a session would run until its end, and even an idle API server takes a fiftieth of a core.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
_begun: dict[str, Any] = {}
_ends = ExitStack()


def group_of(item: pytest.Item) -> str:
    """Return an item's group; without one, its file. One process runs the items of a group in a row."""
    mark = item.get_closest_marker("xdist_group")
    return str(mark.args[0]) if mark and mark.args else item.path.as_posix()


def shared(name: str, begin: Callable[[], AbstractContextManager[T]]) -> T:
    """Return the group's server of this name. If it failed to start, later calls raise the same error at once."""
    if name not in _begun:
        try:
            _begun[name] = _ends.enter_context(begin())
        except BaseException as error:  # noqa: BLE001 - kept, and raised below
            _begun[name] = error
    result = _begun[name]
    if isinstance(result, BaseException):
        raise result
    server: T = result
    return server


def end() -> None:
    """Stop all shared servers."""
    _begun.clear()
    _ends.close()
