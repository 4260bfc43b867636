"""Text files of a host, each replaced atomically."""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import re
import tempfile
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from . import Refused, run

BEGIN, END = "# BEGIN menagerie", "# END menagerie"


class FileState(NamedTuple):
    """A file's current or desired state. `content` is None without a file."""

    content: bytes | None
    mode: int
    uid: int
    gid: int


ABSENT = FileState(None, 0, 0, 0)


class Change(NamedTuple):
    """A file that differs from its desired state."""

    path: str
    before: FileState
    after: FileState
    validate: tuple[str, ...] = ()
    """A command that must succeed before the file is placed; %s in it is a copy."""


def read(path: str) -> FileState:
    """Return the file at `path`. A symbolic link counts as no file and gets replaced."""
    if os.path.islink(path) or not os.path.exists(path):
        return ABSENT
    status = os.stat(path)
    with open(path, "rb") as handle:
        return FileState(handle.read(), status.st_mode & 0o7777, status.st_uid, status.st_gid)


def desired(text: str, mode: str, owner: str) -> FileState:
    """`mode` is octal text ("0644"), `owner` is user:group. Refused if the host has no such user."""
    user, _, group = owner.partition(":")
    try:
        return FileState(
            text.encode(errors="surrogateescape"),
            int(mode, 8),
            pwd.getpwnam(user).pw_uid,
            grp.getgrnam(group or user).gr_gid,
        )
    except KeyError as error:
        raise Refused(f"this host has no owner {owner}: {error.args[0]}") from None


def with_block(content: str, text: str) -> str:
    """Return `content` with `text` as our block at its head, in place of an earlier block."""
    rest = re.sub(rf"^{BEGIN}\n.*?^{END}\n", "", content, flags=re.MULTILINE | re.DOTALL)
    return f"{BEGIN}\n{text.rstrip()}\n{END}\n{rest}"


def changes(files: list[dict[str, Any]], absent: list[str]) -> list[Change]:
    """Return every file that differs; files to remove come last."""
    candidates = []
    for entry in files:
        before = read(entry["path"])
        text = entry["text"]
        if entry["block"]:
            text = with_block((before.content or b"").decode(errors="surrogateescape"), text)
        after = desired(text, entry["mode"], entry["owner"])
        candidates.append(Change(entry["path"], before, after, tuple(entry.get("validate", ()))))
    candidates += [Change(path, read(path), ABSENT) for path in absent]
    return [change for change in candidates if change.before != change.after]


def apply(pending: list[Change]) -> None:
    for path, _, after, validate in pending:
        try:
            if after is ABSENT:
                os.unlink(path)
            else:
                place(path, after, validate)
        except OSError as error:
            raise Refused(f"{path} can't be written: {error.strerror}") from None


def place(path: str, state: FileState, validate: tuple[str, ...] = ()) -> None:
    if validate:
        with tempfile.NamedTemporaryFile(prefix="menagerie-") as copy:
            copy.write(state.content or b"")
            copy.flush()
            run([word.replace("%s", copy.name) for word in validate], f"{path} was not changed")
    with replacing(path, state.mode) as stream:
        stream.write(state.content or b"")
        os.fchown(stream.fileno(), state.uid, state.gid)


@contextlib.contextmanager
def replacing(path: str, mode: int) -> Iterator[IO[bytes]]:
    """Yield a file to write, which replaces `path` at the end of the block.

    A reader, or a power cut, sees the old file or the new one; a running program keeps its old file.
    """
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o755, exist_ok=True)
    handle, partial = tempfile.mkstemp(prefix=".menagerie-", dir=folder)
    try:
        with os.fdopen(handle, "w+b") as stream:
            yield stream
            os.fchmod(stream.fileno(), mode)
            stream.flush()
            os.fsync(stream.fileno())
        os.rename(partial, path)
    except BaseException:
        os.unlink(partial)
        raise


def difference(change: Change) -> dict[str, str]:
    """Return a change for Ansible's --diff."""
    return {
        "before_header": _described(change.path, change.before),
        "after_header": _described(change.path, change.after),
        "before": (change.before.content or b"").decode(errors="replace"),
        "after": (change.after.content or b"").decode(errors="replace"),
    }


def _described(path: str, state: FileState) -> str:
    return f"{path} (absent)" if state.content is None else f"{path} ({state.mode:04o} {state.uid}:{state.gid})"
