"""What the lab writes: there whole or not at all, and a full disk is told with its folder."""

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
    """A path beside `target` to make a file or a folder at.

    It takes target's place at the end of the block, and is removed when the block fails. What a killed
    process left there goes first, so no two may make one target at a time.
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
    """Remove a file, or a folder with what is mounted inside. Nothing happens when it is gone."""
    if path.is_dir() and not path.is_symlink():
        mounts.remove(path)
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def space(folder: Path, way_out: str) -> Iterator[None]:
    """For what writes into `folder`: LabError with `way_out`, what may be removed, when its disk or quota is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise LabError(
            f"no space is left on the disk of {folder}; free some, then run the same command again. {way_out}"
        ) from error
