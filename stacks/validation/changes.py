"""Changes that operators make to a spec, as data, for testing updates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cluster import catalogue
from cluster.check import Checked, check_all
from cluster.model import Model
from cluster.pools import Pool
from cluster.positions import nowhere
from cluster.spec import Cluster, ControlPlane, EtcdCluster

ALL = "*"
_GIB = 2**30
_LOCAL = "local-nvme"


@dataclass(frozen=True)
class SpecChange:
    """path: of a value in the spec; `ALL` for every pool or every etcd. new: takes the parent of the value and the value,
    and returns a new value, or None if the change does not apply."""

    what: str
    path: tuple[str, ...]
    new: Callable[[Any, Any], Any | None]


@dataclass(frozen=True)
class Changed:
    """A cluster after changes. whats: descriptions of the changes that applied."""

    cluster: Cluster
    whats: tuple[str, ...]


def _next_machine(plane: ControlPlane, name: str) -> str | None:
    """Return the next larger machine of the same series in the same cloud, else the next smaller."""
    machine = catalogue.of(plane.cloud).machine_types.get(name) if plane.cloud in catalogue.CLOUDS else None
    if machine is None or machine.series is None:
        return None
    types_ = sorted(machine.series.types, key=lambda other: machine.series.types[other].vcpus if machine.series else 0)
    place = types_.index(name)
    return next(iter([*types_[place + 1 :], *reversed(types_[:place])]), None)


def _grown(pool: Pool, most: int) -> int | None:
    return most + 1 if pool.site is None else None


def _labelled(_: Pool, labels: Mapping[str, str]) -> dict[str, str]:
    return {**labels, "menagerie/validate": "changed"}


def _larger(etcd: EtcdCluster, size: int) -> int | None:
    return None if etcd.disk == _LOCAL else size + _GIB


def _faster(etcd: EtcdCluster, iops: int) -> int | None:
    return None if etcd.disk == _LOCAL else iops + 500


CHANGES: tuple[SpecChange, ...] = (
    SpecChange("one more API server", ("control_plane", "api_servers"), lambda _, count: count + 1),
    SpecChange("another machine type for API servers", ("control_plane", "machine"), _next_machine),
    SpecChange("pools in the region that may grow by one", ("pools", ALL, "max"), _grown),
    SpecChange("one more label on every pool", ("pools", ALL, "labels"), _labelled),
    SpecChange("longer election timeouts of both etcds", ("etcd", ALL, "election_timeout"), lambda _, ms: ms + 500),
    SpecChange("larger data disks of etcd", ("etcd", ALL, "disk_size"), _larger),
    SpecChange("faster data disks of etcd", ("etcd", ALL, "iops"), _faster),
)


def changed(cluster: Cluster, changes: tuple[SpecChange, ...] = CHANGES) -> Changed:
    """Apply every change that leaves the spec without an error; return the changed cluster."""
    whats: list[str] = []
    for change in changes:
        spec = _replaced(cluster.spec, change.path, change.new)
        candidate = cluster.model_copy(update={"spec": spec})
        if spec != cluster.spec and _is_valid(candidate):
            cluster = candidate
            whats.append(change.what)
    return Changed(cluster, tuple(whats))


def _is_valid(cluster: Cluster) -> bool:
    problems = check_all([Checked(cluster, nowhere(cluster.name))], allow_unknown=True)
    return not any(problem.is_error for problem in problems)


def _replaced(holder: Any, path: tuple[str, ...], new: Callable[[Any, Any], Any | None]) -> Any:
    """Return `holder`, a model or a mapping, with another value at `path`."""
    key, *rest = path
    names = _names(holder) if key == ALL else [key]
    values = {}
    for name in names:
        old = holder[name] if isinstance(holder, Mapping) else getattr(holder, name)
        value = _replaced(old, tuple(rest), new) if rest else new(holder, old)
        values[name] = old if value is None else value
    return {**holder, **values} if isinstance(holder, Mapping) else holder.model_copy(update=values)


def _names(holder: Any) -> list[str]:
    return list(type(holder).model_fields) if isinstance(holder, Model) else list(holder)
