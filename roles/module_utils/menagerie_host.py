"""What the modules of these roles share: files replaced in one step, and what a text says to the kernel."""

from __future__ import annotations

import grp
import os
import pwd
import tempfile
from typing import NamedTuple


class FileState(NamedTuple):
    """A file as it is, or as it shall be. `content` is None where there is no file."""

    content: bytes | None
    mode: int
    uid: int
    gid: int


ABSENT = FileState(None, 0, 0, 0)


def read(path: str) -> FileState:
    """The file at `path`, following no symbolic link: a link counts as no file and gets replaced."""
    if os.path.islink(path) or not os.path.exists(path):
        return ABSENT
    status = os.stat(path)
    with open(path, "rb") as handle:
        return FileState(handle.read(), status.st_mode & 0o7777, status.st_uid, status.st_gid)


def wanted(text: str, mode: str, owner: str) -> FileState:
    """`mode` is octal text ("0644"), `owner` is user:group. KeyError when the host has no such user."""
    user, _, group = owner.partition(":")
    return FileState(text.encode(), int(mode, 8), pwd.getpwnam(user).pw_uid, grp.getgrnam(group or user).gr_gid)


def place(path: str, state: FileState) -> None:
    """Write beside `path` and rename: a reader, or a power cut, sees the old file or the new one."""
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o755, exist_ok=True)
    handle, partial = tempfile.mkstemp(prefix=".menagerie-", dir=folder)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(state.content or b"")
            os.fchown(stream.fileno(), state.uid, state.gid)
            os.fchmod(stream.fileno(), state.mode)
            stream.flush()
            os.fsync(stream.fileno())
        os.rename(partial, path)
    except BaseException:
        os.unlink(partial)
        raise


def sysctls(text: str) -> dict[str, str]:
    """The settings of a sysctl.d(5) text: key -> value. A leading "-" on a key is dropped."""
    settings = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.lstrip().startswith(("#", ";")):
            settings[key.strip().lstrip("-")] = " ".join(value.split())
    return settings


def kernel_modules(text: str) -> list[str]:
    """The modules of a modules-load.d(5) text."""
    return [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith(("#", ";"))]
