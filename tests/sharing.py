"""Servers that the tests of a group share: the first that asks begins one, and it ends after the group's last test of this process.

What a session shares would be there until the session's end, and an API server that nobody asks still takes a fiftieth of a core.
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
    """Items of one group are run by one process, in a row. What has no group is its file's."""
    mark = item.get_closest_marker("xdist_group")
    return str(mark.args[0]) if mark and mark.args else item.path.as_posix()


def shared(name: str, begin: Callable[[], AbstractContextManager[T]]) -> T:
    """The group's server of this name. Where it could not be begun, whoever asks next is told so at once."""
    if name not in _begun:
        try:
            _begun[name] = _ends.enter_context(begin())
        except BaseException as error:  # noqa: BLE001 - kept, and raised below
            _begun[name] = error
    found = _begun[name]
    if isinstance(found, BaseException):
        raise found
    made: T = found
    return made


def end() -> None:
    """All of them."""
    _begun.clear()
    _ends.close()
