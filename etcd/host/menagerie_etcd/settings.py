"""A host's settings for the backups of one etcd."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping

from .repository import Repository


@dataclass(frozen=True)
class Settings:
    """`members`: name -> client URL, in order. `member`: the one on this host. Times are in seconds, `keep` in hours.
    `pki`: folder of the member's certificates."""

    cluster: str
    role: str
    member: str
    members: Mapping[str, str]
    every: float
    drill: float
    keep: int
    pki: Path

    @property
    def name(self) -> str:
        """Return the name of the file in a snapshot."""
        return f"{self.role}.db"

    @classmethod
    def read(cls, file: Path) -> Settings:
        """Read the host's file, which `etcd.backups` writes."""
        known: dict[str, Any] = json.loads(file.read_text())
        known["pki"] = Path(known["pki"])
        return cls(**known)


@dataclass(frozen=True)
class Place:
    """Folders and files of one run, which systemd gives to a unit (systemd.exec(5): LoadCredential=,
    CacheDirectory=). `work`: for files of an etcd's size, empty between runs."""

    credentials: Path
    cache: Path

    @classmethod
    def of_unit(cls) -> Place:
        """Return the place of this unit. KeyError outside of a unit."""
        return cls(Path(os.environ["CREDENTIALS_DIRECTORY"]), Path(os.environ["CACHE_DIRECTORY"]))

    @property
    def work(self) -> Path:
        return self.cache / "work"

    def settings(self) -> Settings:
        return Settings.read(self.credentials / "backup.json")

    def repository(self) -> Repository:
        return Repository.read(self.credentials / "repository.json", self.cache / "restic")
