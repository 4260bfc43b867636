"""Check whether this machine can hold a lab; report every problem at once, before anything starts."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from sandbox.lab import cgroups, networks, rootfs, shell, state
from sandbox.lab.errors import LabError
from sandbox.lab.plan import LabSpec

MEMORY_BYTES = 6 * 2**30
"""The measured memory of a lab of eleven hosts, plus a third."""
DISK_BYTES = 8 * 2**30
_PACKAGES = Path(__file__).parent / "packages.txt"
_PROGRAMS = {
    "debootstrap": "debootstrap",
    "ip": "iproute2",
    "nft": "nftables",
    "nsenter": "util-linux",
    "ssh-keygen": "openssh-client",
    "sysctl": "procps",
    "systemd-nspawn": "systemd-container",
}


@dataclass(frozen=True)
class Machine:
    """The properties that preflight checks. Sizes in bytes; `memory` and `disk` are free space.

    routes: destination -> interface. missing_programs: Debian package names.
    lab_lives: this checkout's lab is already running, so its memory and disk are already in use.
    """

    uid: int
    system: str
    memory: int
    disk: int
    routes: Mapping[IPv4Network, str]
    filesystems: frozenset[str]
    has_cgroups: bool
    lab_lives: bool = False
    missing_programs: tuple[str, ...] = ()
    missing_features: tuple[str, ...] = ()


def check(spec: LabSpec | None = None) -> None:
    """Raise LabError with every reason why this machine cannot hold the lab.

    Raises ForeignLabError first, when another checkout's lab occupies the machine.
    """
    if sys.platform == "linux":
        state.refuse_foreign()
    if reasons := problems(observe(), spec):
        raise unfit(reasons)


def unfit(reasons: Sequence[str]) -> LabError:
    """Return the error for a machine that cannot hold a lab, with all reasons."""
    listed = "\n".join(f"  - {reason}" for reason in reasons)
    return LabError(f"this machine cannot hold a lab:\n{listed}", code="machine-unfit")


def observe() -> Machine:
    """Return this machine's present state. Leaves no lasting change."""
    linux = sys.platform == "linux"
    root = linux and os.geteuid() == 0
    filesystems = Path("/proc/filesystems").read_text().split() if linux else []
    return Machine(
        uid=os.geteuid(),
        system=sys.platform,
        memory=_available_memory() if linux else 0,
        disk=_free_disk(state.root()),
        routes=_routes() if linux and shutil.which("ip") else {},
        filesystems=frozenset(filesystems),
        has_cgroups=linux and bool(cgroups.hierarchies()),
        lab_lives=root and state.is_live(state.lab_id()),
        missing_programs=tuple(sorted({package for name, package in _PROGRAMS.items() if shutil.which(name) is None})),
        missing_features=_missing_features() if root else (),
    )


def problems(machine: Machine, spec: LabSpec | None = None) -> tuple[str, ...]:
    """Return every reason against a lab on the machine, each with a way out."""
    if machine.system != "linux":
        return (
            f"the lab needs Linux, but this machine runs {machine.system}; use a Debian 12 or 13 machine or virtual machine",
        )
    return (
        *_rights(machine),
        *(() if machine.lab_lives else _room(machine)),
        *_kernel(machine),
        *(_clashes(machine.routes, spec) if spec else ()),
    )


def _rights(machine: Machine) -> Sequence[str]:
    reasons = []
    if machine.uid != 0:
        reasons.append("the lab creates network namespaces and mounts, which needs root; run it with sudo")
    if machine.missing_programs:
        packages = " ".join(machine.missing_programs)
        reasons.append(f"Debian packages are missing; run `apt-get install --no-install-recommends {packages}`")
    return reasons


def _room(machine: Machine) -> Sequence[str]:
    requirements = (
        ("memory", machine.memory, MEMORY_BYTES),
        (f"disk space at {state.root()}", machine.disk, DISK_BYTES),
    )
    return [
        f"{have / 2**30:.1f} GiB of {what} free, but the lab needs {need / 2**30:.0f} GiB; free some, or use a larger machine"
        for what, have, need in requirements
        if have < need
    ]


def _kernel(machine: Machine) -> Sequence[str]:
    reasons = []
    if "overlay" not in machine.filesystems and "overlayfs" in machine.missing_features:
        reasons.append("the kernel has no overlay file system; use one with CONFIG_OVERLAY_FS")
    if not machine.has_cgroups:
        reasons.append("no cgroup hierarchy is mounted at /sys/fs/cgroup; mount it, or start the machine with systemd")
    needs = {feature: text for feature, text in _FEATURES.items() if feature in machine.missing_features}
    return [*reasons, *needs.values()]


def _clashes(routes: Mapping[IPv4Network, str], spec: LabSpec) -> Sequence[str]:
    return [
        f"{name} {network} overlaps the machine's own route {route} through {interface}; "
        + (
            "free that range on the machine"
            if name.startswith("lab ")
            else "choose another range in the cluster's cluster.yaml"
        )
        for name, network in spec.ranges().items()
        for route, interface in routes.items()
        if route.prefixlen and route.overlaps(network) and not networks.is_uplink(interface)
    ]


_FEATURES = {
    "veth": "the kernel cannot make veth pairs in network namespaces; use one with CONFIG_VETH and CONFIG_NET_NS",
    "bridge": "the kernel cannot make bridges; use one with CONFIG_BRIDGE",
    "vxlan": "the kernel cannot make VXLAN interfaces, which flannel needs; use one with CONFIG_VXLAN",
    "nftables": "the kernel has no nftables with NAT and ingress hooks; use one with CONFIG_NF_TABLES, _INET, "
    "_NETDEV, CONFIG_NFT_NAT and CONFIG_NFT_MASQ",
    "loop": "the machine has no loop devices, which storage hosts need as disks; use a kernel with CONFIG_BLK_DEV_LOOP, and "
    "not a container without /dev/loop-control",
}
_NFT_PROBE = """
table inet probe {
    chain out { type nat hook postrouting priority srcnat; masquerade; }
    chain through { type filter hook forward priority filter; ct state established accept; }
}
table netdev probe {
    chain in { type filter hook ingress device "lo" priority filter; ip saddr 127.0.0.1 accept; }
}
"""


def _missing_features() -> tuple[str, ...]:
    # Each probe runs in a namespace that is gone when the command ends, and loads the kernel's module.
    def probe(*argv: str) -> Callable[[], bool]:
        return lambda: shell.succeeds("unshare", "--net", *argv)

    probes: dict[str, Callable[[], bool]] = {
        "overlayfs": lambda: shell.succeeds("modprobe", "overlay"),
        "veth": probe("ip", "link", "add", "probe0", "type", "veth", "peer", "name", "probe1"),
        "bridge": probe("ip", "link", "add", "probe0", "type", "bridge"),
        "vxlan": probe("ip", "link", "add", "probe0", "type", "vxlan", "id", "1", "dstport", "8472"),
        "nftables": probe("nft", _NFT_PROBE),
        "loop": lambda: Path("/dev/loop-control").exists() or shell.succeeds("modprobe", "loop"),
    }
    return tuple(name for name, works in probes.items() if not _quietly(works))


def _quietly(works: Callable[[], bool]) -> bool:
    try:
        return works()
    except FileNotFoundError:
        # A missing program is reported separately.
        return True


def _available_memory() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def _free_disk(folder: Path) -> int:
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def _routes() -> dict[IPv4Network, str]:
    routes = {}
    for line in shell.run("ip", "-4", "route", "show", "table", "main").splitlines():
        words = line.split()
        if words and "dev" in words and words[0][0].isdigit():
            routes[IPv4Network(words[0], strict=False)] = words[words.index("dev") + 1]
    return routes


def packages() -> tuple[str, ...]:
    """Return the Debian packages that the machine needs."""
    return rootfs.read_list(_PACKAGES)
