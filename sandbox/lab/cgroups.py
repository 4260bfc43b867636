"""One control group per process tree of the lab. The lab finds its processes by their group.

A group has the same path in every hierarchy: ``menagerie-lab/<lab>/<name>``. Group membership is the only record of
running processes, so no process ID in a file can be stale or belong to another process.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from cluster.waiting import poll, retry
from sandbox.lab.errors import LabError

ROOT = "menagerie-lab"
_CGROUP_TYPES = ("cgroup", "cgroup2")


def hierarchies(mounts: Path = Path("/proc/self/mounts")) -> tuple[Path, ...]:
    """Return the mount points of all cgroup hierarchies, versions 1 and 2."""
    mount_points = []
    for line in mounts.read_text().splitlines():
        _, mount_point, kind, *_ = line.split()
        if kind in _CGROUP_TYPES:
            mount_points.append(Path(mount_point))
    return tuple(mount_points)


def path(lab: str, name: str) -> str:
    """Return the group's path below each hierarchy."""
    return f"{ROOT}/{lab}/{name}"


def create(group: str, memory_bytes: int | None = None) -> tuple[Path, ...]:
    """Create the group in every hierarchy; return the ``cgroup.procs`` files to which process IDs are written.

    memory_bytes: memory limit for all processes of the group together.
    """
    joins = []
    for hierarchy in hierarchies():
        folder = hierarchy
        for part in group.split("/"):
            _delegate(folder)
            folder = folder / part
            folder.mkdir(exist_ok=True)
            _copy_cpuset(folder)
        joins.append(folder / "cgroup.procs")
        if memory_bytes is not None:
            _limit_memory(folder, memory_bytes)
    if not joins:
        raise LabError("no cgroup hierarchy is mounted; mount /sys/fs/cgroup")
    return tuple(joins)


def members(group: str) -> tuple[int, ...]:
    """Return the process IDs in the group and in the groups below it, sorted."""
    pids: set[int] = set()
    for hierarchy in hierarchies():
        for folder in _tree(hierarchy / group):
            pids.update(_read_members(folder))
    return tuple(sorted(pids))


def kill(group: str, seconds: float = 20) -> None:
    """Send SIGKILL to every member until none is left. Raises LabError when any survive `seconds`."""
    pids: tuple[int, ...] = ()

    def is_empty() -> bool:
        nonlocal pids
        pids = members(group)
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not pids

    if not poll(is_empty, seconds, 0.02):
        raise LabError(f"processes {', '.join(map(str, pids))} of {group} cannot be killed; look at /proc/<id>/stack")


def remove(group: str) -> None:
    """Remove the empty group from every hierarchy, deepest first. Do nothing when it is gone."""
    for hierarchy in hierarchies():
        for folder in reversed(list(_tree(hierarchy / group))):
            _rmdir(folder)


def groups(lab: str | None = None) -> tuple[str, ...]:
    """Return the labs that have a group on this machine or, with `lab`, the groups inside that lab."""
    names: set[str] = set()
    for hierarchy in hierarchies():
        folder = hierarchy / ROOT / (lab or "")
        if folder.is_dir():
            names.update(entry.name for entry in folder.iterdir() if entry.is_dir())
    return tuple(sorted(names))


def memory(group: str) -> int:
    """Return the bytes that the group uses without the page cache, 0 when the kernel does not report it."""
    for hierarchy in hierarchies():
        file = hierarchy / group / "memory.stat"
        if file.exists():
            stat = dict(line.split() for line in file.read_text().splitlines())
            return int(stat.get("total_rss", stat.get("anon", 0)))
    return 0


def _tree(folder: Path) -> Iterator[Path]:
    for current, _, _ in os.walk(folder):
        yield Path(current)


def _read_members(folder: Path) -> list[int]:
    try:
        return [pid for pid in map(int, (folder / "cgroup.procs").read_text().split()) if pid > 0]
    # EOPNOTSUPP: a threaded group of version 2 has no process list.
    except OSError:
        return []


def _rmdir(folder: Path, seconds: float = 5) -> None:
    # The kernel returns EBUSY for a moment after the last member has exited.
    def remove_one() -> None:
        with suppress(FileNotFoundError):
            folder.rmdir()

    retry(remove_one, OSError, seconds, 0.02)


def _copy_cpuset(folder: Path) -> None:
    # In version 1 a new cpuset is empty, and an empty cpuset accepts no processes.
    for name in ("cpuset.cpus", "cpuset.mems"):
        file = folder / name
        if file.exists() and not (folder / "cgroup.controllers").exists() and not file.read_text().strip():
            file.write_text((folder.parent / name).read_text())


def _delegate(folder: Path) -> None:
    # In version 2 a group has only the controllers that its parent delegates.
    available = folder / "cgroup.controllers"
    for name in available.read_text().split() if available.exists() else ():
        # A controller that is in use elsewhere on the machine cannot be delegated.
        with suppress(OSError):
            (folder / "cgroup.subtree_control").write_text(f"+{name}")


def _limit_memory(folder: Path, memory_bytes: int) -> None:
    for name in ("memory.limit_in_bytes", "memory.max"):
        if (folder / name).exists():
            (folder / name).write_text(str(memory_bytes))
