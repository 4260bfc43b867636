"""Compare what a host has with what it must have. Pure: `Facts` in, findings out.

What the settings leave out is not compared; `subject` names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from . import FAIL, WATCH, Finding
from .smi import Gpu, Smi

MEMORY_LESS = 0.05
"""Share of the built-in memory that firmware and kernel may keep; Azure's own health checks allow the same."""
GPU_MEMORY_OFF = 0.02
"""ECC and the driver keep some of it, which varies a little with the driver's branch."""
DISK_LESS = 0.03
SPEED_LESS = 0.01
SKEW_S = 2.0
"""Certificates are backdated by a few minutes; logs and leases need much less."""


_PARTS = {"cpus": "CPUs", "memory_gib": "memory", "disks": "disks", "links": "links", "rdma": "RDMA", "gpus": "GPUs"}


class Disk(NamedTuple):
    name: str
    size: int
    """Bytes."""
    nvme: bool = False


class Port(NamedTuple):
    """A port of a network interface or of an RDMA device. gbit_s: 0 if it is down."""

    name: str
    gbit_s: float
    up: bool = True


class Facts(NamedTuple):
    """What a host has. Fields about GPUs are empty if no GPU is expected."""

    sockets: int
    cpus: int
    memory_kib: int
    disks: tuple[Disk, ...] = ()
    links: tuple[Port, ...] = ()
    rdma: tuple[Port, ...] = ()
    pci_gpus: tuple[str, ...] = ()
    """Bus addresses of NVIDIA's GPUs that the kernel lists, with or without a driver."""
    smi: Smi | None = None
    smi_said: str = ""
    """Why there is no `smi`."""
    nvlinks: Mapping[int, list[float]] = MappingProxyType({})
    topology: Mapping[tuple[int, int], str] = MappingProxyType({})
    skew_s: float | None = None
    """Seconds that this host's clock is ahead of the API server's."""
    diagnostic: tuple[str, ...] = ()
    """Findings of DCGM's diagnostic."""


def findings(facts: Facts, expected: dict[str, Any]) -> list[Finding]:
    """Return all differences."""
    differences = [*_processors(facts, expected), *_disks(facts, expected), *_ports(facts, expected), *_clock(facts)]
    if expected.get("gpus"):
        differences += _gpus(facts, expected["gpus"])
    elif facts.pci_gpus:
        text = f"{len(facts.pci_gpus)} NVIDIA GPUs are not compared: none are expected"
        differences.append(Finding("gpus", "GpuUnexpected", text, WATCH))
    differences += [Finding("diagnostic", "DiagnosticFailed", f"DCGM: {text}") for text in facts.diagnostic]
    return differences


def subject(expected: dict[str, Any]) -> str:
    """Return what a host was compared with, and what was not compared."""
    left = [name for part, name in _PARTS.items() if not expected.get(part)]
    return str(expected.get("kind") or "any host") + (f" (not compared: {', '.join(left)})" if left else "")


def _processors(facts: Facts, expected: dict[str, Any]) -> Iterator[Finding]:
    for name, what in (("sockets", "processors"), ("cpus", "logical CPUs")):
        expected_count, has = expected.get(name), getattr(facts, name)
        if expected_count and has != expected_count:
            yield Finding("cpu", "CpuDiffers", f"{has} {what}, expected {expected_count}")
    expected_gib = expected.get("memory_gib")
    has_gib = facts.memory_kib / 2**20
    if expected_gib and has_gib < expected_gib * (1 - MEMORY_LESS):
        yield Finding("memory", "MemoryMissing", f"{has_gib:.0f} GiB of memory, expected {expected_gib:g} GiB")


def _disks(facts: Facts, expected: dict[str, Any]) -> Iterator[Finding]:
    """Compare disks. The largest kind takes its disks first, so a large disk does not count for a smaller kind."""
    left = sorted(facts.disks, key=lambda disk: -disk.size)
    for kind in sorted(expected.get("disks") or (), key=lambda each: -each["gb"]):
        least = kind["gb"] * 1e9 * (1 - DISK_LESS)
        fit = [disk for disk in left if disk.size >= least and (disk.nvme or not kind.get("nvme"))][: kind["count"]]
        left = [disk for disk in left if disk not in fit]
        if len(fit) < kind["count"]:
            what = f"{'NVMe ' if kind.get('nvme') else ''}disks of {kind['gb']} GB"
            names = ", ".join(disk.name for disk in fit) or "none"
            yield Finding("disks", "DiskMissing", f"{len(fit)} {what} ({names}), expected {kind['count']}")


def _ports(facts: Facts, expected: dict[str, Any]) -> Iterator[Finding]:
    for part, reason, what in (
        ("links", "LinkDown", "Ethernet ports"),
        ("rdma", "RdmaDown", "RDMA ports"),
    ):
        expected_ports = expected.get(part)
        if not expected_ports:
            continue
        least = (expected_ports.get("gbit_s") or 0) * (1 - SPEED_LESS)
        ports: tuple[Port, ...] = getattr(facts, part)
        good = [port for port in ports if port.up and port.gbit_s >= least]
        if len(good) >= expected_ports["ports"]:
            continue
        speed = f" with {expected_ports['gbit_s']} Gbit/s" if expected_ports.get("gbit_s") else ""
        bad = [f"{port.name} {f'{port.gbit_s:g} Gbit/s' if port.up else 'down'}" for port in ports if port not in good]
        rest = f"; {', '.join(bad)}" if bad else ""
        yield Finding(part, reason, f"{len(good)} {what} up{speed}, expected {expected_ports['ports']}{rest}")


def _clock(facts: Facts) -> Iterator[Finding]:
    if facts.skew_s is not None and abs(facts.skew_s) > SKEW_S:
        where = "ahead of" if facts.skew_s > 0 else "behind"
        text = (
            f"the clock is {abs(facts.skew_s):.0f} s {where} the API server's (limit {SKEW_S:g} s): repair chrony first"
        )
        yield Finding("clock", "ClockSkewed", text)


def _gpus(facts: Facts, expected: dict[str, Any]) -> Iterator[Finding]:
    count = len(facts.pci_gpus)
    if count != expected["count"]:
        yield Finding(
            "gpus", "GpuMissing", f"{count} GPUs on PCI, expected {expected['count']}: power-cycle the host, then check"
        )
    if facts.smi is None:
        yield Finding("gpus", "DriverMissing", facts.smi_said or "nvidia-smi is missing: is the driver installed?")
        return
    lost = sorted(set(facts.pci_gpus) - {gpu.bus for gpu in facts.smi.gpus})
    if lost:
        yield Finding("gpus", "GpuMissing", f"the driver has lost {', '.join(lost)}, which PCI still has")
    branch = expected.get("driver_branch")
    if branch and facts.smi.driver.split(".")[0] != branch:
        yield Finding("driver", "DriverDiffers", f"driver {facts.smi.driver}, expected branch {branch}")
    for gpu in facts.smi.gpus:
        yield from _gpu(gpu, expected)
    yield from _nvlinks(facts, facts.smi, expected)


def _gpu(gpu: Gpu, expected: dict[str, Any]) -> Iterator[Finding]:
    for text in _differences(gpu, expected):
        yield Finding("gpus", "GpuDiffers", f"GPU {gpu.bus}: {text}")
    for text in _faults(gpu):
        yield Finding("gpus", "GpuFaulty", f"GPU {gpu.bus}: {text}")
    if gpu.slowdown:
        text = f"GPU {gpu.bus}: clocks are throttled ({', '.join(gpu.slowdown)})"
        yield Finding("gpus", "GpuSlowed", text, FAIL if "hw_power_brake_slowdown" in gpu.slowdown else WATCH)


def _differences(gpu: Gpu, expected: dict[str, Any]) -> Iterator[str]:
    if gpu.product != expected["product"]:
        yield f"{gpu.product or 'no name'}, expected {expected['product']}"
        return
    memory = expected["memory_mib"]
    if gpu.memory_mib is not None and abs(gpu.memory_mib - memory) > memory * GPU_MEMORY_OFF:
        yield f"{gpu.memory_mib} MiB of memory, expected {memory}"
    for name, what in (
        ("pcie_gen", "PCIe generation"),
        ("pcie_width", "PCIe lanes"),
        ("sm_mhz", "MHz at most"),
        ("memory_mhz", "MHz of memory at most"),
    ):
        has, want = getattr(gpu, name), expected.get(name)
        if want and has is not None and has < want:
            yield f"{what} {has}, expected {want}"
    if expected.get("ecc") is not None and gpu.ecc is not None and gpu.ecc != expected["ecc"]:
        yield f"ECC is {'on' if gpu.ecc else 'off'}, expected {'on' if expected['ecc'] else 'off'}"


def _faults(gpu: Gpu) -> Iterator[str]:
    """Yield a GPU's faults. Replace it if remapping failed or SRAM errors are too many (NVIDIA GPU Memory Error
    Management). operations/repair/health.py matches the texts."""
    if gpu.remap_failed:
        yield "a memory row could not be remapped: replace it"
    if gpu.sram_exceeded:
        yield "more uncorrectable SRAM errors than its threshold: replace it"
    if gpu.remap_pending:
        yield "a memory row waits to be remapped: drain, then reset the GPU"
    if gpu.recovery not in ("None", "Drain P2P"):
        yield f"the driver asks for: {gpu.recovery}"
    if gpu.fabric and gpu.fabric not in ("Completed Success", "Completed"):
        yield f"NVSwitch fabric: {gpu.fabric}; is nvidia-fabricmanager running, with the driver's version?"


def _nvlinks(facts: Facts, smi: Smi, expected: dict[str, Any]) -> Iterator[Finding]:
    count, speed = int(expected.get("nvlinks") or 0), float(expected.get("nvlink_gb_s") or 0)
    # MIG turns NVLink off (NVIDIA Multi-Instance GPU User Guide).
    if not count or any(gpu.mig for gpu in smi.gpus):
        return
    for gpu in smi.gpus:
        links = facts.nvlinks.get(gpu.number, [])
        good = [link for link in links if link >= speed * (1 - SPEED_LESS)]
        if len(good) < count:
            text = f"GPU {gpu.bus}: {len(good)} NVLinks at {speed:g} GB/s, expected {count}"
            yield Finding("nvlink", "NvlinkDown", text)
    apart = sorted(pair for pair, how in facts.topology.items() if pair[0] < pair[1] and how != f"NV{count}")
    if apart:
        first = f"GPU {apart[0][0]} and {apart[0][1]} by {facts.topology[apart[0]]}"
        yield Finding("nvlink", "NvlinkDown", f"{len(apart)} pairs of GPUs not joined by NV{count}: {first}")
