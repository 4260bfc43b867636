"""Backups for the agent: writes the bytes of one to this host's disk."""

from __future__ import annotations

from pathlib import Path

from .programs import ProgramError
from .repository import Repository, RepositoryError
from .settings import Settings
from .system import Failure


class Backups:
    """`folder`: an etcd's settings on this host. Failure if it makes no backups."""

    def __init__(self, folder: Path) -> None:
        try:
            self._name = Settings.read(folder / "backup.json").name
            self._repository = Repository.read(folder / "repository.json")
        except FileNotFoundError:
            raise Failure(f"etcd {folder.name} has no backups on this host; give the snapshot as a file") from None

    def dump(self, snapshot_id: str, to: Path) -> None:
        try:
            self._repository.take(snapshot_id, self._name, to)
        except (RepositoryError, ProgramError) as error:
            raise Failure(str(error)) from None
