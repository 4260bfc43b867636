"""CFG-019: settings that are written and that nothing acts on yet."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where, show
from cluster.spec import Cloud

_BACKUP = ("nobody takes snapshots", "leave it out, and take them with etcdctl snapshot save")
_DISK_SIZE = ("members' disks have no limit", "leave it out, and keep twice the quota free for each member")
_VPN = ("nobody makes the gateway and the tunnels", "leave it out, and join the site to the region by other means")
_IDLE: dict[Where, tuple[str, str]] = {
    ("etcd", "main", "backup"): _BACKUP,
    ("etcd", "events", "backup"): _BACKUP,
    ("etcd", "main", "disk_size"): _DISK_SIZE,
    ("etcd", "events", "disk_size"): _DISK_SIZE,
    ("artefacts", "mirror"): ("hosts download from the mirror of their provider", "leave it out"),
    ("artefacts", "registry"): ("hosts pull from the registry of their provider", "leave it out"),
}
"""Place -> (what happens in its stead, what to do until something acts on it)."""


def without_effect(subject: Subject) -> Iterator[Finding]:
    """Who writes a backup must not believe that there is one."""
    written = {where: why for where, why in _IDLE.items() if _written(subject.spec, where)}
    written |= {("sites", name, "vpn"): _VPN for name, site in subject.spec.sites.items() if site.vpn}
    for where, (instead, until_then) in written.items():
        message = f"nothing acts on {show(where)} yet: {instead}"
        yield Finding(where, message, until_then, severity="warning")
    if subject.spec.control_plane.cloud is Cloud.LAB:
        for name, pool in subject.spec.pools.items():
            if pool.site is None:
                message = f"nothing makes the workers of pools.{name} yet: a lab has machines at sites only"
                yield Finding(("pools", name), message, "give the pool a site and a hosts file", severity="warning")


def _written(model: BaseModel, where: Where) -> bool:
    """Whether the spec itself gives the setting a value."""
    value: object = model
    for key in map(str, where):
        if not isinstance(value, BaseModel) or key not in value.model_fields_set:
            return False
        value = getattr(value, key)
    return value is not None


RULES: tuple[tuple[str, Rule], ...] = (("CFG-019", without_effect),)
