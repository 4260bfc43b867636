"""Compute, on the machine, its reservations and its kubelet's settings for CPUs and images.

The result is a kubeadm patch of the kubelet's configuration. kubeadm applies a target's patches in the order of their
names, so an operator's patch wins.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from . import Refused

PATCH = "kubeletconfiguration+merge.json"
"""Before the operator's ``kubeletconfiguration0+merge.json``: "+" sorts before "0"."""
SYS = "/sys/devices/system"
MEMINFO = "/proc/meminfo"
IMAGES = "/var/lib/containerd"
MIB, GIB = 2**20, 2**30
MOST_RESERVED = 0.25
"""Largest share of the memory to reserve: a small machine needs it for pods, and runs few daemons."""
MOST_NUMA_NODES = 8
"""The kubelet's topology manager starts on more only with an option ("Control Topology Management Policies")."""


class Machine(NamedTuple):
    """nodes: NUMA node -> cores, each a list of logical CPUs. memory, images: bytes, the latter of a file system."""

    nodes: dict[int, list[list[int]]]
    memory: int
    images: int

    @property
    def cpus(self) -> int:
        return sum(len(core) for cores in self.nodes.values() for core in cores)


def numbers(text: str) -> list[int]:
    """Parse a list of the kernel: "0-2,8" -> 0, 1, 2, 8."""
    parsed: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        parsed += range(int(first), int(last or first) + 1)
    return parsed


def _read(*parts: str) -> str:
    try:
        with open(os.path.join(SYS, *parts)) as handle:
            return handle.read()
    except OSError:
        return ""


def online() -> list[int]:
    """Return the logical CPUs that are online."""
    return numbers(_read("cpu", "online")) or list(range(os.cpu_count() or 1))


def look() -> Machine:
    """Return this machine. Without NUMA, or if sysfs hides it, it is one node."""
    cpus = online()
    listed = sorted(int(each[4:]) for each in _entries("node") if re.fullmatch(r"node\d+", each))
    nodes = {node: [cpu for cpu in numbers(_read("node", f"node{node}", "cpulist")) if cpu in cpus] for node in listed}
    if sorted(cpu for own in nodes.values() for cpu in own) != sorted(cpus):
        nodes = {0: cpus}
    with open(MEMINFO) as handle:
        memory = int(re.search(r"MemTotal: +(\d+) kB", handle.read())[1]) * 1024  # type: ignore[index]
    return Machine({node: _cores(own) for node, own in nodes.items()}, memory, _size(IMAGES))


def _entries(folder: str) -> list[str]:
    path = os.path.join(SYS, folder)
    return os.listdir(path) if os.path.isdir(path) else []


def _cores(cpus: Iterable[int]) -> list[list[int]]:
    cores: dict[tuple[int, ...], list[int]] = {}
    for cpu in cpus:
        shared = tuple(numbers(_read("cpu", f"cpu{cpu}", "topology", "thread_siblings_list"))) or (cpu,)
        cores.setdefault(shared, []).append(cpu)
    return sorted(cores.values())


def _size(path: str) -> int:
    """Return bytes of the file system that a path is on, or will be."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    status = os.statvfs(path)
    return status.f_blocks * status.f_frsize


def kubelets_cpu(cpus: int) -> int:
    """Return thousandths of a CPU for the kubelet and containerd: 6 % of the first, 1 % of the second, 0.5 % of the
    next two, 0.25 % of the others (Google's "Plan GKE Standard node sizes"; Amazon's EKS reserves the same)."""
    shares = [60, 10, 5, 5]
    return math.ceil(sum(shares[:cpus]) + 2.5 * max(0, cpus - len(shares)))


def kubelets_memory(max_pods: int) -> int:
    """Return bytes for the kubelet, containerd and its shims: 255 MiB, and 11 MiB per pod (Amazon's EKS nodes)."""
    return (255 + 11 * max_pods) * MIB


def reserved(machine: Machine, settings: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Return kubeReserved and systemReserved. settings: see M(kubelet_join)."""
    # Whole GiB: the kernel keeps a little more or less at each boot, and that must not restart the kubelet.
    memory = max(machine.memory // GIB * GIB, GIB)
    kube = kubelets_memory(settings["max_pods"])
    system = max(settings["system_memory_mib"] * MIB, memory // 100)
    shrunk = min(1.0, memory * MOST_RESERVED / (kube + system))
    return {
        "kubeReserved": {"cpu": f"{kubelets_cpu(machine.cpus)}m", "memory": f"{int(kube * shrunk) // MIB}Mi"},
        "systemReserved": {"cpu": f"{settings['system_cpu']}m", "memory": f"{int(system * shrunk) // MIB}Mi"},
    }


def systems_cpus(machine: Machine, needed: int) -> list[int]:
    """Return at least `needed` logical CPUs as whole cores, spread over the NUMA nodes. Sharing a core would disturb a
    pod with exclusive CPUs, and each NUMA node's interrupts need a CPU there."""
    nodes = [list(cores) for cores in machine.nodes.values() if cores]
    if sum(map(len, nodes)) < 2 * len(nodes):
        raise Refused("cpu_manager static: this machine has no core to spare for pods after the system's")
    cpus: list[int] = []
    while len(cpus) < needed or any(len(cores) == len(own) for cores, own in zip(nodes, machine.nodes.values())):
        for cores in nodes:
            cpus += cores.pop(0) if len(cores) > 1 else []
        if all(len(cores) == 1 for cores in nodes):
            break
    return sorted(cpus)


def image_thresholds(size: int, largest: int) -> dict[str, int]:
    """Return the usage of the images' file system, in per cent, at which the kubelet starts and stops removing unused
    images. Two of the largest must fit above the first: a pull keeps the download until the image is unpacked.

    The kubelet's default of 85 % is too late: at the same usage it evicts pods (imagefs.available < 15 %).
    """
    if not largest:
        return {}
    high = max(50, min(80, 100 - math.ceil(100 * 2 * largest / size)))
    return {"imageGCHighThresholdPercent": high, "imageGCLowThresholdPercent": high - 10}


def configuration(machine: Machine, settings: dict[str, Any]) -> dict[str, Any]:
    """Return fields of the KubeletConfiguration."""
    fields: dict[str, Any] = image_thresholds(machine.images, settings["largest_image_gb"] * 10**9)
    if settings["reserve"]:
        fields |= reserved(machine, settings)
    fields["cpuManagerPolicy"] = settings["cpu_manager"]
    if settings["cpu_manager"] == "static":
        needed = math.ceil((kubelets_cpu(machine.cpus) + settings["system_cpu"]) / 1000)
        fields["reservedSystemCPUs"] = ",".join(map(str, systems_cpus(machine, needed)))
    fields["topologyManagerPolicy"] = settings["topology_manager"]
    if settings["topology_manager"] != "none" and len(machine.nodes) > MOST_NUMA_NODES:
        fields["topologyManagerPolicyOptions"] = {"max-allowable-numa-nodes": str(len(machine.nodes))}
    return fields


def patch(settings: dict[str, Any]) -> str:
    """Return the text of `PATCH`; empty without settings."""
    return json.dumps(configuration(look(), settings), indent=4, sort_keys=True) + "\n" if settings else ""
