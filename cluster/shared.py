"""Format versions of data that one machine or version of Menagerie writes and another reads.

An additional field doesn't increase the version: readers ignore fields that they don't know. It increases only for changes that an
older Menagerie would misunderstand, or would lose when it writes; an older one then refuses, and doesn't overwrite the data. Data
without a version has version 1. Data that only programs on hosts write has none until there is a version 2: a changed program
replaces hosts. docs/explanation/shared-data.md lists all shared data.
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
"""Key of the version in a document."""
ANNOTATION = "menagerie.dev/version"
"""Annotation with the version of an API object whose data is a table, so no entry of it can be the version."""


class NewerDataError(RefusedError):
    """A newer Menagerie wrote the data, which wasn't changed."""

    code = "newer-data"

    def __init__(self, what: str, version: object, reads: int) -> None:
        super().__init__(
            f"{what} has version {str(version)[:40]}, but this checkout reads at most version {reads}: a newer Menagerie wrote it. "
            "Nothing was changed; use the checkout that wrote it, or a newer one"
        )


def check(what: str, version: object, reads: int = 1) -> None:
    """Check a version.

    what: name of the data in messages. version: as read, None if there is none.
    Errors: raises NewerDataError, also if it isn't a version.
    """
    if version is None or (str(version).isdecimal() and int(str(version)) <= reads):
        return
    raise NewerDataError(what, version, reads)


def readable(what: str, document: object, reads: int = 1) -> object:
    """Check the version of a document, if it is a mapping, and return it unchanged for a model to read."""
    if isinstance(document, Mapping):
        check(what, document.get(KEY), reads)
    return document


def from_known_fields(kind: type[T], document: Mapping[str, Any]) -> T:
    """Create a dataclass from the fields that it knows. Raises TypeError if a required one is missing."""
    names = {each.name for each in fields(kind)}
    return kind(**{name: value for name, value in document.items() if name in names})
