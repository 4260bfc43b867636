"""Which Debian packages the machines of sites install, by release."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from cluster import hardware
from cluster.packages import PACKAGES
from cluster.provisioning import Release
from cluster.spec import Cluster
from components.image_needs import edge_router

BASE = ("linux-image-amd64", "initramfs-tools", "console-setup", "keyboard-configuration", "locales", "zstd")
"""What Debian's installer installs besides packages of priority `required` and `important`."""
LOADERS = (("grub-efi-amd64", "grub-efi-amd64-signed", "shim-signed", "efibootmgr"), ("grub-pc",))
"""Boot loaders, by firmware. They exclude each other."""
_FOR_DRIVERS = ("dkms", "linux-headers-amd64")
"""NVIDIA's packages build their modules with them."""


@dataclass(frozen=True)
class HostPackages:
    """What machines of one release install, without what that depends on."""

    release: Release
    clusters: tuple[str, ...]
    names: tuple[str, ...]


def host_packages(clusters: Sequence[Cluster], others: Collection[Release] = ()) -> tuple[HostPackages, ...]:
    """Return what machines at sites install.

    others: releases of machines at sites without provisioning. A spec doesn't know them, so () leaves these sites out.
    """
    names: dict[Release, set[str]] = {}
    owners: dict[Release, set[str]] = {}
    for cluster in clusters:
        for site, settings in cluster.spec.sites.items():
            for release in {settings.provisioning.release} if settings.provisioning else others:
                owners.setdefault(release, set()).add(cluster.name)
                names.setdefault(release, set()).update(_of_site(cluster, site))
    return tuple(HostPackages(each, tuple(sorted(owners[each])), tuple(sorted(names[each]))) for each in sorted(names))


def _of_site(cluster: Cluster, site: str) -> Iterator[str]:
    yield from (package.name for package in PACKAGES)
    if cluster.spec.sites[site].vpn:
        yield from edge_router().packages
    if _has_gpus(cluster, site):
        yield from _FOR_DRIVERS


def _has_gpus(cluster: Cluster, site: str) -> bool:
    cloud = cluster.spec.control_plane.cloud
    return any(pool.site == site and hardware.runs_gpus(cloud, pool) for pool in cluster.spec.pools.values())
