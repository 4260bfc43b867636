"""The state of the lab, for people."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.lab import balancer, cgroups, datacentre, hosts, networks, plan, processes, services, state, store
from sandbox.lab.hosts import HostState


@dataclass(frozen=True)
class HostLine:
    """One host, alive or dead. made: the properties it was created with, None when its record is lost.

    port: the router's end of the host's cable. memory_bytes: memory that its processes use now, 0 when the kernel
    does not report it.
    """

    name: str
    alive: bool
    made: HostState | None
    port: str
    console: str
    memory_bytes: int


@dataclass(frozen=True)
class LabLines:
    """The lab: its services (name -> whether it answers) and its hosts. router: name of its network namespace."""

    lab: str
    folder: str
    router: str
    services: dict[str, bool]
    hosts: tuple[HostLine, ...]


def read_lab() -> LabLines:
    """Return the state of this checkout's lab, without changing anything. Raises LabError when there is none."""
    spec = datacentre.spec()
    states = {"networks": networks.is_up(spec), **services.answering(), store.NAME: processes.is_running(store.NAME)}
    if state.folder("balancer", "balancer.json").exists():
        states[balancer.NAME] = balancer.read() is not None
    lines = tuple(_host(name) for name in hosts.created_hosts())
    return LabLines(state.lab_id(), str(state.folder()), networks.netns("router"), states, lines)


def _host(name: str) -> HostLine:
    properties = hosts.find(name)
    alive = hosts.leader(name) is not None
    return HostLine(
        name=name,
        alive=alive,
        made=properties,
        port=plan.port(name, properties.segment) if properties else "",
        console=str(hosts.console(name)),
        memory_bytes=cgroups.memory(hosts.group(name)) if alive else 0,
    )
