"""What is written by one machine or one version of Menagerie and read by another carries a version.

A field more does not raise it: who reads leaves out what he does not know. Only what an older Menagerie would misunderstand, or must
not lose when it writes, raises it; an older one then refuses, and writes nothing over it. What carries none is of version 1, and
where only programs on hosts write, none is written before there is a second: a changed program replaces hosts.
docs/how-to/state.md lists all that is shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from cluster.errors import RefusedError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    T = TypeVar("T", bound=DataclassInstance)

KEY = "version"
"""Of a document."""
ANNOTATION = "menagerie.dev/version"
"""Of an object of the API whose data is a table, so that no line of it is a version."""


class NewerDataError(RefusedError):
    """A newer Menagerie wrote it; it was not touched."""

    code = "newer-data"

    def __init__(self, what: str, found: object, reads: int) -> None:
        super().__init__(
            f"{what} is of version {str(found)[:40]}, and this checkout reads version {reads} at most: a newer Menagerie wrote it. "
            "It was left as it is; use the checkout of whoever wrote it, or a newer one"
        )


def check(what: str, found: object, reads: int = 1) -> None:
    """what: it is, to people. found: its version as it was read, None for none. NewerDataError, also for what is no version."""
    if found is None or (str(found).isdecimal() and int(str(found)) <= reads):
        return
    raise NewerDataError(what, found, reads)


def readable(what: str, document: object, reads: int = 1) -> object:
    """The document as it is, for a model that is about to read it: its version was checked, where it has a place for one."""
    if isinstance(document, Mapping):
        check(what, document.get(KEY), reads)
    return document


def known(kind: type[T], said: Mapping[str, Any]) -> T:
    """A dataclass of those of the fields that it has. TypeError where one is missing that it needs."""
    names = {each.name for each in fields(kind)}
    return kind(**{name: value for name, value in said.items() if name in names})
