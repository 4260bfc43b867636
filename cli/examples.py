"""The examples at the end of help pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Verb = TypeVar("_Verb", bound=Callable[..., Any])
_ALIGNED = 36
"""Descriptions of examples are aligned, except after a command longer than this."""
EPILOGS: dict[Callable[..., Any], str] = {}
"""Verb -> the end of its help page."""


def examples(*pairs: tuple[str, str], more: str = "") -> Callable[[_Verb], _Verb]:
    """Add examples to the end of a verb's help page: pairs of a command and what it does."""

    def add(verb: _Verb) -> _Verb:
        EPILOGS[verb] = table(*pairs) + more
        return verb

    return add


def table(*pairs: tuple[str, str]) -> str:
    """Format examples; see `examples`."""
    width = max((len(command) for command, _ in pairs if len(command) <= _ALIGNED), default=0)
    lines = [f"./menagerie {command:<{width}}  {what}".rstrip() for command, what in pairs]
    return "\n".join(["[bold]Examples[/]", *(line.replace("[", "\\[") for line in lines)])
