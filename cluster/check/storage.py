"""STO-001 to STO-003: volumes for pods in the region."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.check.catalogue import of_cloud, unless_newer
from cluster.check.finding import Finding, Rule, Subject
from cluster.disks import takes
from cluster.document import Where
from cluster.fields import did_you_mean, near
from cluster.storage import block_disk, has_block, has_gpus, usable_pools

_STORAGE: Where = ("storage",)
_CONTROLLERS: Where = (*_STORAGE, "controllers")
_DISK: Where = (*_STORAGE, "block_disk")
_LOCAL = "local-nvme"
_ASKED = ("file", "block_disk", "controllers", "retain", "block")
"""Settings that ask for volumes. The first one set is reported."""


def pool_of_controllers(subject: Subject) -> Iterator[Finding]:
    """Storage controllers run on workers in the region: only their cloud identity may create volumes."""
    spec, name = subject.spec, subject.spec.storage.controllers
    candidates = usable_pools(spec)
    if name is None or not candidates:
        return
    also: tuple[Where, ...] = (("pools", name),)
    pool, hint = spec.pools.get(name), f"write {' or '.join(candidates)}, or leave it out"
    if pool is None:
        message = f"storage.controllers names {name}, which isn't a pool{did_you_mean(name, candidates)}"
    elif pool.site is not None:
        message = f"storage.controllers names {name}, whose machines are at site {pool.site} and have no identity in the cloud"
    elif not pool.max:
        message = f"storage.controllers names {name}, which never has a machine, so no volume would be created"
        hint = f"give pools.{name} a max, or {hint}"
    elif of_cloud(subject) and has_gpus(spec, pool):
        message = f"storage.controllers names {name}, whose machines have GPUs; the controllers are a few small processes that need none"
        others = [candidate for candidate in candidates if not has_gpus(spec, candidates[candidate])]
        hint = f"write {others[0]}" if others else "add a pool of small machines without GPUs"
        yield Finding(_CONTROLLERS, message, hint, also=also, severity="warning")
        return
    else:
        return
    yield Finding(_CONTROLLERS, message, hint, also=also)


def known_disk(subject: Subject) -> Iterator[Finding]:
    """The cloud has this kind of disk, and can attach it to the machines in the region."""
    kind, facts, cloud = subject.spec.storage.block_disk, of_cloud(subject), subject.spec.control_plane.cloud
    if facts is None:
        return
    also: tuple[Where, ...] = (("control_plane", "cloud"),)
    network = [disk for disk in facts.disks if disk != _LOCAL]
    if kind == _LOCAL:
        message = "storage.block_disk local-nvme can't leave its machine, but a volume must follow its pod"
        yield Finding(_DISK, message, f"write one of {', '.join(network)}", also=also)
    elif kind is not None and kind not in network:
        message = f"storage.block_disk {kind} isn't a kind of disk that {cloud} has{did_you_mean(kind, network)}"
        hint = unless_newer(f"write {(near(kind, network) or network)[0]}", facts)
        yield Finding(_DISK, message, hint, also=also, unknown=True)
    elif has_block(subject.spec):
        yield from _attached(subject, block_disk(subject.spec))


def _attached(subject: Subject, kind: str) -> Iterator[Finding]:
    for name, pool in usable_pools(subject.spec).items():
        if pool.machine and not takes(subject.spec.control_plane.cloud, pool.machine, kind):
            message = f"pools.{name}: {kind} can't be attached to {pool.machine}, so its pods can't use volumes of class block"
            hint = "write a storage.block_disk that works with all machine types in the region, or storage.block: false"
            where: Where = ("pools", name, "machine")
            yield Finding(where, message, hint, also=(_DISK, (*_STORAGE, "block")), severity="warning")


def workers_in_the_region(subject: Subject) -> Iterator[Finding]:
    """Storage is only for clusters with workers in the region: its drivers are the cloud's and run there."""
    spec, lab = subject.spec, subject.cluster.is_lab
    settings = [key for key in _ASKED if key in spec.storage.model_fields_set and getattr(spec.storage, key)]
    if not settings or (usable_pools(spec) and not lab):
        return
    why = "a lab has no cloud that creates volumes" if lab else "there is no worker in the region to mount volumes"
    message = f"storage.{settings[0]} is set, but {why}"
    hint = "leave storage out" if lab else "add a pool in the region, or leave storage out"
    yield Finding((*_STORAGE, settings[0]), message, hint, also=(("control_plane", "cloud"),))


RULES: tuple[tuple[str, Rule], ...] = (
    ("STO-001", pool_of_controllers),
    ("STO-002", known_disk),
    ("STO-003", workers_in_the_region),
)
