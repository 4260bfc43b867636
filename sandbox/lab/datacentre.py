"""The lab as a whole: its owner, networks and services."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from sandbox.lab import clean, limits, networks, plan, preflight, services, shell, state, store
from sandbox.lab.errors import LabError
from sandbox.lab.plan import LabSpec

_MODULES = ("br_netfilter", "bridge", "nf_conntrack", "nf_tables", "overlay", "tun", "veth", "vxlan")


def ensure(spec: LabSpec, fill_registry: Callable[[str], None] = lambda _: None) -> None:
    """Bring up the router, networks and services. Idempotent.

    Removes remains of labs without a live process first, for example after the machine restarted.
    fill_registry: called with the registry's host:port whenever the registry started empty.
    Raises LabError or ForeignLabError before it changes anything.
    """
    preflight.check(spec)
    with state.locked(), state.space():
        state.refuse_foreign()
        clean.dead_labs()
        state.claim(spec.cluster)
        state.write(_file(), asdict(spec))
        limits.ensure()
        _load_modules()
        networks.ensure_router(spec)
        store.ensure(spec)
        if services.ensure(spec):
            fill_registry(plan.REGISTRY)


def is_up() -> bool:
    """Whether the networks exist and the services answer."""
    lab = spec_or_none()
    return lab is not None and networks.is_up(lab) and services.are_up()


def spec() -> LabSpec:
    """Return the spec of the existing lab. Raises LabError when there is none."""
    lab = spec_or_none()
    if lab is None:
        raise LabError("this checkout has no lab on this machine; `make lab` brings one up")
    return lab


def spec_or_none() -> LabSpec | None:
    """Return the spec of the existing lab, None when there is none."""
    content = state.read(_file())
    if content is None:
        return None
    lists = {name: tuple(content.get(name, ())) for name in plan.LISTS}
    return LabSpec(**content | lists)


def delete() -> None:
    """Remove this checkout's lab completely: hosts, volumes, networks, services and state."""
    with state.locked():
        clean.lab(state.lab_id())


def _load_modules() -> None:
    # Hosts share the machine's kernel and cannot load modules themselves. A kernel that has them built in, or
    # has no modules at all, needs nothing.
    for name in _MODULES:
        if shutil.which("modprobe") and not Path("/sys/module", name).exists():
            shell.succeeds("modprobe", "--quiet", name)


def _file() -> Path:
    return state.folder("datacentre.json")
