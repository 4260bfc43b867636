"""Access to the host: the only file here that reads /sys and /proc, and runs other programs."""

from __future__ import annotations

import glob
import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from typing import Any

from . import smi
from .compare import Disk, Facts, Port
from .xid import Xid, bus_id, parse

SETTINGS = "/etc/menagerie/preflight.json"
CLEARED = "/run/menagerie/preflight-cleared"
"""Xids up to the time of this file are cleared. The next boot removes the file, and resets the Xids too."""
PASSED = "/run/menagerie-preflight/passed"
"""The result of the last check: the status of its condition. Role node_metrics serves it with its time."""
NVIDIA, DISPLAY = "0x10de", "0x03"
TOOL_S = 60
DIAGNOSTIC_S = 300
SECTOR = 512
"""Unit of /sys/block/*/size in bytes, whatever the disk's sector size (Documentation/ABI/stable/sysfs-block)."""
NO_DISKS = ("loop", "ram", "dm-", "md", "zram", "sr", "nbd", "fd", "drbd", "rbd")


class Host:
    """root: where the host's file system is, for tests."""

    def __init__(self, root: str = "/") -> None:
        self.root = root

    def at(self, path: str) -> str:
        return os.path.join(self.root, path.lstrip("/"))

    def read(self, path: str) -> str:
        """Return a file's text; "" without the file, or if reading fails (EINVAL for the speed of a down link)."""
        try:
            with open(self.at(path)) as handle:
                return handle.read().strip()
        except OSError:
            return ""

    def names(self, pattern: str) -> list[str]:
        return sorted("/" + os.path.relpath(path, self.root) for path in glob.glob(self.at(pattern)))

    def run(self, words: list[str], timeout_s: float = TOOL_S) -> tuple[int, str]:
        """Return exit code and output. 127: no such program; 124: time-out."""
        try:
            done = subprocess.run(words, check=False, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s)
        except FileNotFoundError:
            return 127, f"{words[0]} is missing"
        except subprocess.TimeoutExpired:
            return 124, f"{words[0]} did not answer in {timeout_s:g} s"
        return done.returncode, (done.stdout or done.stderr).decode(errors="replace")

    def lines(self, words: list[str]) -> Iterator[str]:
        """Yield a command's output line by line: the kernel's log may be long."""
        try:
            process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        except FileNotFoundError:
            return
        with process:
            assert process.stdout
            for line in process.stdout:
                yield line.decode(errors="replace")


def settings(host: Host) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(host.read(SETTINGS) or "{}")
    return values


def facts(host: Host, expected: dict[str, Any], skew_s: float | None, diagnose: bool) -> Facts:
    """Collect all that is compared. diagnose: whether DCGM may use the GPUs."""
    gpus = pci_gpus(host)
    without_gpus = Facts(
        sockets=len(
            {host.read(path) for path in host.names("/sys/devices/system/cpu/cpu*/topology/physical_package_id")}
        ),
        cpus=cpus(host.read("/sys/devices/system/cpu/online")),
        memory_kib=memory_kib(host.read("/proc/meminfo")),
        disks=tuple(disks(host)),
        links=tuple(links(host)),
        rdma=tuple(rdma(host)),
        pci_gpus=gpus,
        skew_s=skew_s,
    )
    return _with_gpus(host, without_gpus, diagnose) if expected.get("gpus") else without_gpus


def cpus(online: str) -> int:
    """Count the CPUs in /sys/devices/system/cpu/online, such as 0-95,128-223."""
    ranges = [part.split("-") for part in online.split(",") if part]
    return sum(int(each[-1]) - int(each[0]) + 1 for each in ranges)


def memory_kib(meminfo: str) -> int:
    return next((int(line.split()[1]) for line in meminfo.splitlines() if line.startswith("MemTotal:")), 0)


def disks(host: Host) -> Iterator[Disk]:
    for path in host.names("/sys/block/*"):
        name = os.path.basename(path)
        # One path to a namespace of an NVMe disk with multipath (nvme0c0n1) is no disk of its own.
        if name.startswith(NO_DISKS) or (name.startswith("nvme") and "c" in name[4:]):
            continue
        yield Disk(name, int(host.read(f"{path}/size") or 0) * SECTOR, name.startswith("nvme"))


def links(host: Host) -> Iterator[Port]:
    """Yield the cards' ports, without virtual functions; bridges and tunnels have no device."""
    for path in host.names("/sys/class/net/*"):
        # ARPHRD_ETHER is 1, ARPHRD_INFINIBAND 32 (include/uapi/linux/if_arp.h).
        card = os.path.lexists(host.at(f"{path}/device")) and not os.path.lexists(host.at(f"{path}/device/physfn"))
        if card and host.read(f"{path}/type") == "1":
            speed = int(host.read(f"{path}/speed") or -1)
            up = host.read(f"{path}/operstate") == "up"
            yield Port(os.path.basename(path), max(speed, 0) / 1000, up)


def rdma(host: Host) -> Iterator[Port]:
    """Yield RDMA ports. rate: "400 Gb/sec (4X NDR)", state: "4: ACTIVE"
    (Documentation/ABI/stable/sysfs-class-infiniband)."""
    for path in host.names("/sys/class/infiniband/*/ports/*"):
        device, port = path.split("/")[-3], path.split("/")[-1]
        rate = host.read(f"{path}/rate").split(" ")[0]
        yield Port(f"{device}/{port}", float(rate or 0), host.read(f"{path}/state").endswith("ACTIVE"))


def pci_gpus(host: Host) -> tuple[str, ...]:
    """Return bus addresses of NVIDIA's display controllers: VGA (0300) and 3D (0302)."""
    return tuple(
        bus_id(os.path.basename(path))
        for path in host.names("/sys/bus/pci/devices/*")
        if host.read(f"{path}/vendor") == NVIDIA and host.read(f"{path}/class").startswith(DISPLAY)
    )


def _with_gpus(host: Host, facts: Facts, diagnose: bool) -> Facts:
    code, output = host.run(["nvidia-smi", "-q", "-x"])
    if code:
        return facts._replace(smi_said=f"nvidia-smi: {' '.join(output.split())[:300]}")
    try:
        read = smi.parse(output)
    except ValueError as error:
        return facts._replace(smi_said=str(error))
    _, status = host.run(["nvidia-smi", "nvlink", "--status"])
    _, joined = host.run(["nvidia-smi", "topo", "-m"])
    said = tuple(diagnostic(host)) if diagnose else ()
    return facts._replace(smi=read, nvlinks=smi.nvlinks(status), topology=smi.topology(joined), diagnostic=said)


def diagnostic(host: Host) -> Iterator[str]:
    """Run DCGM's level 1, the one for readiness, which takes seconds. Yield failures; none on a host without DCGM."""
    code, output = host.run(["dcgmi", "diag", "--run", "1", "--json"], DIAGNOSTIC_S)
    if code in (124, 127):
        if code == 124:
            yield output
        return
    try:
        yield from failures(json.loads(output))
    except ValueError:
        if code:
            yield f"dcgmi diag exited with {code}: {' '.join(output.split())[:300]}"


def failures(part: Any, under: str = "") -> Iterator[str]:
    """Yield failures from the diagnostic's JSON. Its shape depends on DCGM's version, so look for any failed status."""
    if isinstance(part, dict):
        name = str(part.get("name") or part.get("test_name") or under)
        if str(part.get("status", "")).lower() == "fail":
            messages = part.get("warnings") or part.get("info") or ""
            yield f"{name}: {' '.join(_words(messages))}".rstrip(": ")
            return
        for value in part.values():
            yield from failures(value, name)
    elif isinstance(part, list):
        for value in part:
            yield from failures(value, under)


def _words(messages: Any) -> Iterable[str]:
    if isinstance(messages, dict):
        return [word for key, value in messages.items() if key in ("warning", "message") for word in _words(value)]
    if isinstance(messages, list):
        return [word for each in messages for word in _words(each)]
    return [str(messages)] if messages else []


def kernel_log(host: Host) -> Iterator[Xid]:
    """Yield this boot's Xids, with Unix times. The reboot has cleared earlier ones."""
    return parse(host.lines(["journalctl", "--dmesg", "--boot", "--output=short-unix", "--no-pager", "--quiet"]))


def record(host: Host, status: str) -> None:
    """Keep the result of a check, if it has one. Written as a whole: it may be read at any time."""
    if status in ("True", "False"):
        path = host.at(PASSED)
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        with open(f"{path}.new", "w") as handle:
            handle.write(f"{status}\n")
        os.replace(f"{path}.new", path)


def cleared(host: Host) -> float:
    """Return the Unix time when the GPUs were last marked as repaired; 0 for never."""
    try:
        return os.stat(host.at(CLEARED)).st_mtime
    except OSError:
        return 0.0
