"""A new folder in memory for each run of ansible-runner, because the inventory in it contains a join token.

ansible-runner reads anything that an earlier run left in its private_data_dir, so none is used twice.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cluster.locks import locked

_PREFIX = "menagerie-run-"
_LOCK = "lock"
CONTROL = "cp"
"""Folder of the SSH control sockets. The name is short because a socket's full path may have 107 bytes."""


def memory_folder() -> Path:
    """Return a folder in memory, of this user or shared; the temporary folder if there is none."""
    candidates = [os.environ.get("XDG_RUNTIME_DIR", ""), "/dev/shm"]
    usable = [Path(path) for path in candidates if path and os.access(path, os.W_OK | os.X_OK)]
    return usable[0] if usable else Path(tempfile.gettempdir())


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """Create a new folder, 0700, and remove it afterwards with its SSH connections.

    First removes what killed runs have left.
    """
    parent = memory_folder()
    _remove_orphans(parent)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    with locked(folder / _LOCK):
        (folder / CONTROL).mkdir(mode=0o700)
        try:
            yield folder
        finally:
            _remove(folder)


def _remove_orphans(parent: Path) -> None:
    """Remove folders of dead runs: the kernel releases a lock with its process. A folder without the file is being created."""
    for path in parent.glob(f"{_PREFIX}*/{_LOCK}"):
        with contextlib.suppress(OSError), locked(path, busy=_in_use):
            _remove(path.parent)


def _in_use() -> None:
    raise BlockingIOError("its run is alive")


def _remove(folder: Path) -> None:
    for socket in (folder / CONTROL).glob("*"):
        # ControlPersist keeps the connection's process alive after the run. The host's name doesn't matter here.
        command = ["ssh", "-O", "exit", "-o", f"ControlPath={socket}", "any"]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    shutil.rmtree(folder, ignore_errors=True)
