#!/usr/bin/python3
"""Report what this machine's boot loader and firmware set: NUMA, IOMMU, ACS, CPU speed. Changes nothing.

    menagerie-host-report [--json]      0, or 1 if something slows GPUs or RDMA cards

Placed by Menagerie's role hardening. Standard library only; only root can read ACS.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
from pathlib import Path

SYS, CMDLINE = Path("/sys"), Path("/proc/cmdline")
ACS = 0x000D
"""The extended capability (PCI Express Base Specification, 7.7.11); its control register is at byte 6."""
REDIRECTS = {0x04: "request redirect", 0x08: "completion redirect"}
"""Bits that send writes between two devices through the root complex, past their common switch. Upstream forwarding
(0x10) only passes on what a bridge below has redirected."""
KINDS = {0x0300: "gpu", 0x0302: "gpu", 0x0200: "network", 0x0207: "network", 0x0604: "bridge"}
WORDS = (
    "iommu",
    "intel_iommu",
    "amd_iommu",
    "numa_balancing",
    "pci",
    "isolcpus",
    "nohz_full",
    "hugepages",
    "mitigations",
)


def text(path):
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def acs(config):
    """Return the ACS control register of a device's configuration space; None without one, or if only root sees it."""
    at = 0x100
    while at and len(config) >= at + 8:
        (header,) = struct.unpack_from("<I", config, at)
        if header & 0xFFFF == ACS:
            return struct.unpack_from("<H", config, at + 6)[0]
        following = header >> 20
        at = following if following > at else 0
    return None


def devices(sys_folder=SYS):
    """Return GPUs, network cards and bridges, by PCI address."""
    by_address = {}
    for path in sorted((sys_folder / "bus/pci/devices").glob("*")):
        kind = KINDS.get(int(text(path / "class") or "0", 16) >> 8)
        if kind:
            try:
                config = (path / "config").read_bytes()
            except OSError:
                config = b""
            by_address[path.name] = {"kind": kind, "node": int(text(path / "numa_node") or -1), "acs": acs(config)}
    return by_address


def report(sys_folder=SYS, cmdline=CMDLINE):
    """Return the facts, and `slow`: what costs speed, a sentence each."""
    nodes = sorted((sys_folder / "devices/system/node").glob("node[0-9]*"), key=lambda path: int(path.name[4:]))
    groups = list((sys_folder / "kernel/iommu_groups").glob("[0-9]*"))
    governors = {text(path) for path in (sys_folder / "devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")}
    by_address = devices(sys_folder)
    shown = {name: device for name, device in by_address.items() if device["kind"] != "bridge"}
    redirecting = {
        name: [word for bit, word in REDIRECTS.items() if device["acs"] & bit]
        for name, device in by_address.items()
        if device["kind"] == "bridge" and device["acs"]
    }
    redirecting = {name: words for name, words in redirecting.items() if words}
    facts = {
        "numa": {path.name: text(path / "cpulist") for path in nodes},
        "numa_balancing": text(Path("/proc/sys/kernel/numa_balancing")),
        "iommu": {"groups": len(groups), "types": sorted({text(group / "type") for group in groups} - {""})},
        "acs_redirects": redirecting,
        "governors": sorted(governors - {""}),
        "boot": [word for word in text(cmdline).split() if word.partition("=")[0].partition(".")[0] in WORDS],
        "devices": {name: {"kind": device["kind"], "node": device["node"]} for name, device in shown.items()},
    }
    return {**facts, "slow": list(slow(facts))}


def slow(facts):
    """Yield what costs speed between GPUs and cards; nothing without a GPU."""
    devices = facts["devices"].values()
    if not any(device["kind"] == "gpu" for device in devices):
        return
    if facts["acs_redirects"]:
        yield (
            f"ACS sends writes between GPUs and cards through the root complex, at {len(facts['acs_redirects'])} "
            "bridges: set pools.<name>.kernel.acs_redirect: false, unless virtual machines share the host"
        )
    if any(kind.startswith("DMA") for kind in facts["iommu"]["types"]):
        yield (
            "the IOMMU translates every access of devices: set pools.<name>.kernel.iommu: passthrough, unless virtual "
            "machines share the host"
        )
    if len(facts["numa"]) > 1 and any(device["node"] < 0 for device in devices):
        yield "the firmware doesn't say which NUMA node a GPU or card is on: the topology manager can't align pods"
    if facts["governors"] and facts["governors"] != ["performance"]:
        yield f"CPUs run under {', '.join(facts['governors'])}: see hardening_governor"


def main():
    parser = argparse.ArgumentParser(prog="menagerie-host-report", description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    facts = report()
    if parser.parse_args().json:
        print(json.dumps(facts, indent=2))
    else:
        for name, value in facts.items():
            for line in value if name == "slow" else [json.dumps(value)]:
                print(f"{name}: {line}")
    sys.exit(1 if facts["slow"] else 0)


if __name__ == "__main__":
    main()
