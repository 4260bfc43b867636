"""Remove every trace of a lab. All parts are found by name, so this works even when the state folder is lost."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from sandbox.lab import cgroups, limits, loops, mounts, networks, nspawn, state


@dataclass(frozen=True)
class Remains:
    """What a lab still has on this machine, by kind."""

    processes: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()
    disks: tuple[str, ...] = ()
    cgroups: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()

    def lines(self) -> tuple[str, ...]:
        """Return one readable line per item."""
        return tuple(f"{kind}: {item}" for kind, items in self.__dict__.items() for item in items)


def remains(lab: str) -> Remains:
    """Return everything that is left of a lab."""
    group = f"{cgroups.ROOT}/{lab}"
    folder = state.root() / lab
    return Remains(
        processes=tuple(str(pid) for pid in cgroups.members(group)),
        namespaces=networks.names(lab),
        links=networks.links(lab),
        mounts=tuple(str(path) for path in mounts.below(folder)),
        disks=tuple(str(device) for device in loops.below(folder)),
        cgroups=cgroups.groups(lab) or ((group,) if lab in cgroups.groups() else ()),
        folders=(*((str(folder),) if folder.exists() else ()), *nspawn.leftover_machines(networks.prefix(lab))),
    )


def labs() -> tuple[str, ...]:
    """Return the IDs of all labs that left anything on this machine."""
    ids = set(cgroups.groups())
    ids.update(name.split("-")[1] for name in networks.names())
    ids.update(name.split("-")[1] for name in networks.links())
    if state.root().is_dir():
        ids.update(entry.name for entry in state.root().iterdir() if entry.is_dir())
    return tuple(sorted(ids))


def lab(lab_id: str) -> None:
    """Remove a lab: processes first, then what they held. Do nothing when nothing is left."""
    group = f"{cgroups.ROOT}/{lab_id}"
    cgroups.kill(group)
    networks.remove_links(lab_id)
    for name in networks.names(lab_id):
        networks.remove_namespace(name)
    for machine in nspawn.leftover_machines(networks.prefix(lab_id)):
        nspawn.forget(machine)
    loops.remove(state.root() / lab_id)
    cgroups.remove(group)
    if not cgroups.groups():
        cgroups.remove(cgroups.ROOT)
        limits.restore()


def dead_labs() -> None:
    """Remove every lab that has no running process, and every lab whose checkout is gone."""
    for lab_id in labs():
        if not state.is_live(lab_id) or state.is_orphan(lab_id):
            lab(lab_id)


def everything() -> None:
    """Remove this checkout's lab and the remains of dead labs. Remove the folder of labs too when no lab is left.

    Live labs of other checkouts are left alone.
    """
    with state.locked():
        lab(state.lab_id())
        dead_labs()
    if not labs():
        shutil.rmtree(state.root(), ignore_errors=True)
