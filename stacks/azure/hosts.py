"""What machines and scale sets have in common: user data, image, login, boot security, interfaces."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pulumi
import pulumi_azure_native as azure

from cluster import catalogue
from cluster.disks import takes_premium
from cluster.spec import Cloud
from components.userdata import Payload, render_packed
from stacks.azure.store import AzureStore

DEBIAN = "Debian:debian-12:12-gen2:latest"
"""Not Debian 13, as in other clouds: Azure refuses another offer for a scale set that exists, and API servers and pools are scale
sets ("Modify a Virtual Machine Scale Set", create-time properties). First specs name Debian 13 (`cluster.starter`)."""
_ADMIN = "menagerie"
SYSTEM_DISK_GIB = 64
MOST_CUSTOM_DATA = 65_535
""""Virtual Machines - Create Or Update": bytes of custom data before base64 encoding."""

# "Trusted Launch for Azure virtual machines": families of sizes that do not support it yet.
_WITHOUT_TRUSTED_LAUNCH = frozenset({"NDasrA100_v4", "NDm_A100_v4"})


@dataclass(frozen=True)
class Boot:
    """How the hosts of a reader get their values. names: of a value -> in the vault. after: its permissions. public: by
    name, values that are not secret and therefore part of the user data."""

    reader: str
    vault_uri: pulumi.Output[str]
    identity: azure.managedidentity.UserAssignedIdentity
    names: Mapping[str, pulumi.Output[str]]
    after: Sequence[pulumi.Resource]
    public: Mapping[str, pulumi.Input[str]]

    def knowing(self, name: str, stored: pulumi.Output[str], granted: pulumi.Resource) -> Boot:
        """Return this with one more value."""
        return replace(self, names={**self.names, name: stored}, after=[*self.after, granted])

    def behind(self, others: Sequence[pulumi.Resource]) -> Boot:
        """Return this, created only after `others`."""
        return replace(self, after=[*self.after, *others])

    def user_data(self, payload: Payload, hostname: str | None = None) -> pulumi.Output[str]:
        """Return user data with the payload inside, as Azure takes it. Raises UserDataTooLarge above Azure's limit."""

        def text(names: Mapping[str, str], public: Mapping[str, str], uri: str, client: str) -> str:
            held = {payload.name: payload.packed(), **public}
            store = AzureStore(uri.rstrip("/"), client, self.reader, names, held)
            return custom_data(payload, store, hostname)

        # Checks the size before anything is created: the unknown values are short.
        text({}, {}, "https://", "")
        gathered = pulumi.Output.all(
            names=pulumi.Output.from_input(dict(self.names)),
            public=pulumi.Output.from_input(dict(self.public)),
            uri=self.vault_uri,
            id=self.identity.client_id,
        )
        return gathered.apply(lambda values: text(values["names"], values["public"], values["uri"], values["id"]))


def custom_data(payload: Payload, store: AzureStore, hostname: str | None) -> str:
    """Return gzipped user data, which cloud-init unpacks ("User-data formats": "Gzip compressed content"), in base64."""
    return render_packed(payload, store, hostname, limit=MOST_CUSTOM_DATA)


def nobodys_key(seed: bytes = b"menagerie: nobody logs in") -> str:
    """Return an SSH public key whose private key nobody has: Azure creates no machine without a key.

    An Ed25519 key is a point's y coordinate (RFC 8032, 5.1.3). This one is a hash, so its private half is as hard to
    find as any other's. It is the first hash of the series that is a point.
    """
    p = 2**255 - 19
    d = -121665 * pow(121666, p - 2, p) % p
    digest = hashlib.sha256(seed).digest()
    while True:
        y = int.from_bytes(digest, "little") & (1 << 255) - 1
        square = (y * y - 1) * pow(d * y * y + 1, p - 2, p) % p
        if y < p and pow(square, (p - 1) // 2, p) == 1:
            break
        digest = hashlib.sha256(digest).digest()
    blob = b"".join(len(part).to_bytes(4, "big") + part for part in (b"ssh-ed25519", digest))
    return f"ssh-ed25519 {base64.b64encode(blob).decode()}"


def login() -> azure.compute.LinuxConfigurationArgs:
    """Permit no login: no password, a key that nobody has, and no firewall that admits port 22."""
    key = azure.compute.SshPublicKeyArgs(path=f"/home/{_ADMIN}/.ssh/authorized_keys", key_data=nobodys_key())
    return azure.compute.LinuxConfigurationArgs(
        disable_password_authentication=True,
        provision_vm_agent=True,
        ssh=azure.compute.SshConfigurationArgs(public_keys=[key]),
    )


def single_os_profile(name: str, user_data: pulumi.Input[str]) -> azure.compute.OSProfileArgs:
    """Return the profile of one machine. Without extensions: they permit running anything as root."""
    return azure.compute.OSProfileArgs(
        computer_name=name,
        admin_username=_ADMIN,
        custom_data=user_data,
        allow_extension_operations=False,
        linux_configuration=login(),
    )


def group_os_profile(prefix: str, user_data: pulumi.Input[str]) -> azure.compute.VirtualMachineScaleSetOSProfileArgs:
    """Return the profile of a scale set's machines, whose names start with `prefix`."""
    return azure.compute.VirtualMachineScaleSetOSProfileArgs(
        computer_name_prefix=prefix,
        admin_username=_ADMIN,
        custom_data=user_data,
        allow_extension_operations=False,
        linux_configuration=login(),
    )


def image(text: str | None) -> azure.compute.ImageReferenceArgs:
    """Return the image for an ID of a gallery image or managed image, or for publisher:offer:sku:version.

    Raises ValueError for anything else."""
    name = text or DEBIAN
    if name.startswith("/CommunityGalleries/"):
        return azure.compute.ImageReferenceArgs(community_gallery_image_id=name)
    if name.startswith("/SharedGalleries/"):
        return azure.compute.ImageReferenceArgs(shared_gallery_image_id=name)
    if name.startswith("/subscriptions/"):
        return azure.compute.ImageReferenceArgs(id=name)
    parts = name.split(":")
    if len(parts) != 4:
        raise ValueError(
            f"{name} isn't an image of Azure; write publisher:offer:sku:version, or an ID that starts with "
            "/subscriptions/, /SharedGalleries/ or /CommunityGalleries/"
        )
    publisher, offer, sku, version = parts
    return azure.compute.ImageReferenceArgs(publisher=publisher, offer=offer, sku=sku, version=version)


def boot_security(machine: str) -> azure.compute.SecurityProfileArgs:
    """Return security settings. Encryption at the host covers caches and temporary disks, which disk encryption does not.

    GPU drivers are built on the machine or signed by their vendor; with secure boot the kernel accepts neither.
    """
    entry = catalogue.of(Cloud.AZURE).machine_types.get(machine)
    if entry and entry.series and entry.series.series in _WITHOUT_TRUSTED_LAUNCH:
        return azure.compute.SecurityProfileArgs(encryption_at_host=True)
    has_gpus = bool(entry and entry.type and entry.type.gpus)
    return azure.compute.SecurityProfileArgs(
        encryption_at_host=True,
        security_type="TrustedLaunch",
        uefi_settings=azure.compute.UefiSettingsArgs(secure_boot_enabled=not has_gpus, v_tpm_enabled=True),
    )


def diagnostics() -> azure.compute.DiagnosticsProfileArgs:
    """Let Azure keep a host's console output at boot: nobody can log in to look."""
    return azure.compute.DiagnosticsProfileArgs(boot_diagnostics=azure.compute.BootDiagnosticsArgs(enabled=True))


def system_disk(machine: str) -> str:
    """Return the kind of disk that a size can use for its system."""
    return "Premium_LRS" if takes_premium(machine) else "StandardSSD_LRS"


def is_accelerated(machine: str) -> bool:
    """Whether a size is known to support accelerated networking (SR-IOV)."""
    entry = catalogue.of(Cloud.AZURE).machine_types.get(machine)
    return bool(entry and entry.series and entry.series.accelerated_networking)
