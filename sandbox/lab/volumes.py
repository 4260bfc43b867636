"""Disks that outlive hosts: plain folders of the machine, bound into the host that has the volume."""

from __future__ import annotations

from pathlib import Path

from sandbox.lab import disk, state


def path(name: str) -> Path:
    """The folder of a volume."""
    return state.folder("volumes", name)


def ensure(name: str) -> Path:
    """Make the volume if it is missing; returns its folder."""
    with state.space():
        path(name).mkdir(parents=True, exist_ok=True)
    return path(name)


def read(name: str) -> Path | None:
    """The volume's folder, None when it is gone."""
    return path(name) if path(name).is_dir() else None


def delete(name: str) -> None:
    """Delete the volume and what is on it. Its host must be gone."""
    disk.remove(path(name))
