"""A restic repository: list, store and read snapshots.

restic encrypts and authenticates every byte, stores data that snapshots share once, and names objects by SHA-256.
Exit codes are restic's own ("Scripting", restic's documentation).
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Mapping, Sequence

from .programs import ProgramError, run

_NO_REPOSITORY, _LOCKED, _WRONG_PASSWORD = 10, 11, 12
_WAYS_OUT = {
    _NO_REPOSITORY: "there is no repository at {url}: no backup was ever made there, or it is the wrong place",
    _LOCKED: "another run holds {url} ({said}); locks of killed runs are removed once they are 30 minutes old",
    _WRONG_PASSWORD: "the password is not that of {url}",
}


class RepositoryError(Exception):
    """restic failed; the text says at which repository and why."""


@dataclass(frozen=True)
class Snapshot:
    """`time`: in seconds since 1970. `tags`: what was recorded, name -> value."""

    id: str
    time: float
    tags: Mapping[str, str]

    @property
    def kind(self) -> str:
        """``backup`` or ``drill``."""
        return self.tags.get("kind", "")


@dataclass(frozen=True)
class Repository:
    """`url` as restic's -r takes it. `environment`: credentials and other variables that the bucket needs.
    `cache`: where restic keeps its indexes between runs; None for nowhere."""

    url: str
    password: str = field(repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    program: str = "restic"
    cache: Path | None = None

    @classmethod
    def read(cls, file: Path, cache: Path | None = None) -> Repository:
        """Read a host's secret: JSON with url, password and environment."""
        known = json.loads(file.read_text())
        return cls(known["url"], known["password"], known["environment"], cache=cache)

    def ensure(self) -> None:
        """Create the repository unless it exists, and remove stale locks.

        Two runs that both create it could leave a key that does not open its configuration. So only the member whose
        turn it is may.
        """
        if not self.exists():
            self._run("init")
            if not self.exists():
                raise RepositoryError(f"{self.url} was created but is not there")
        self.unlock()

    def unlock(self) -> None:
        """Remove locks of dead processes of this host, and all locks that are 30 minutes old."""
        self._run("unlock")

    def exists(self) -> bool:
        """Return whether a repository exists. RepositoryError if the password does not open it."""
        try:
            self._run("cat", "config", "--no-lock")
        except RepositoryError as error:
            cause = error.__cause__
            if isinstance(cause, ProgramError) and cause.returncode == _NO_REPOSITORY:
                return False
            raise
        return True

    def snapshots(self, kind: str = "") -> tuple[Snapshot, ...]:
        """Return all snapshots, or those of a kind, newest first. It takes no lock, so it never waits."""
        listing = json.loads(self._run("snapshots", "--json", "--no-lock", *([f"--tag=kind={kind}"] if kind else [])))
        read = (Snapshot(each["id"], _seconds(each["time"]), _pairs(each.get("tags") or ())) for each in listing or ())
        return tuple(sorted(read, key=lambda snapshot: snapshot.time, reverse=True))

    def put(self, source: Path, name: str, tags: Mapping[str, str]) -> str:
        """Store a file as `name`; return the snapshot's id. Commas in tags become semicolons: restic splits there."""
        words = [f"--tag={key}={str(value).replace(',', ';')}" for key, value in tags.items()]
        with source.open("rb") as file:
            said = self._run("backup", "--json", "--stdin", f"--stdin-filename={name}", *words, stdin=file)
        summary: dict[str, Any] = json.loads(said.splitlines()[-1])
        return str(summary["snapshot_id"])

    def take(self, snapshot: str, name: str, target: Path) -> None:
        """Write the bytes stored as `name` to `target`. RepositoryError if any of them changed."""
        with target.open("wb") as file:
            self._run("dump", "--no-lock", snapshot, f"/{name}", stdout=file)

    def forget(self, hours: int) -> None:
        """Drop snapshots that are `hours` older than the newest of their kind. Without new snapshots, none are dropped.
        Their data stays until `prune`."""
        for kind in ("backup", "drill"):
            self._run("forget", f"--tag=kind={kind}", "--group-by=", f"--keep-within={hours}h", "--quiet")

    def prune(self) -> None:
        """Delete data that no snapshot uses. Nothing else can use the repository meanwhile."""
        self._run("prune", "--quiet")

    def check(self, share: str = "5%") -> None:
        """RepositoryError unless all data of snapshots exists, and a random share of it is intact."""
        self._run("check", f"--read-data-subset={share}", "--quiet")

    def _run(self, *words: str, **streams: Any) -> str:
        own = {"RESTIC_REPOSITORY": self.url, "RESTIC_PASSWORD": self.password}
        if "HOME" in os.environ:
            own["HOME"] = os.environ["HOME"]  # where an operator's own credentials are
        cache = [f"--cache-dir={self.cache}"] if self.cache else ["--no-cache"]
        try:
            return run([self.program, *cache, "--retry-lock=5m", *words], {**own, **self.environment}, **streams)
        except ProgramError as error:
            way = _WAYS_OUT.get(error.returncode, "{url}: restic {what}: {said}")
            raise RepositoryError(way.format(url=self.url, what=words[0], said=_plain(error.said))) from error


def _pairs(tags: Sequence[str]) -> dict[str, str]:
    return dict(tag.split("=", 1) for tag in tags if "=" in tag)


def _plain(said: str) -> str:
    """Return restic's message; with --json, the last line is an object."""
    last = said.splitlines()[-1] if said else ""
    try:
        return str(json.loads(last)["message"])
    except (ValueError, KeyError, TypeError):
        return said


def _seconds(text: str) -> float:
    """Parse restic's time, 2026-08-30T12:00:00.123456789Z: nine digits, while Python 3.10 takes six."""
    moment, zone = text[:19], text[19:].lstrip(".0123456789")
    offset = datetime.strptime(zone.replace(":", ""), "%z").tzinfo if zone != "Z" else timezone.utc
    return datetime.strptime(moment, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=offset).timestamp()
