"""The machines of provisioned sites, with all that their installer must know."""

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
class Machine:
    """One machine. mac: six bytes in small letters with ':' between them."""

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
        """The MAC as iPXE's ${mac:hexhyp} has it, and the kernel's BOOTIF after its 01-."""
        return self.mac.replace(":", "-")

    @property
    def router(self) -> IPv4Address:
        return self.network[self.settings.router]

    @property
    def known_as(self) -> str:
        """sshd(8): how known_hosts names it; a port other than 22 is written ``[address]:port``."""
        return str(self.address) if self.ssh_port == 22 else f"[{self.address}]:{self.ssh_port}"


def normal_mac(mac: str) -> str:
    """``B8-59-9F-AA-BB-CC`` -> ``b8:59:9f:aa:bb:cc``."""
    return ":".join(re.findall("..", re.sub(r"[:.-]", "", mac).lower()))


def machines(cluster: Cluster, limit: Sequence[str] = ()) -> tuple[Machine, ...]:
    """The machines of all provisioned sites, or of them those whose name, rack or site fits one of `limit`.

    Raises RefusedError when that is none, or one of `limit` fits none.
    """
    found = tuple(every(cluster))
    if not found:
        raise RefusedError(
            f"{cluster.name} has no machines to install: no site with machines has provisioning; see docs/how-to/provisioning.md",
            code="nothing-to-provision",
        )
    for pattern in limit:
        if not any(_fits(machine, pattern) for machine in found):
            near = did_you_mean(pattern, [machine.name for machine in found])
            raise RefusedError(
                f"--limit {pattern} fits no machine of {cluster.name}{near}", code="nothing-to-provision"
            )
    return tuple(one for one in found if not limit or any(_fits(one, pattern) for pattern in limit))


def _fits(machine: Machine, pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in (machine.name, machine.rack, machine.site))


def every(cluster: Cluster) -> Iterable[Machine]:
    """The machines of all sites that have provisioning."""
    for pool, host in cluster.host_list():
        name = cluster.spec.pools[pool].site or ""
        site: Site | None = cluster.spec.sites.get(name)
        if site is None or site.provisioning is None or host.mac is None:
            continue
        yield Machine(
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
