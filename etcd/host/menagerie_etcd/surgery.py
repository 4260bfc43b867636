"""Actions on a member on this host. Each is idempotent: after an interruption, repeat it with the same token.

They work inside the data folder, which is a separate file system if the provider made it one:

    member/                              etcd's own
    .menagerie/held                      while this file exists, the unit does not start, not even at a boot
    .menagerie/<token>/snapshot.part     the part that was received from an operator, or fetched
    .menagerie/<token>/snapshot.db       complete and verified
    .menagerie/<token>/data/member/      restored from it
    .menagerie/<token>/joining           from here on, `member` belongs to the new membership
    .menagerie/before-<token>/           the former `member`

etcd warns of a folder that it doesn't know, such as lost+found, and ignores it.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any, Callable, Protocol

from . import snapshots
from .agent_settings import Member
from .snapshots import Programs
from .system import Failure, own

TOKEN = re.compile(r"[a-z0-9][a-z0-9-]{3,62}")
JOIN_S = 60
KEPT = "before-"


class Units(Protocol):
    """systemd, or its substitute."""

    def is_active(self, unit: str) -> bool: ...
    def start(self, unit: str) -> None: ...
    def stop(self, unit: str) -> None: ...
    def run(self, unit: str, timeout_s: float) -> None: ...
    def said(self, unit: str) -> list[str]: ...
    def give(self, unit: str, words: str) -> None: ...


class Repository(Protocol):
    """A store of snapshots."""

    def dump(self, snapshot_id: str, to: Path) -> None: ...


class Surgery:
    """The actions on one member. All raise Failure; those with a `body` also KeyError and ValueError if it is wrong."""

    def __init__(
        self, member: Member, programs: Programs, units: Units, repository: Callable[[str], Repository]
    ) -> None:
        self.member = member
        self._programs, self._units, self._repository = programs, units, repository
        self._live = member.data_dir / "member"
        self.aside = member.data_dir / ".menagerie"

    def take(self, body: dict[str, Any]) -> dict[str, Any]:
        """{token, size, offset, piece: base64}: receive a piece of an operator's snapshot of `size` bytes.

        Returns {taken: bytes received so far}. Ignores a piece with another offset: clients continue from `taken`.
        """
        folder, size = self._folder(body), int(body["size"])
        part, piece = folder / "snapshot.part", _decoded(body["piece"])
        if (folder / "snapshot.db").exists():
            return {"taken": size}
        if part.exists() and part.stat().st_size > size:
            part.unlink()
        taken = part.stat().st_size if part.exists() else 0
        if taken == 0:
            snapshots.refuse_without_room(folder, size)
        if int(body["offset"]) == taken:
            with part.open("ab") as file:
                file.write(piece[: size - taken])
        return {"taken": part.stat().st_size if part.exists() else 0}

    def fetch(self, body: dict[str, Any]) -> dict[str, Any]:
        """{token, size, hash, revision; snapshot: an id in the repository}: fetch and verify a snapshot.

        Without `snapshot`, verify the one that was received.
        """
        folder = self._folder(body)
        path = folder / "snapshot.db"
        if not path.exists():
            part = self._part(folder, body)
            own(part, self._programs.user)
            try:
                snapshots.refuse_damage(part)
                snapshots.refuse_other(part, self._programs, body)
            except Failure:
                part.unlink()
                raise
            part.rename(path)
        return {"snapshot": snapshots.refuse_other(path, self._programs, body)}

    def _part(self, folder: Path, body: dict[str, Any]) -> Path:
        part, size = folder / "snapshot.part", int(body["size"])
        if "snapshot" in body:
            snapshots.refuse_without_room(folder, size)
            self._repository(self.member.role).dump(str(body["snapshot"]), part)
        taken = part.stat().st_size if part.exists() else 0
        if "snapshot" not in body and taken != size:
            raise Failure(f"{taken} of {size} bytes were received; send the others first")
        return part

    def prepare(self, body: dict[str, Any]) -> dict[str, Any]:
        """{token, initial_cluster, initial_cluster_token, bump_revision}: restore next to the folder in use."""
        folder = self._folder(body)
        data, snapshot = folder / "data", folder / "snapshot.db"
        owner = {
            "name": self.member.name,
            "initial-advertise-peer-urls": self.member.peer_url,
            "initial-cluster": str(body["initial_cluster"]),
            "initial-cluster-token": str(body["initial_cluster_token"]),
        }
        if not data.exists() and not self._kept(body).exists():
            if not snapshot.exists():
                raise Failure("nothing was fetched with the token {}; fetch first".format(body["token"]))
            snapshots.restore(snapshot, data, self._programs, owner, int(body["bump_revision"]))
        return {"prepared": str(data)}

    def stop(self, body: dict[str, Any]) -> dict[str, Any]:
        """{token}: stop the member, and keep it stopped until `start`, even if the host reboots."""
        self._folder(body)
        self._write(self.aside / "held", str(body["token"]))
        self._units.stop(self.member.unit)
        return {"active": False}

    def start(self, body: dict[str, Any]) -> dict[str, Any]:
        """{}: start the member. It may still wait for its peers when this returns."""
        held = self.aside / "held"
        if held.exists():
            held.unlink()
        self._units.start(self.member.unit)
        return {"active": self._units.is_active(self.member.unit)}

    def swap(self, body: dict[str, Any]) -> dict[str, Any]:
        """{token}: replace the folder in use with the prepared one, and set the former one aside."""
        prepared, kept = self._folder(body) / "data" / "member", self._kept(body)
        self._refuse_running()
        if prepared.exists():
            if self._live.exists():
                self._live.rename(kept)
            prepared.rename(self._live)
            _sync(self.member.data_dir, self.aside)
        elif not (self._live.exists() and (self.aside / str(body["token"]) / "data").exists()):
            raise Failure("nothing is prepared with the token {}; prepare first".format(body["token"]))
        return {"kept": str(kept) if kept.exists() else ""}

    def join(self, body: dict[str, Any]) -> dict[str, Any]:
        """{token, initial_cluster}: start without data, as a member that was just added to the cluster."""
        folder, kept = self._folder(body), self._kept(body)
        joining = folder / "joining"
        if not joining.exists():
            self.stop(body)
            if self._live.exists():
                self._live.rename(kept)
            self._write(joining, "")
            _sync(self.member.data_dir, self.aside, folder)
        if not self._has_data():
            words = "--initial-cluster-state=existing --initial-cluster={}".format(body["initial_cluster"])
            self._units.give(self.member.unit, words)
        self.start(body)
        try:
            self._wait_for_data()
        except Failure:
            self.stop(body)
            raise
        finally:
            # Only a member without data reads flags about the cluster.
            self._units.give(self.member.unit, "")
        return {"kept": str(kept) if kept.exists() else ""}

    def forget(self, body: dict[str, Any]) -> dict[str, Any]:
        """{token} or {older_than_s}: remove folders that were set aside, never those in use."""
        gone, ages = [], self.ages_aside()
        token = _token(body) if "token" in body else ""
        for path in self.kept_aside():
            age = ages[path.name]
            of_token = path.name in (token, KEPT + token)
            if of_token if token else age > float(body["older_than_s"]):
                shutil.rmtree(str(path))
                gone.append(path.name)
        return {"forgotten": gone}

    def backup(self, body: dict[str, Any]) -> dict[str, Any]:
        """{}: make a backup now."""
        self._units.run(self.member.backup_unit, snapshots.WORK_S)
        return {"done": True}

    def empty_snapshot(self, body: dict[str, Any]) -> dict[str, Any]:
        """{}: return a snapshot of an empty etcd."""
        return {"inline": base64.b64encode(snapshots.empty(self._programs)).decode()}

    def kept_aside(self) -> list[Path]:
        """Return the folders that were set aside, by name."""
        return sorted(path for path in self.aside.glob("*") if path.is_dir())

    def ages_aside(self) -> dict[str, float]:
        """Return {folder that was set aside: seconds since then}."""
        return {path.name: time.time() - path.stat().st_ctime for path in self.kept_aside()}  # a rename sets ctime

    def held(self) -> str:
        """Return the token with which the member was stopped, "" if it was not."""
        path = self.aside / "held"
        return path.read_text().strip() if path.exists() else ""

    def _folder(self, body: dict[str, Any]) -> Path:
        for path in (self.aside, self.aside / _token(body)):
            if not path.is_dir():
                path.mkdir(mode=0o700)
                own(path, self._programs.user)
        return path

    def _kept(self, body: dict[str, Any]) -> Path:
        return self.aside / (KEPT + _token(body))

    def _refuse_running(self) -> None:
        if self._units.is_active(self.member.unit):
            raise Failure(f"{self.member.unit} is running; stop it first")

    def _has_data(self) -> bool:
        return any(self._live.glob("wal/*.wal"))

    def _wait_for_data(self) -> None:
        end = time.monotonic() + JOIN_S
        while not self._has_data():
            if time.monotonic() > end:
                raise Failure(
                    f"{self.member.name} has not joined within {JOIN_S} s: journalctl -u {self.member.unit} on its host says why"
                )
            time.sleep(0.1)

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text)
        own(path, self._programs.user)


def _token(body: dict[str, Any]) -> str:
    token = str(body["token"])
    if not TOKEN.fullmatch(token) or token.startswith(KEPT):
        raise ValueError(f"token {token!r} is not made of lowercase letters, digits and hyphens")
    return token


def _decoded(text: Any) -> bytes:
    try:
        return base64.b64decode(str(text), validate=True)
    except binascii.Error:
        raise ValueError("the piece is not base64") from None


def _sync(*folders: Path) -> None:
    """Flush renames to the disk."""
    for folder in folders:
        descriptor = os.open(str(folder), os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
