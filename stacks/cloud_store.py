"""What the clouds' stores for secrets and payloads have in common, for hosts and stacks."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

API_SERVERS, WORKERS = "api-servers", "workers"
"""Readers; the reader of an etcd host is the host's name."""


def bundle_name(reader: str) -> str:
    """Return the name of the one value that holds all secrets of a reader: a JSON object, name -> text."""
    return f"secrets-{reader}"


class CloudStore(ABC):
    """See `components.userdata.stores`. A cloud's adapter names its program and defines how the store spells names.

    A store holds payloads and the join token by name, everything else in bundles. reader: whose bundle the hosts with this
    program read, and so which identity they have. cloud: its name for people. plain, stored: a text in our names, and the
    text that replaces it in the store. allowed: what a whole name must match.
    """

    reader: str
    cloud: ClassVar[str]
    program: ClassVar[Path]
    plain: ClassVar[str]
    stored: ClassVar[str]
    allowed: ClassVar[re.Pattern[str]]

    def stored_name(self, name: str) -> str:
        """Return `name` as the store spells it. Raises ValueError if that is not allowed or not unique."""
        stored = self._prefix() + name.replace(self.plain, self.stored)
        if not self.allowed.fullmatch(stored) or self.plain_name(stored) != name:
            raise ValueError(f"{name!r} can't be the name of a secret of {self.cloud}")
        return stored

    def plain_name(self, stored: str) -> str:
        """Return the inverse of `stored_name`."""
        return stored.removeprefix(self._prefix()).replace(self.stored, self.plain)

    def script(self) -> str:
        """Return the text of the cloud's program with all placeholders filled in."""
        text = self.program.read_text()
        names = {"NAME_OLD": self.plain, "NAME_NEW": self.stored, "BUNDLE_NAME": bundle_name(self.reader)}
        for placeholder, value in {**self._values(), **names}.items():
            text = text.replace(placeholder, value)
        return text

    @abstractmethod
    def _prefix(self) -> str:
        """Return the prefix of all names of the cluster in the store."""

    @abstractmethod
    def _values(self) -> Mapping[str, str]:
        """Return placeholder in the program -> value, except those for the spelling of names."""
