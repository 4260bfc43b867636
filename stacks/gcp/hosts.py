"""What machines of etcd, API servers and pools have in common: image, disks, boot security, metadata, interfaces."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pulumi_gcp as gcp

from cluster import catalogue
from cluster.catalogue import Machine
from cluster.disks import takes_hyperdisk_only
from cluster.spec import Cloud

SYSTEM_DISK_GIB = 64
SCRATCH_GB = 375
"""Size of a local SSD that is added to a machine ("About Local SSD disks")."""

# "Choose a valid number of Local SSD disks": N2, maximum vCPUs -> minimum number.
_LEAST_ON_N2 = {10: 1, 20: 2, 40: 4, 80: 8, 128: 16}
_LOCAL_DISKS = (1, 2, 4, 8, 16, 24)


def catalogue_entry(machine: str) -> Machine | None:
    """Return the catalogue's entry for a machine type."""
    return catalogue.of(Cloud.GCP).machine_types.get(machine)


def has_gpus(machine: str) -> bool:
    entry = catalogue_entry(machine)
    return bool(entry and entry.type and entry.type.gpus)


def image(text: str | None, machine: str) -> str:
    """Return the image; Debian 13 for the machine's processor if the spec names none."""
    entry = catalogue_entry(machine)
    return text or f"projects/debian-cloud/global/images/family/debian-13{'-arm64' if _is_arm(entry) else ''}"


def system_disk(machine: str) -> str:
    """Return the kind of disk that a machine can use for its system."""
    return "hyperdisk-balanced" if takes_hyperdisk_only(machine) else "pd-balanced"


def local_disks(machine: str, needed: int) -> int:
    """Return how many local SSDs to add; none if the machine type includes its own."""
    entry = catalogue_entry(machine)
    if not entry or not entry.series or entry.series.local_nvme != "on-request":
        return 0
    vcpus = entry.type.vcpus if entry.type else 0
    by_size = [number for most, number in _LEAST_ON_N2.items() if vcpus <= most]
    least = by_size[0] if machine.startswith("n2-") and by_size else 1
    return next(number for number in _LOCAL_DISKS if number >= max(least, needed))


def metadata(startup_script: pulumi.Input[str], more: Mapping[str, str] | None = None) -> dict[str, pulumi.Input[str]]:
    """Return metadata that permits no login: no keys of the project, none by OS Login, no serial port."""
    return {
        "startup-script": startup_script,
        "block-project-ssh-keys": "true",
        "enable-oslogin": "FALSE",
        "serial-port-enable": "FALSE",
        **(more or {}),
    }


def secure_boot(machine: str) -> bool:
    """Whether to use secure boot. GPU drivers are built on the machine or signed by their vendor; with secure boot the kernel accepts neither."""
    return not has_gpus(machine)


def template_disks(
    machine: str, image_: str | None, size_gib: int, key: gcp.kms.CryptoKey, labels: Mapping[str, str]
) -> list[gcp.compute.RegionInstanceTemplateDiskArgs]:
    """Return the system disk of a group's machines."""
    return [
        gcp.compute.RegionInstanceTemplateDiskArgs(
            boot=True,
            auto_delete=True,
            source_image=image(image_, machine),
            disk_type=system_disk(machine),
            disk_size_gb=size_gib,
            labels=dict(labels),
            disk_encryption_key=gcp.compute.RegionInstanceTemplateDiskDiskEncryptionKeyArgs(kms_key_self_link=key.id),
        )
    ]


def template(
    name: str,
    machine: str,
    disks: list[gcp.compute.RegionInstanceTemplateDiskArgs],
    subnet: gcp.compute.Subnetwork,
    account: gcp.serviceaccount.Account,
    values: dict[str, pulumi.Input[str]],
    labels: Mapping[str, str],
    opts: pulumi.ResourceOptions,
    **more: object,
) -> gcp.compute.RegionInstanceTemplate:
    """Create a template of a group's machines. values: metadata. more: properties that only some have."""
    args = gcp.compute.RegionInstanceTemplateArgs(
        machine_type=machine,
        disks=disks,
        network_interfaces=[
            gcp.compute.RegionInstanceTemplateNetworkInterfaceArgs(subnetwork=subnet.id, nic_type="GVNIC")
        ],
        service_account=gcp.compute.RegionInstanceTemplateServiceAccountArgs(
            email=account.email, scopes=["cloud-platform"]
        ),
        shielded_instance_config=gcp.compute.RegionInstanceTemplateShieldedInstanceConfigArgs(
            enable_secure_boot=secure_boot(machine), enable_vtpm=True, enable_integrity_monitoring=True
        ),
        metadata=values,
        labels=dict(labels),
    )
    for field, value in more.items():
        setattr(args, field, value)
    return gcp.compute.RegionInstanceTemplate(name, args, opts=opts)


def _is_arm(machine: Machine | None) -> bool:
    return bool(machine and machine.arch == "arm64")
