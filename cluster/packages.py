"""Debian packages that a site's machines must hold before roles come: roles check for them and install none of them.

`provisioning` has the installer bring them; docs/explanation/hosts.md lists them for images of your own. NVIDIA's are not among
them: role gpu chooses and installs those on the host.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from cluster.pools import Host
from cluster.sites import Site


class When(StrEnum):
    """Which machines need a package."""

    ALWAYS = "always"
    CABLES = "the hosts file says where its cables lead"
    RDMA = "its pool has rails in `roce`"


@dataclass(frozen=True)
class Package:
    """why: what it is for, as the end of a sentence. roles: the ones that ask for a command of it."""

    name: str
    why: str
    roles: tuple[str, ...] = ()
    when: When = When.ALWAYS


# Debian calls iproute2, mount, nftables and util-linux required or important, so its installer brings them anyway;
# images that are made otherwise may lack them.
PACKAGES: tuple[Package, ...] = (
    Package("ca-certificates", "downloads over TLS"),
    Package("chrony", "the clock", ("time",)),
    Package("ethtool", "settings of cards", ("base", "links", "roce")),
    Package("iproute2", "`ip` and `dcb`", ("base", "links", "roce", "storage_host")),
    Package("lldpd", "which switch a cable leads to", ("links",), When.CABLES),
    Package("mount", "volumes of pods", ("base",)),
    Package("nftables", "the packet filter, and what flannel masquerades", ("base", "firewall")),
    Package("openssh-server", "the way in", ("hardening",)),
    Package("perftest", "`menagerie roce test`", (), When.RDMA),
    Package("python3", "Ansible, and programs on hosts", ("firewall", "hardening", "links", "roce", "storage_host")),
    Package("sudo", "a login other than root"),
    Package("unattended-upgrades", "security updates", ("hardening",)),
    Package("util-linux", "`nsenter`, `unshare`, `blkid`, `wipefs`", ("base", "firewall", "storage_host")),
)


def needed(site: Site, pool: str, host: Host) -> tuple[str, ...]:
    """Names of what one machine of a pool needs, sorted."""
    cables = any(cable.switch for cable in host.links.values())
    rdma = site.roce is not None and pool in site.roce.rails
    holds = {When.ALWAYS: True, When.CABLES: cables, When.RDMA: rdma}
    return tuple(sorted(package.name for package in PACKAGES if holds[package.when]))


def reference(packages: Iterable[Package] = PACKAGES) -> str:
    """The table of docs/explanation/hosts.md."""
    lines = ["| package | for | asked for by role | where |", "|---|---|---|---|"]
    for package in packages:
        where = "everywhere" if package.when is When.ALWAYS else package.when
        lines.append(f"| {package.name} | {package.why} | {', '.join(package.roles)} | {where} |")
    return "\n".join(lines) + "\n"
