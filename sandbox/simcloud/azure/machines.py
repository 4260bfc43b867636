"""What machines and scale sets have in common. `at_` is the prefix of the paths: "" or "virtualMachineProfile."."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Callable

from cluster import catalogue
from cluster.catalogue import Machine
from cluster.spec import Cloud
from sandbox.simcloud.azure.disks import ENCRYPTION_SET, ZONAL, encrypts
from sandbox.simcloud.azure.words import BAD_REQUEST, refused
from sandbox.simcloud.rules import Call, Reference
from sandbox.simcloud.values import at

LONGEST_CUSTOM_DATA = 87380
"""Characters in base64, according to the API's own message: 65,535 bytes."""

# From "What are the username requirements when creating a VM?" (FAQ about Linux virtual machines), the likeliest names.
_FORBIDDEN_ADMINS = frozenset(
    ("admin", "admin1", "admin2", "administrator", "backup", "console", "guest", "owner", "root", "server", "sql")
    + (
        "support",
        "sys",
        "test",
        "test1",
        "test2",
        "test3",
        "user",
        "user1",
        "user2",
        "user3",
        "user4",
        "user5",
        "video",
    )
)


def encrypted_by(at_: str) -> tuple[Reference, ...]:
    """Return references to the encryption sets of the disks that are created with a machine."""
    disks = ("osDisk", "dataDisks[]")
    return tuple(
        Reference(f"{at_}storageProfile.{disk}.managedDisk.diskEncryptionSet.id", (ENCRYPTION_SET,)) for disk in disks
    )


def known_size(name: str) -> Machine | None:
    """Return the catalogue's entry for a size."""
    return catalogue.of(Cloud.AZURE).machine_types.get(name)


def custom_data_fits(at_: str) -> Callable[[Call], None]:
    """Return a rule for the length of custom data ("Custom data and cloud-init on Azure Virtual Machines")."""

    def rule(call: Call) -> None:
        for path in (f"{at_}osProfile.customData", f"{at_}userData"):
            text = call.text(path)
            try:
                b64decode(text, validate=True)
                is_base64 = True
            except binascii.Error:
                is_base64 = False
            if not is_base64 or len(text) > LONGEST_CUSTOM_DATA:
                raise refused(
                    "InvalidParameter",
                    "Custom data in OSProfile must be in Base64 encoding and with a maximum length of "
                    f"{LONGEST_CUSTOM_DATA} characters.",
                    f"{path} has {len(text)}" if is_base64 else f"{path} is not in Base64",
                )

    return rule


def can_log_in(at_: str) -> Callable[[Call], None]:
    """Return a rule: a Linux machine needs an administrator with a password or a key, even if nobody ever logs in."""

    def rule(call: Call) -> None:
        profile = next(at(call.inputs, f"{at_}osProfile"), None)
        if profile is None:
            return
        admin = str(profile.get("adminUsername") or "")
        if not admin or admin.lower() in _FORBIDDEN_ADMINS:
            raise refused(
                "InvalidParameter", "The Admin Username specified is not allowed.", f"adminUsername is {admin!r}"
            )
        linux = profile.get("linuxConfiguration") or {}
        keys = list(at(linux, "ssh.publicKeys[].keyData"))
        if not keys and (linux.get("disablePasswordAuthentication") or not profile.get("adminPassword")):
            raise refused(
                "InvalidParameter",
                "Authentication using either SSH or by user name and password must be enabled in Linux profile.",
                "set linuxConfiguration.ssh.publicKeys; the private key need not exist",
            )

    return rule


def disks_are_possible(at_: str, size_at: str) -> Callable[[Call], None]:
    """Return a rule for disk numbers ("LUN"), disk types, and the number of disks that a size allows."""

    def rule(call: Call) -> None:
        luns: dict[object, str] = {}
        disks = list(at(call.inputs, f"{at_}storageProfile.dataDisks[]"))
        for disk in disks:
            if disk.get("lun") in luns:
                raise refused(
                    "InvalidParameter", f"A disk at LUN {disk.get('lun')} already exists.", "give each a unique LUN"
                )
            luns[disk.get("lun")] = str(disk.get("name"))
        size = known_size(call.text(size_at))
        most = size.type.data_disks if size and size.type else None
        if most is not None and len(disks) > most:
            raise refused(
                "OperationNotAllowed",
                f"The maximum number of data disks allowed to be attached to a VM of this size is {most}.",
                f"there are {len(disks)}; {call.text(size_at)} is the size",
                409,
            )
        _os_disk_is_possible(call, at_)
        _encryption_is_possible(call, at_)

    return rule


def _os_disk_is_possible(call: Call, at_: str) -> None:
    sku = call.text(f"{at_}storageProfile.osDisk.managedDisk.storageAccountType")
    if sku in ZONAL:
        raise refused(
            "InvalidParameter",
            f"The account type {sku} cannot be used for an OS disk.",
            '"Azure managed disk types": take Premium_LRS or StandardSSD_LRS',
        )


def _encryption_is_possible(call: Call, at_: str) -> None:
    for disk in ("osDisk", "dataDisks[]"):
        for managed in at(call.inputs, f"{at_}storageProfile.{disk}.managedDisk"):
            for set_id in at(managed, "diskEncryptionSet.id"):
                encrypts(call, str(managed.get("storageAccountType") or ""), str(set_id))


def sort_is_whole(at_: str) -> Callable[[Call], None]:
    """Return a rule for properties that only spot machines, or only machines with secure boot, may have."""

    def rule(call: Call) -> None:
        priority = call.text(f"{at_}priority") or "Regular"
        for name in ("evictionPolicy", "billingProfile"):
            if call.text(f"{at_}{name}") and priority == "Regular":
                raise refused(
                    "InvalidParameter",
                    f"The value of parameter {name} is invalid: it goes with the priority Spot.",
                    f"set priority to Spot, or leave out {name}",
                )
        kind = call.text(f"{at_}securityProfile.securityType") or "Standard"
        if list(at(call.inputs, f"{at_}securityProfile.uefiSettings")) and kind == "Standard":
            raise refused(
                BAD_REQUEST,
                "Use of UEFI settings is not supported for virtual machines with security type 'Standard'.",
                "set securityProfile.securityType to TrustedLaunch",
            )

    return rule


def takes_accelerated(call: Call, size: str, is_accelerated: bool) -> None:
    """Check that a size supports accelerated networking, if the catalogue knows."""
    entry = known_size(size)
    if is_accelerated and entry and entry.series and entry.series.accelerated_networking is False:
        raise refused(
            "VMSizeIsNotPermittedToEnableAcceleratedNetworking",
            f"VM size {size} of {call.id} is not permitted to enable accelerated networking on network interface(s).",
            "leave out enableAcceleratedNetworking",
        )
