"""The machines at provisioned sites, with everything that their installer needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv4Network

from cluster.errors import RefusedError
from cluster.fields import did_you_mean
from cluster.packages import needed
from cluster.provisioning import Provisioning
from cluster.sites import Site
from cluster.spec import Cluster


@dataclass(frozen=True)
class SiteMachine:
    """One machine. mac: six bytes in lower case, separated by colons."""

    name: str
    site: str
    rack: str
    mac: str
    address: IPv4Address
    network: IPv4Network
    bmc: IPv4Address | None
    mtu: int
    user: str
    ssh_port: int
    packages: tuple[str, ...]
    settings: Provisioning

    @property
    def hyphened(self) -> str:
        """The MAC as in iPXE's ${mac:hexhyp}, and in the kernel's BOOTIF after 01-."""
        return self.mac.replace(":", "-")

    @property
    def router(self) -> IPv4Address:
        return self.network[self.settings.router]

    @property
    def known_as(self) -> str:
        """Its name in known_hosts (sshd(8)); with a port other than 22, ``[address]:port``."""
        return str(self.address) if self.ssh_port == 22 else f"[{self.address}]:{self.ssh_port}"


def normal_mac(mac: str) -> str:
    """Normalise a MAC: ``B8-59-9F-AA-BB-CC`` -> ``b8:59:9f:aa:bb:cc``."""
    return ":".join(re.findall("..", re.sub(r"[:.-]", "", mac).lower()))


def machines(cluster: Cluster, limit: Sequence[str] = ()) -> tuple[SiteMachine, ...]:
    """Return the machines at all provisioned sites, or those whose name, rack or site matches one of `limit`.

    Raises RefusedError if there are none, or if one of `limit` matches none.
    """
    all_machines = tuple(every(cluster))
    if not all_machines:
        raise RefusedError(
            f"{cluster.name} has no machines to install: no site with machines has provisioning; see docs/how-to/provisioning.md",
            code="nothing-to-provision",
        )
    for pattern in limit:
        if not any(_fits(machine, pattern) for machine in all_machines):
            near = did_you_mean(pattern, [machine.name for machine in all_machines])
            raise RefusedError(
                f"--limit {pattern} matches no machine of {cluster.name}{near}", code="nothing-to-provision"
            )
    return tuple(machine for machine in all_machines if not limit or any(_fits(machine, pattern) for pattern in limit))


def _fits(machine: SiteMachine, pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in (machine.name, machine.rack, machine.site))


def every(cluster: Cluster) -> Iterable[SiteMachine]:
    """Yield the machines at all sites with provisioning."""
    for pool, host in cluster.host_list():
        name = cluster.spec.pools[pool].site or ""
        site: Site | None = cluster.spec.sites.get(name)
        if site is None or site.provisioning is None or host.mac is None:
            continue
        yield SiteMachine(
            host.name,
            name,
            host.rack,
            normal_mac(host.mac),
            host.address,
            site.racks[host.rack],
            host.bmc,
            site.link_mtu,
            site.ssh.user,
            site.ssh.port,
            needed(site, pool, host),
            site.provisioning,
        )
