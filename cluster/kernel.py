"""How the kernel of a pool's machines is booted: settings of a spec, and the command line that follows from them. No I/O.

Sources: the kernel's own "The kernel's command-line parameters" (kernel-parameters.txt) for every word written here.
`pci=disable_acs_redir=` is there since 4.19 (commit aaca43fda742): it clears request redirect, completion redirect and
egress control of ACS, after the kernel has set what an IOMMU asks for and whatever the firmware left. Of its devices,
`pci:0:0` means all (pci_dev_str_match in drivers/pci/pci.c: 0 matches any vendor and any device).
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
"""A word of the command line that names the rest. The kernel passes over what has a dot and is of no module."""
# No ";", which ends a command in grub.cfg, where grub-mkconfig quotes nothing.
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
    MARK: "nothing: it is written with every other setting",
}
"""Name of a parameter -> the key that stands for it."""
_PCI_ACS = r"^pci=(.*,)?(disable_acs_redir|config_acs)="


class Iommu(StrEnum):
    """What the IOMMU does with what devices read and write."""

    ENABLED = "enabled"
    """It translates every access: devices see only what they were given. For hosts of virtual machines."""
    PASSTHROUGH = "passthrough"
    """It is there for interrupts and virtual functions, and leaves the host's own devices alone."""
    DISABLED = "disabled"
    """It is not used."""


def parse_parameter(value: Any) -> Any:
    """One word of the kernel's command line that a boot loader's file can hold as it is."""
    if not isinstance(value, str):
        return value
    if not re.fullmatch(_FORM, value):
        message = f"{value!r} isn't one word of a kernel's command line that GRUB takes: no blanks, quotes and ;"
        raise refuse("KRN-001", message, "write name or name=value, each as an entry of its own: pci=realloc")
    name = value.partition("=")[0]
    if name in _LOADERS:
        message = f"{value} is the boot loader's: with another value the machine may not come up"
        raise refuse("KRN-001", message, "remove it; it is set when the machine is installed")
    for own, key in _FIELDS.items():
        if name == own and (name != "pci" or re.match(_PCI_ACS, value)):
            raise refuse("KRN-001", f"{value} has a key of its own", f"remove it and write {key}")
    return value


Parameter = Annotated[
    str, BeforeValidator(parse_parameter), WithJsonSchema({"type": "string", "pattern": f"^{_FORM}$"})
]


class Kernel(Model):
    """How the kernel of a pool's machines is booted. docs/how-to/reboot.md says how a change gets to them."""

    iommu: Iommu | None = Field(default=None, strict=False)
    """enabled, passthrough or disabled. Default: as the kernel has it."""
    acs_redirect: bool = True
    """false: PCIe bridges let GPUs and cards write to each other without the way over the CPU. Virtual machines that
    were given devices are then no longer kept apart."""
    huge_pages_1gi: int = Field(default=0, ge=0)
    """Pages of 1 GiB to keep at boot; pods ask for them as hugepages-1Gi."""
    huge_pages_2mi: int = Field(default=0, ge=0)
    """Pages of 2 MiB to keep at boot; pods ask for them as hugepages-2Mi."""
    parameters: tuple[Parameter, ...] = Field(default=(), strict=False)
    """Further words of the kernel's command line, such as pci=realloc."""

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
    """The words that the settings come to, the mark last; none without any setting."""
    words = list(_IOMMU[kernel.iommu]) if kernel.iommu else []
    words += [] if kernel.acs_redirect else ["pci=disable_acs_redir=pci:0:0"]
    for size, count in (("1G", kernel.huge_pages_1gi), ("2M", kernel.huge_pages_2mi)):
        words += [f"hugepagesz={size}", f"hugepages={count}"] if count else []
    words += kernel.parameters
    return (*words, f"{MARK}={hashlib.sha256(' '.join(words).encode()).hexdigest()[:12]}") if words else ()
