"""What the clouds' stores for secrets and payloads have in common, as hosts and stacks see them."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar


def bundle_name(reader: str) -> str:
    """The one value that holds all secrets of a reader: a JSON object, name -> text."""
    return f"secrets-{reader}"


class CloudStore(ABC):
    """See `components.userdata.stores`. A cloud's adapter says where its program is and how the store spells names.

    A store holds payloads and the join token by name, all else in bundles. reader: whose bundle hosts with this program
    read, and so which identity they have. cloud: its name for people. plain, stored: what stands in our names, and what the store takes in its place.
    allowed: what a whole name must match.
    """

    reader: str
    cloud: ClassVar[str]
    program: ClassVar[Path]
    plain: ClassVar[str]
    stored: ClassVar[str]
    allowed: ClassVar[re.Pattern[str]]

    def stored_name(self, name: str) -> str:
        """`name` in the store. Raises ValueError if it can't be one, or would be another's as well."""
        stored = self._prefix() + name.replace(self.plain, self.stored)
        if not self.allowed.fullmatch(stored) or self.plain_name(stored) != name:
            raise ValueError(f"{name!r} can't be the name of a secret of {self.cloud}")
        return stored

    def plain_name(self, stored: str) -> str:
        """The inverse of `stored_name`."""
        return stored.removeprefix(self._prefix()).replace(self.stored, self.plain)

    def script(self) -> str:
        """The text of the cloud's program with everything filled in."""
        text = self.program.read_text()
        names = {"NAME_OLD": self.plain, "NAME_NEW": self.stored, "BUNDLE_NAME": bundle_name(self.reader)}
        for placeholder, value in {**self._values(), **names}.items():
            text = text.replace(placeholder, value)
        return text

    @abstractmethod
    def _prefix(self) -> str:
        """What every name of the cluster begins with in the store."""

    @abstractmethod
    def _values(self) -> Mapping[str, str]:
        """Placeholder in the program -> value, but for the spelling of names."""
