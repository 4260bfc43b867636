"""STO-001 to STO-003: volumes of pods in the region."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.check.catalogue import of_cloud, unless_newer
from cluster.check.finding import Finding, Rule, Subject
from cluster.disks import takes
from cluster.document import Where
from cluster.fields import did_you_mean, near
from cluster.storage import block_disk, has_block, has_gpus, region_pools

_STORAGE: Where = ("storage",)
_CONTROLLERS: Where = (*_STORAGE, "controllers")
_DISK: Where = (*_STORAGE, "block_disk")
_LOCAL = "local-nvme"
_ASKED = ("file", "block_disk", "controllers", "retain", "block")
"""What somebody writes who wants volumes, in the order in which it is told."""


def pool_of_controllers(subject: Subject) -> Iterator[Finding]:
    """Controllers run on workers in the region, whose identity alone may make volumes."""
    spec, name = subject.spec, subject.spec.storage.controllers
    there = region_pools(spec)
    if name is None or not there:
        return
    also: tuple[Where, ...] = (("pools", name),)
    pool, hint = spec.pools.get(name), f"write {' or '.join(there)}, or leave it out"
    if pool is None:
        message = f"storage.controllers names {name}, which is no pool{did_you_mean(name, there)}"
    elif pool.site is not None:
        message = f"storage.controllers names {name}, whose machines are at site {pool.site}: no identity of the cloud reaches them"
    elif not pool.max:
        message = f"storage.controllers names {name}, which never has a machine; no volume would be made"
        hint = f"give pools.{name} a max, or {hint}"
    elif of_cloud(subject) and has_gpus(spec, pool):
        message = f"storage.controllers names {name}, whose machines have GPUs; a few small processes need none"
        others = [each for each in there if not has_gpus(spec, there[each])]
        hint = f"write {others[0]}" if others else "add a pool of small machines without GPUs"
        yield Finding(_CONTROLLERS, message, hint, also=also, severity="warning")
        return
    else:
        return
    yield Finding(_CONTROLLERS, message, hint, also=also)


def known_disk(subject: Subject) -> Iterator[Finding]:
    """A kind of disk that the cloud makes, and that it can attach to the machines in the region."""
    kind, facts, cloud = subject.spec.storage.block_disk, of_cloud(subject), subject.spec.control_plane.cloud
    if facts is None:
        return
    also: tuple[Where, ...] = (("control_plane", "cloud"),)
    network = [each for each in facts.disks if each != _LOCAL]
    if kind == _LOCAL:
        message = "storage.block_disk local-nvme stays with its machine; a volume goes where its pod goes"
        yield Finding(_DISK, message, f"write one of {', '.join(network)}", also=also)
    elif kind is not None and kind not in network:
        message = f"storage.block_disk {kind} isn't a kind of disk that {cloud} has{did_you_mean(kind, network)}"
        hint = unless_newer(f"write {(near(kind, network) or network)[0]}", facts)
        yield Finding(_DISK, message, hint, also=also, unknown=True)
    elif has_block(subject.spec):
        yield from _attached(subject, block_disk(subject.spec))


def _attached(subject: Subject, kind: str) -> Iterator[Finding]:
    for name, pool in region_pools(subject.spec).items():
        if pool.machine and not takes(subject.spec.control_plane.cloud, pool.machine, kind):
            message = (
                f"pools.{name}: {pool.machine} takes no {kind}; no volume of the class block can be attached there"
            )
            hint = "write a storage.block_disk that all machines in the region take, or storage.block: false"
            where: Where = ("pools", name, "machine")
            yield Finding(where, message, hint, also=(_DISK, (*_STORAGE, "block")), severity="warning")


def somebody_to_mount(subject: Subject) -> Iterator[Finding]:
    """Drivers are the cloud's, and run on its machines."""
    spec, lab = subject.spec, subject.cluster.is_lab
    asked = [key for key in _ASKED if key in spec.storage.model_fields_set and getattr(spec.storage, key)]
    if not asked or (region_pools(spec) and not lab):
        return
    why = "a lab has no cloud to make volumes" if lab else "there is no worker in the region to mount volumes"
    message = f"storage.{asked[0]} is asked for, and {why}"
    hint = "leave storage out" if lab else "add a pool in the region, or leave storage out"
    yield Finding((*_STORAGE, asked[0]), message, hint, also=(("control_plane", "cloud"),))


RULES: tuple[tuple[str, Rule], ...] = (
    ("STO-001", pool_of_controllers),
    ("STO-002", known_disk),
    ("STO-003", somebody_to_mount),
)
