"""Disks that outlive hosts: plain folders on the machine, bind-mounted into the host that has the volume."""

from __future__ import annotations

from pathlib import Path

from sandbox.lab import disk, state


def path(name: str) -> Path:
    """Return the folder of a volume."""
    return state.folder("volumes", name)


def ensure(name: str) -> Path:
    """Create the volume if it is missing; return its folder."""
    with state.space():
        path(name).mkdir(parents=True, exist_ok=True)
    return path(name)


def read(name: str) -> Path | None:
    """Return the volume's folder, None when it is missing."""
    return path(name) if path(name).is_dir() else None


def delete(name: str) -> None:
    """Delete the volume and its contents. Its host must be gone."""
    disk.remove(path(name))
