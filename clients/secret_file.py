"""Keys as files, for libraries and programs that read keys only from files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class SecretFile:
    """A text as a file in memory (memfd_create(2)). It is on no disk and disappears with this process, even on a crash.

    `path` is valid for this process and for programs that it starts as the same user.
    """

    def __init__(self, text: str) -> None:
        self._descriptor = os.memfd_create("menagerie", os.MFD_CLOEXEC)
        os.fchmod(self._descriptor, 0o600)  # ssh refuses a key that others could read
        with os.fdopen(os.dup(self._descriptor), "w") as file:
            file.write(text)

    @property
    def path(self) -> Path:
        return Path(f"/proc/{os.getpid()}/fd/{self._descriptor}")

    def close(self) -> None:
        os.close(self._descriptor)


@contextmanager
def secret_files(*texts: str) -> Iterator[tuple[Path, ...]]:
    """Yield the texts as files for the length of a block."""
    files = [SecretFile(text) for text in texts]
    try:
        yield tuple(file.path for file in files)
    finally:
        for file in files:
            file.close()
