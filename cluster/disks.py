"""Which machines of a cloud take which kinds of disks, and what Azure calls the kinds of the catalogue."""

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
# "Choose a disk type" of Google Cloud, by series of machines: those that take Hyperdisk alone.
_HYPERDISK_ONLY = re.compile(r"(n4|n4d|n4a|c4|c4d|c4a|c4n|a3-ultragpu|a4|a4x|g4|h4d|m4|m4n|x4)(-|$)")
# The same, of those that take no Hyperdisk Balanced.
_NO_HYPERDISK_BALANCED = re.compile(r"(e2|n1|n2|n2d|c2|c2d|t2d|t2a)-")
# "Azure virtual machine sizes naming conventions": an s among the letters after the number of vCPUs.
_PREMIUM = re.compile(r"Standard_[A-Z]+\d+(-\d+)?[a-z]*s")


def takes_premium(size: str) -> bool:
    """Whether a size of Azure takes disks of the kinds whose names begin with Premium or Ultra."""
    return bool(_PREMIUM.match(size))


def takes_hyperdisk_only(machine: str) -> bool:
    """Whether a machine of Google Cloud takes no Persistent Disk."""
    return bool(_HYPERDISK_ONLY.match(machine))


def takes(cloud: Cloud, machine: str, kind: str) -> bool:
    """Whether a network disk can be attached to a machine, as far as its name tells."""
    if cloud is Cloud.AZURE and kind.startswith(("premium", "ultra")):
        return takes_premium(machine)
    if cloud is Cloud.GCP and kind.startswith("pd-"):
        return not takes_hyperdisk_only(machine)
    if cloud is Cloud.GCP and kind == "hyperdisk-balanced":
        return not _NO_HYPERDISK_BALANCED.match(machine)
    return True
