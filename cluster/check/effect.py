"""CFG-019: settings in the spec that have no effect yet."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where, show

_DISK_SIZE = ("disks of members have no limit", "leave it out, and keep twice the quota free for each member")
_IDLE_IN_A_LAB: dict[Where, tuple[str, str]] = {
    ("etcd", "main", "disk_size"): _DISK_SIZE,
    ("etcd", "events", "disk_size"): _DISK_SIZE,
    ("control_plane", "public"): ("the lab runs on this machine only", "leave it out"),
    ("artefacts", "mirror"): ("hosts download from the lab's mirror", "leave it out"),
    ("artefacts", "registry"): ("hosts pull from the lab's registry", "leave it out"),
    ("artefacts", "sha256"): ("the lab knows the checksums of what it built", "leave it out"),
}
"""Place -> (what happens instead, what to do until the setting has an effect)."""
_OF_A_CLOUD = ("workers in a lab's region are processes on this machine, and min says how many", "leave it out")
_KEYS_OF_A_CLOUD = ("zones", "image", "disk_size", "spot", "reservation", "placement", "rdma")
_VPN = ("the lab's router joins its sites", "leave it out")


def without_effect(subject: Subject) -> Iterator[Finding]:
    """Warn of settings without effect, so that nobody relies on them."""
    idle: dict[Where, tuple[str, str]] = {}
    if subject.cluster.is_lab:
        idle = _IDLE_IN_A_LAB | {("sites", name, "vpn"): _VPN for name in subject.spec.sites}
        in_region = [name for name, pool in subject.spec.pools.items() if pool.site is None]
        idle |= {("pools", name, key): _OF_A_CLOUD for name in in_region for key in _KEYS_OF_A_CLOUD}
    for where, (instead, until_then) in idle.items():
        if _written(subject.spec, where):
            message = f"{show(where)} has no effect yet: {instead}"
            yield Finding(where, message, until_then, severity="warning")


def _written(model: BaseModel, where: Where) -> bool:
    """Return whether the spec itself gives the setting a value."""
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
