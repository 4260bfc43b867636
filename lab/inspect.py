"""What stands of the lab, for ``status`` and for people."""

from __future__ import annotations

from dataclasses import dataclass

from lab import balancer, cgroups, hosts, processes, services, site, state, store


@dataclass(frozen=True)
class HostLine:
    """One host. memory_bytes: what its processes hold now, 0 where the kernel does not say."""

    name: str
    alive: bool
    kind: str
    address: str
    segment: str
    console: str
    memory_bytes: int


@dataclass(frozen=True)
class LabLines:
    """The lab: its services by name, whether each answers, and its hosts."""

    lab: str
    folder: str
    services: dict[str, bool]
    hosts: tuple[HostLine, ...]

    @property
    def healthy(self) -> bool:
        """Whether every service answers and every host lives."""
        return all(self.services.values()) and all(host.alive for host in self.hosts)


def look() -> LabLines | None:
    """The lab of this checkout, None when there is none. Changes nothing."""
    if site.spec_or_none() is None:
        return None
    up = services.are_up()
    states = {
        "networks": site.read() is not None,
        services.REGISTRY: up,
        services.MIRROR: up,
        store.NAME: processes.is_running(store.NAME),
    }
    if state.folder("balancer", "balancer.json").exists():
        states[balancer.NAME] = balancer.read() is not None
    lines = tuple(_host(name) for name in hosts.known())
    return LabLines(state.lab_id(), str(state.folder()), states, lines)


def _host(name: str) -> HostLine:
    record = state.read(state.folder("hosts", name, "host.json")) or {}
    alive = hosts.read(name) is not None
    return HostLine(
        name=name,
        alive=alive,
        kind=str(record.get("kind", "")),
        address=str(record.get("address", "")),
        segment=str(record.get("segment", "")),
        console=str(hosts.console(name)),
        memory_bytes=cgroups.memory(hosts.group(name)) if alive else 0,
    )
