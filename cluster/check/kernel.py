"""KRN-002 to KRN-004: kernel settings that contradict each other, the machine, or what the pool is for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from cluster import hardware
from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where
from cluster.kernel import Iommu
from cluster.pools import CpuManager, Pool
from cluster.spec import ClusterSpec

_SEVERAL = ("console", "earlycon", "pci", "module_blacklist")
"""Parameters that a kernel takes more than once."""
_MOST = 0.9
"""Share of a machine's memory that huge pages may take: system, kubelet and all other pods have the rest."""
_XAPIC_CPUS = 255
_NOT_A_NODE: dict[str, str] = {
    r"systemd\.unified_cgroup_hierarchy=(0|no|false)": "kubelets need cgroup v2",
    r"cgroup_no_v1=.*|cgroup_disable=.*(cpu|memory|pids).*": "kubelets need the cgroup controllers cpu, memory and pids",
}
_RISKS: dict[str, str] = {
    r"mitigations=off|nopti|nospectre_v[12]|spectre_v2=off|mds=off|l1tf=off": (
        "a pod can then read the memory of others, by faults of CPUs that are known (kernel docs, hw-vuln); "
        "fit for machines of one team alone"
    ),
    r"nokaslr": "role hardening keeps addresses of the kernel random",
    r"numa=off": "GPUs and cards then have no NUMA node that pods could be aligned with",
    r"pcie_aspm=force|pcie_aspm\.policy=powersave": "links to GPUs and cards then sleep, and jobs wait for them",
    r"pci=(.*,)?nomsi.*": "NVMe, GPUs and fast cards work badly or not at all without message-signalled interrupts",
    r"(maxcpus|nr_cpus|possible_cpus)=.*|nosmt(=.*)?": "preflight counts the kind's CPUs, and would close the machine",
    r"mem=.*|memmap=.*": "preflight compares the kind's memory, and would close the machine",
}


def kernel_of_sites(subject: Subject) -> Iterator[Finding]:
    """Machines in a cloud are booted from an image, which holds its kernel's settings."""
    for name, pool in subject.spec.pools.items():
        where: Where = ("pools", name)
        for key in ("kernel", "max_unavailable"):
            if pool.site is None and key in pool.model_fields_set:
                message = f"pools.{name} is in the region and has {key}, which only machines at a site have"
                yield Finding((*where, key), message, f"remove {key}", also=((*where, "site"), (*where, "machine")))


def parameters(subject: Subject) -> Iterator[Finding]:
    """Twice the same, or what no node lives with."""
    for name, pool in _booted(subject):
        where: Where = ("pools", name, "kernel", "parameters")
        names = Counter(word.partition("=")[0] for word in pool.kernel.parameters)
        for index, word in enumerate(pool.kernel.parameters):
            own = word.partition("=")[0]
            if names[own] > 1 and own not in _SEVERAL and word != _first(pool, own):
                message = f"pools.{name} gives {own} twice: {_first(pool, own)} and {word}"
                yield Finding((*where, index), message, "keep one of them")
            for pattern, why in _NOT_A_NODE.items():
                if re.fullmatch(pattern, word):
                    yield Finding((*where, index), f"pools.{name} boots with {word}, but {why}", "remove it")


def memory(subject: Subject) -> Iterator[Finding]:
    """Huge pages are taken from the memory before anything else is."""
    for name, pool in _booted(subject):
        known = hardware.of_pool(subject.spec.control_plane.cloud, pool) if _kind_is_known(pool) else None
        if known and known.memory_gib and pool.kernel.huge_gib > known.memory_gib * _MOST:
            message = (
                f"pools.{name} keeps {pool.kernel.huge_gib:g} GiB as huge pages, of {known.memory_gib:g} GiB that a "
                f"{known.kind} has; all else would live on the rest"
            )
            key = "huge_pages_1gi" if pool.kernel.huge_pages_1gi else "huge_pages_2mi"
            hint = f"keep {known.memory_gib * _MOST:.0f} GiB at most"
            yield Finding(("pools", name, "kernel", key), message, hint, also=(("pools", name, "hardware"),))


def risks(subject: Subject) -> Iterator[Finding]:
    """What costs speed or safety where nobody expects it. Warnings."""
    for name, pool in _booted(subject):
        where: Where = ("pools", name, "kernel")
        for index, word in enumerate(pool.kernel.parameters):
            for pattern, why in _RISKS.items():
                if re.fullmatch(pattern, word):
                    message = f"pools.{name} boots with {word}: {why}"
                    yield Finding(
                        (*where, "parameters", index), message, "remove it, or go on knowingly", severity="warning"
                    )
        for key, message, hint in _combinations(subject.spec, name, pool):
            at = (*where, *key)
            yield Finding(at, f"pools.{name}: {message}", hint, severity="warning")


def _combinations(spec: ClusterSpec, name: str, pool: Pool) -> Iterator[tuple[Where, str, str]]:
    known = hardware.of_pool(spec.control_plane.cloud, pool) if _kind_is_known(pool) else None
    kernel, gpus = pool.kernel, bool(known and known.gpus)
    if gpus and kernel.iommu is Iommu.ENABLED:
        message = "the IOMMU translates what GPUs and cards write to each other, which is slow or fails (NVIDIA, NCCL, "
        yield ("iommu",), message + '"Troubleshooting": PCI Access Control Services)', "write passthrough"
    elif gpus and kernel.iommu is Iommu.PASSTHROUGH and kernel.acs_redirect:
        message = (
            "where the kernel uses an IOMMU it turns ACS on at every bridge (pci_request_acs), also when the firmware "
            "has it off; then GPUs and cards reach each other through the CPU alone"
        )
        yield ("iommu",), message, "add acs_redirect: false"
    if kernel.iommu is Iommu.DISABLED and known and (known.cpus or 0) > _XAPIC_CPUS:
        message = (
            f"a {known.kind} has {known.cpus} CPUs; with its IOMMU off an AMD machine has no x2APIC, and brings up no "
            f"more than {_XAPIC_CPUS} of them (linux-iommu, 2026-03-19, amd_iommu=off)"
        )
        yield ("iommu",), message, "write passthrough"
    isolated = next((i for i, word in enumerate(kernel.parameters) if word.startswith("isolcpus=")), None)
    if isolated is not None and pool.kubelet.cpu_manager is not CpuManager.NONE:
        message = "kubelets know nothing of isolcpus: they give isolated CPUs to pods, whose threads the kernel then never spreads"
        yield ("parameters", isolated), message, "remove it; kubelet.cpu_manager: static gives pods whole CPUs"


def _booted(subject: Subject) -> Iterator[tuple[str, Pool]]:
    return ((name, pool) for name, pool in subject.spec.pools.items() if pool.site is not None)


def _kind_is_known(pool: Pool) -> bool:
    """An unknown kind is INV-011's."""
    return pool.hardware in hardware.kinds()


def _first(pool: Pool, name: str) -> str:
    return next(word for word in pool.kernel.parameters if word.partition("=")[0] == name)


RULES: tuple[tuple[str, Rule], ...] = (
    ("KRN-002", kernel_of_sites),
    ("KRN-003", parameters),
    ("KRN-003", memory),
    ("KRN-004", risks),
)
