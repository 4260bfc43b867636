"""The lab as a whole: whose it is, its networks and its services."""

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
    """Have the router, networks and services stand. A second time changes nothing.

    Remains of a lab without a live process, such as after the machine restarted, are removed first.
    fill_registry: given the registry's host:port whenever it started empty.
    Raises LabError or ForeignLabError before anything is touched.
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
    """Whether the networks stand and the services answer."""
    found = spec_or_none()
    return found is not None and networks.is_up(found) and services.are_up()


def spec() -> LabSpec:
    """What the standing lab was asked to be. Raises LabError when there is none."""
    found = spec_or_none()
    if found is None:
        raise LabError("there is no lab of this checkout on the machine; `make lab` brings one up")
    return found


def spec_or_none() -> LabSpec | None:
    """What the standing lab was asked to be, None when there is none."""
    content = state.read(_file())
    if content is None:
        return None
    lists = {name: tuple(content[name]) for name in ("endpoint_ports", "between_workers")}
    return LabSpec(**content | lists)


def delete() -> None:
    """Remove this checkout's lab whole: hosts, volumes, networks, services and state."""
    with state.locked():
        clean.lab(state.lab_id())


def _load_modules() -> None:
    # Hosts share the machine's kernel and have no modules of their own to load; where a kernel has
    # them built in, or has no modules at all, there is nothing to do.
    for name in _MODULES:
        if shutil.which("modprobe") and not Path("/sys/module", name).exists():
            shell.succeeds("modprobe", "--quiet", name)


def _file() -> Path:
    return state.folder("datacentre.json")
