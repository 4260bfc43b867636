"""KRN-002 to KRN-004: kernel settings that conflict with each other, the machine, or the pool's purpose."""

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
"""Parameters that a kernel accepts more than once."""
_MOST = 0.9
"""Share of a machine's memory that huge pages may take. The rest is for the system, the kubelet and all other pods."""
_XAPIC_CPUS = 255
_NOT_A_NODE: dict[str, str] = {
    r"systemd\.unified_cgroup_hierarchy=(0|no|false)": "kubelets need cgroup v2",
    r"cgroup_no_v1=.*|cgroup_disable=.*(cpu|memory|pids).*": "kubelets need the cgroup controllers cpu, memory and pids",
}
_RISKS: dict[str, str] = {
    r"mitigations=off|nopti|nospectre_v[12]|spectre_v2=off|mds=off|l1tf=off": (
        "pods can then read each other's memory through known CPU vulnerabilities (kernel docs, hw-vuln); "
        "only for machines used by a single team"
    ),
    r"nokaslr": "the hardening role keeps kernel addresses random",
    r"numa=off": "GPUs and cards then have no NUMA node to align pods with",
    r"pcie_aspm=force|pcie_aspm\.policy=powersave": "links to GPUs and cards then go to sleep, and jobs wait for them",
    r"pci=(.*,)?nomsi.*": "NVMe, GPUs and fast cards work badly or not at all without message-signalled interrupts",
    r"(maxcpus|nr_cpus|possible_cpus)=.*|nosmt(=.*)?": "preflight would count too few CPUs for the kind of machine, and close it",
    r"mem=.*|memmap=.*": "preflight would find too little memory for the kind of machine, and close it",
}


def kernel_of_sites(subject: Subject) -> Iterator[Finding]:
    """Kernel settings are for machines at sites; machines in a cloud boot an image with its own settings."""
    for name, pool in subject.spec.pools.items():
        where: Where = ("pools", name)
        for key in ("kernel", "max_unavailable"):
            if pool.site is None and key in pool.model_fields_set:
                message = f"pools.{name} is in the region and has {key}, which is only for machines at a site"
                yield Finding((*where, key), message, f"remove {key}", also=((*where, "site"), (*where, "machine")))


def parameters(subject: Subject) -> Iterator[Finding]:
    """No parameter is given twice, and none stops a kubelet."""
    for name, pool in _booted(subject):
        where: Where = ("pools", name, "kernel", "parameters")
        names = Counter(word.partition("=")[0] for word in pool.kernel.parameters)
        for index, word in enumerate(pool.kernel.parameters):
            parameter = word.partition("=")[0]
            if names[parameter] > 1 and parameter not in _SEVERAL and word != _first(pool, parameter):
                message = f"pools.{name} gives {parameter} twice: {_first(pool, parameter)} and {word}"
                yield Finding((*where, index), message, "keep one of them")
            for pattern, why in _NOT_A_NODE.items():
                if re.fullmatch(pattern, word):
                    yield Finding((*where, index), f"pools.{name} boots with {word}, but {why}", "remove it")


def memory(subject: Subject) -> Iterator[Finding]:
    """Huge pages leave enough memory: the kernel reserves them before anything else."""
    for name, pool in _booted(subject):
        machine = hardware.of_pool(subject.spec.control_plane.cloud, pool) if _kind_is_known(pool) else None
        if machine and machine.memory_gib and pool.kernel.huge_gib > machine.memory_gib * _MOST:
            message = (
                f"pools.{name} reserves {pool.kernel.huge_gib:g} GiB for huge pages, of the {machine.memory_gib:g} GiB that a "
                f"{machine.kind} has; everything else would have to fit in the rest"
            )
            key = "huge_pages_1gi" if pool.kernel.huge_pages_1gi else "huge_pages_2mi"
            hint = f"reserve at most {machine.memory_gib * _MOST:.0f} GiB"
            yield Finding(("pools", name, "kernel", key), message, hint, also=(("pools", name, "hardware"),))


def risks(subject: Subject) -> Iterator[Finding]:
    """Warn of settings with unexpected costs in speed or safety."""
    for name, pool in _booted(subject):
        where: Where = ("pools", name, "kernel")
        for index, word in enumerate(pool.kernel.parameters):
            for pattern, why in _RISKS.items():
                if re.fullmatch(pattern, word):
                    message = f"pools.{name} boots with {word}: {why}"
                    yield Finding(
                        (*where, "parameters", index), message, "remove it, or ignore this warning", severity="warning"
                    )
        for key, message, hint in _combinations(subject.spec, name, pool):
            at = (*where, *key)
            yield Finding(at, f"pools.{name}: {message}", hint, severity="warning")


def _combinations(spec: ClusterSpec, name: str, pool: Pool) -> Iterator[tuple[Where, str, str]]:
    machine = hardware.of_pool(spec.control_plane.cloud, pool) if _kind_is_known(pool) else None
    kernel, gpus = pool.kernel, bool(machine and machine.gpus)
    if gpus and kernel.iommu is Iommu.ENABLED:
        message = "the IOMMU translates what GPUs and cards write to each other, which is slow or fails (NVIDIA, NCCL, "
        yield ("iommu",), message + '"Troubleshooting": PCI Access Control Services)', "write passthrough"
    elif gpus and kernel.iommu is Iommu.PASSTHROUGH and kernel.acs_redirect:
        message = (
            "with an IOMMU the kernel turns ACS on at every bridge (pci_request_acs), even if the firmware "
            "has it off; GPUs and cards then reach each other only through the CPU"
        )
        yield ("iommu",), message, "add acs_redirect: false"
    if kernel.iommu is Iommu.DISABLED and machine and (machine.cpus or 0) > _XAPIC_CPUS:
        message = (
            f"a {machine.kind} has {machine.cpus} CPUs; with its IOMMU off, an AMD machine has no x2APIC and starts at "
            f"most {_XAPIC_CPUS} of them (linux-iommu, 2026-03-19, amd_iommu=off)"
        )
        yield ("iommu",), message, "write passthrough"
    isolated = next((i for i, word in enumerate(kernel.parameters) if word.startswith("isolcpus=")), None)
    if isolated is not None and pool.kubelet.cpu_manager is not CpuManager.NONE:
        message = (
            "kubelets ignore isolcpus: they give isolated CPUs to pods, whose threads the kernel then never balances"
        )
        yield ("parameters", isolated), message, "remove it; kubelet.cpu_manager: static already gives pods whole CPUs"


def _booted(subject: Subject) -> Iterator[tuple[str, Pool]]:
    return ((name, pool) for name, pool in subject.spec.pools.items() if pool.site is not None)


def _kind_is_known(pool: Pool) -> bool:
    """Return whether the pool's kind of machine is known. INV-011 reports unknown kinds."""
    return pool.hardware in hardware.kinds()


def _first(pool: Pool, name: str) -> str:
    return next(word for word in pool.kernel.parameters if word.partition("=")[0] == name)


RULES: tuple[tuple[str, Rule], ...] = (
    ("KRN-002", kernel_of_sites),
    ("KRN-003", parameters),
    ("KRN-003", memory),
    ("KRN-004", risks),
)
