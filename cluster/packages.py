"""Debian packages that a site's machines must have before roles run. Roles check for them but don't install them.

With `provisioning` the installer installs them; docs/explanation/hosts.md lists them for custom images. NVIDIA's packages
aren't listed: role gpu selects and installs them on the host.
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
    CABLES = "machines whose cables are in the hosts file"
    RDMA = "pools with rails in `roce`"


@dataclass(frozen=True)
class Package:
    """A Debian package. why: what it is for, as part of a sentence. roles: those that need one of its commands."""

    name: str
    why: str
    roles: tuple[str, ...] = ()
    when: When = When.ALWAYS


# In Debian iproute2, mount, nftables and util-linux have priority required or important, so its installer always installs
# them; other images may lack them.
PACKAGES: tuple[Package, ...] = (
    Package("ca-certificates", "downloads over TLS"),
    Package("chrony", "clock synchronisation", ("time",)),
    Package("ethtool", "settings of network cards", ("base", "links", "roce")),
    Package("iproute2", "`ip` and `dcb`", ("base", "links", "roce", "storage_host")),
    Package("iptables", "flanneld, which removes its former rules with it", ("flannel",)),
    Package("lldpd", "finding the switch and port at the other end of a cable", ("links",), When.CABLES),
    Package("mount", "mounting volumes of pods", ("base",)),
    Package("nftables", "the packet filter, and flannel's masquerading", ("firewall", "flannel")),
    Package("openssh-server", "SSH access", ("hardening",)),
    Package("perftest", "`menagerie roce test`", (), When.RDMA),
    Package(
        "python3",
        "Ansible, and Menagerie's programs on hosts",
        ("firewall", "hardening", "links", "node_metrics", "roce", "storage_host"),
    ),
    Package("sudo", "logins other than root"),
    Package("unattended-upgrades", "security updates", ("hardening",)),
    Package("util-linux", "`nsenter`, `unshare`, `blkid`, `wipefs`", ("base", "firewall", "storage_host")),
)


def needed(site: Site, pool: str, host: Host) -> tuple[str, ...]:
    """Return the names of the packages that one machine of a pool needs, sorted."""
    cables = any(cable.switch for cable in host.links.values())
    rdma = site.roce is not None and pool in site.roce.rails
    holds = {When.ALWAYS: True, When.CABLES: cables, When.RDMA: rdma}
    return tuple(sorted(package.name for package in PACKAGES if holds[package.when]))


def reference(packages: Iterable[Package] = PACKAGES) -> str:
    """Return the table of docs/explanation/hosts.md."""
    lines = ["| package | for | needed by role | where |", "|---|---|---|---|"]
    for package in packages:
        where = "everywhere" if package.when is When.ALWAYS else package.when
        lines.append(f"| {package.name} | {package.why} | {', '.join(package.roles)} | {where} |")
    return "\n".join(lines) + "\n"
