"""Kernel settings of a pool's machines, and the kernel command line that follows from them. No I/O.

Sources: the kernel's own "The kernel's command-line parameters" (kernel-parameters.txt) for every word written here.
`pci=disable_acs_redir=` exists since 4.19 (commit aaca43fda742): it clears request redirect, completion redirect and
egress control of ACS, after the kernel has set what an IOMMU needs, and regardless of the firmware's settings.
`pci:0:0` means all devices (pci_dev_str_match in drivers/pci/pci.c: 0 matches any vendor and any device).
"""

from __future__ import annotations

import hashlib
import re
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from cluster.model import Model
from cluster.quantities import refuse

MARK = "menagerie.boot"
"""Parameter with a digest of all the others. The kernel ignores parameters with a dot that belong to no module."""
# No ";": it ends a command in grub.cfg, and grub-mkconfig doesn't quote.
_FORM = r"[A-Za-z0-9][A-Za-z0-9_.-]*(=[A-Za-z0-9_.,:@/+%=-]*)?"
_LOADERS = (
    "BOOT_IMAGE",
    "initrd",
    "root",
    "rootflags",
    "rootfstype",
    "ro",
    "rw",
    "init",
    "resume",
    "single",
    "emergency",
)
_FIELDS = {
    "iommu": "iommu",
    "iommu.passthrough": "iommu",
    "intel_iommu": "iommu",
    "amd_iommu": "iommu",
    "pci": "acs_redirect",
    "hugepages": "huge_pages_1gi or huge_pages_2mi",
    "hugepagesz": "huge_pages_1gi or huge_pages_2mi",
    MARK: "nothing: it is added automatically to the other settings",
}
"""Name of a parameter -> the key to use instead."""
_PCI_ACS = r"^pci=(.*,)?(disable_acs_redir|config_acs)="


class Iommu(StrEnum):
    """How the IOMMU handles devices' reads and writes."""

    ENABLED = "enabled"
    """It translates every access: devices only see memory assigned to them. For hosts of virtual machines."""
    PASSTHROUGH = "passthrough"
    """It serves interrupts and virtual functions, and doesn't translate for the host's own devices."""
    DISABLED = "disabled"
    """It is off."""


def parse_parameter(value: Any) -> Any:
    """Validate one word of the kernel command line, which a boot loader's file must be able to hold unquoted."""
    if not isinstance(value, str):
        return value
    if not re.fullmatch(_FORM, value):
        message = f"{value!r} isn't one word of a kernel command line that GRUB accepts: no blanks, quotes or ;"
        raise refuse("KRN-001", message, "write name or name=value, each as a separate entry, for example pci=realloc")
    name = value.partition("=")[0]
    if name in _LOADERS:
        message = f"{value} belongs to the boot loader: with another value the machine may not boot"
        raise refuse("KRN-001", message, "remove it; it is set when the machine is installed")
    for own, key in _FIELDS.items():
        if name == own and (name != "pci" or re.match(_PCI_ACS, value)):
            raise refuse("KRN-001", f"{value} has its own key in the spec", f"remove it and write {key}")
    return value


Parameter = Annotated[
    str, BeforeValidator(parse_parameter), WithJsonSchema({"type": "string", "pattern": f"^{_FORM}$"})
]


class Kernel(Model):
    """Kernel settings of a pool's machines. docs/how-to/reboot.md describes how changes reach them."""

    iommu: Iommu | None = Field(default=None, strict=False)
    """enabled, passthrough or disabled. Default: the kernel's own."""
    acs_redirect: bool = True
    """false: PCIe bridges let GPUs and cards write to each other directly instead of through the CPU. This removes the
    isolation between virtual machines with assigned devices."""
    huge_pages_1gi: int = Field(default=0, ge=0)
    """Huge pages of 1 GiB to reserve at boot; pods request them as hugepages-1Gi."""
    huge_pages_2mi: int = Field(default=0, ge=0)
    """Huge pages of 2 MiB to reserve at boot; pods request them as hugepages-2Mi."""
    parameters: tuple[Parameter, ...] = Field(default=(), strict=False)
    """Additional words of the kernel command line, such as pci=realloc."""

    @property
    def huge_gib(self) -> float:
        """Memory that the huge pages take, in GiB."""
        return self.huge_pages_1gi + self.huge_pages_2mi / 512


_IOMMU = {
    Iommu.ENABLED: ("intel_iommu=on", "iommu.passthrough=0"),
    Iommu.PASSTHROUGH: ("intel_iommu=on", "iommu=pt"),
    Iommu.DISABLED: ("intel_iommu=off", "amd_iommu=off"),
}


def command_line(kernel: Kernel) -> tuple[str, ...]:
    """Return the words for the settings, the mark last; empty without any setting."""
    words = list(_IOMMU[kernel.iommu]) if kernel.iommu else []
    words += [] if kernel.acs_redirect else ["pci=disable_acs_redir=pci:0:0"]
    for size, count in (("1G", kernel.huge_pages_1gi), ("2M", kernel.huge_pages_2mi)):
        words += [f"hugepagesz={size}", f"hugepages={count}"] if count else []
    words += kernel.parameters
    return (*words, f"{MARK}={hashlib.sha256(' '.join(words).encode()).hexdigest()[:12]}") if words else ()
