"""CFG-019: settings that are written and that nothing acts on yet."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where, show

_DISK_SIZE = ("members' disks have no limit", "leave it out, and keep twice the quota free for each member")
_IDLE_IN_A_LAB: dict[Where, tuple[str, str]] = {
    ("etcd", "main", "disk_size"): _DISK_SIZE,
    ("etcd", "events", "disk_size"): _DISK_SIZE,
    ("control_plane", "public"): ("the lab is on this machine alone", "leave it out"),
    ("artefacts", "mirror"): ("hosts download from the lab's mirror", "leave it out"),
    ("artefacts", "registry"): ("hosts pull from the lab's registry", "leave it out"),
    ("artefacts", "sha256"): ("the lab knows the checksums of what it built", "leave it out"),
}
"""Place -> (what happens in its stead, what to do until something acts on it)."""
_OF_A_CLOUD = ("workers in a lab's region are processes of this machine, as many as min", "leave it out")
_KEYS_OF_A_CLOUD = ("zones", "image", "disk_size", "spot", "reservation", "placement", "rdma")
_VPN = ("the lab's router joins its sites", "leave it out")


def without_effect(subject: Subject) -> Iterator[Finding]:
    """Who writes a setting must not believe that it holds."""
    idle: dict[Where, tuple[str, str]] = {}
    if subject.cluster.is_lab:
        idle = _IDLE_IN_A_LAB | {("sites", name, "vpn"): _VPN for name in subject.spec.sites}
        in_region = [name for name, pool in subject.spec.pools.items() if pool.site is None]
        idle |= {("pools", name, key): _OF_A_CLOUD for name in in_region for key in _KEYS_OF_A_CLOUD}
    for where, (instead, until_then) in idle.items():
        if _written(subject.spec, where):
            message = f"nothing acts on {show(where)} yet: {instead}"
            yield Finding(where, message, until_then, severity="warning")


def _written(model: BaseModel, where: Where) -> bool:
    """Whether the spec itself gives the setting a value."""
    value: object = model
    for key in map(str, where):
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, BaseModel) and key in value.model_fields_set:
            value = getattr(value, key)
        else:
            return False
    return value is not None


RULES: tuple[tuple[str, Rule], ...] = (("CFG-019", without_effect),)
