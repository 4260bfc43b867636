"""Which kinds of disks machine types of a cloud support, and Azure's names for the kinds in the catalogue."""

from __future__ import annotations

import re

from cluster.spec import Cloud

AZURE_SKUS = {
    "premium_ssd_v2": "PremiumV2_LRS",
    "ultra_ssd": "UltraSSD_LRS",
    "premium_ssd": "Premium_LRS",
    "standard_ssd": "StandardSSD_LRS",
    "standard_hdd": "Standard_LRS",
}
# "Choose a disk type" of Google Cloud: series of machines that support only Hyperdisk.
_HYPERDISK_ONLY = re.compile(r"(n4|n4d|n4a|c4|c4d|c4a|c4n|a3-ultragpu|a4|a4x|g4|h4d|m4|m4n|x4)(-|$)")
# From the same page: series that don't support Hyperdisk Balanced.
_NO_HYPERDISK_BALANCED = re.compile(r"(e2|n1|n2|n2d|c2|c2d|t2d|t2a)-")
# "Azure virtual machine sizes naming conventions": an s among the letters after the number of vCPUs.
_PREMIUM = re.compile(r"Standard_[A-Z]+\d+(-\d+)?[a-z]*s")


def takes_premium(size: str) -> bool:
    """Return whether a size of Azure supports Premium and Ultra disks."""
    return bool(_PREMIUM.match(size))


def takes_hyperdisk_only(machine: str) -> bool:
    """Return whether a machine type of Google Cloud doesn't support Persistent Disk."""
    return bool(_HYPERDISK_ONLY.match(machine))


def takes(cloud: Cloud, machine: str, kind: str) -> bool:
    """Return whether a network disk can be attached to a machine type, judging by the type's name."""
    if cloud is Cloud.AZURE and kind.startswith(("premium", "ultra")):
        return takes_premium(machine)
    if cloud is Cloud.GCP and kind.startswith("pd-"):
        return not takes_hyperdisk_only(machine)
    if cloud is Cloud.GCP and kind == "hyperdisk-balanced":
        return not _NO_HYPERDISK_BALANCED.match(machine)
    return True
