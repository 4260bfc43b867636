"""A fresh folder in memory for one run of ansible-runner: the inventory in it holds a join token.

ansible-runner reads whatever an earlier run left in its private_data_dir, so none is used twice.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "menagerie-run-"
_LOCK = "lock"
CONTROL = "cp"
"""Where the SSH control sockets are. Short: a socket's whole path may have 107 bytes."""


def memory_folder() -> Path:
    """A folder of this user or of everyone that lives in memory; the temporary folder where there is none."""
    candidates = [os.environ.get("XDG_RUNTIME_DIR", ""), "/dev/shm"]
    usable = [Path(path) for path in candidates if path and os.access(path, os.W_OK | os.X_OK)]
    return usable[0] if usable else Path(tempfile.gettempdir())


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """A new folder, 0700, removed afterwards with its SSH connections.

    What a run left that was killed is removed first.
    """
    parent = memory_folder()
    _remove_orphans(parent)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    with (folder / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (folder / CONTROL).mkdir(mode=0o700)
        try:
            yield folder
        finally:
            _remove(folder)


def _remove_orphans(parent: Path) -> None:
    """The kernel drops a lock with the process that held it. A folder without the file is being made."""
    for path in parent.glob(f"{_PREFIX}*/{_LOCK}"):
        with contextlib.suppress(OSError), path.open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(path.parent)


def _remove(folder: Path) -> None:
    for socket in (folder / CONTROL).glob("*"):
        # ControlPersist keeps the connection's process alive after the run; the host's name is not looked at.
        command = ["ssh", "-O", "exit", "-o", f"ControlPath={socket}", "any"]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    shutil.rmtree(folder, ignore_errors=True)
