"""A lock for runs over a cluster's machines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stacks.errors import StackLockedError
from stacks.run_lock import BusyError, turn


@contextmanager
def alone(folder: Path, whose: str, doing: str) -> Iterator[None]:
    """Hold the lock for the length of a block.

    folder: the cluster's folder, which has its name; created if missing. whose: workers or machines. Raises StackLockedError
    while another run is `doing` the same.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with turn(folder / f"{whose}-turn"):
            yield
    except BusyError as error:
        raise StackLockedError(
            f"the {whose} of {folder.name} are being {doing} by another run: {error}; wait for it to end, or interrupt it"
        ) from None
