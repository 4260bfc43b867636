"""Write files and folders atomically, and name the folder whose disk is full."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.lab import mounts
from sandbox.lab.errors import LabError


@contextmanager
def whole(target: Path) -> Iterator[Path]:
    """Yield a path next to `target` for a new file or folder.

    It replaces target at the end of the block, and is removed when the block fails. Leftovers of a killed process at that
    path are removed first, so two processes must not write the same target at the same time.
    """
    fresh = target.with_name(f".{target.name}.new")
    target.parent.mkdir(parents=True, exist_ok=True)
    remove(fresh)
    try:
        yield fresh
        fresh.replace(target)
    except BaseException:
        remove(fresh)
        raise


def remove(path: Path) -> None:
    """Remove a file, or a folder with everything mounted inside. Do nothing when it is gone."""
    if path.is_dir() and not path.is_symlink():
        mounts.remove(path)
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def space(folder: Path, way_out: str) -> Iterator[None]:
    """Raise LabError when a block that writes into `folder` fills its disk or quota. way_out: what can be removed."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise LabError(
            f"no space is left on the disk of {folder}; free some, then run the same command again. {way_out}"
        ) from error
