"""Overlay and tmpfs mounts below the lab's folder."""

from __future__ import annotations

from pathlib import Path

from sandbox.lab import shell


def below(folder: Path, mounts: Path = Path("/proc/self/mounts")) -> tuple[Path, ...]:
    """Return the mount points at or below `folder`, the last mounted first."""
    mount_points = []
    for line in mounts.read_text().splitlines():
        # A space in a path is written as \040.
        mount_point = Path(line.split()[1].replace("\\040", " "))
        if mount_point == folder or folder in mount_point.parents:
            mount_points.append(mount_point)
    return tuple(reversed(mount_points))


def overlay(lower: Path, upper: Path, work: Path, target: Path) -> None:
    """Mount `target`: `lower` with changes kept in `upper`. Creates all folders except `lower`, which must exist."""
    for folder in (upper, work, target):
        folder.mkdir(parents=True, exist_ok=True)
    options = f"lowerdir={_escaped(lower)},upperdir={_escaped(upper)},workdir={_escaped(work)}"
    shell.run("mount", "-t", "overlay", "lab", "-o", options, str(target))


def private_memory(target: Path) -> None:
    """Mount a tmpfs at `target` that only root can read, unless there is one."""
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    if target not in below(target):
        shell.run("mount", "-t", "tmpfs", "-o", "mode=0700,size=32m,nosuid,nodev,noexec", "lab", str(target))


def remove(folder: Path) -> None:
    """Unmount everything at or below `folder`."""
    for target in below(folder):
        shell.run("umount", "--lazy", str(target))


def _escaped(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")
