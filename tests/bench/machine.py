"""The machine of a measurement, and its load."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Machine:
    """cores: number that this process may use. memory_gib: total memory."""

    cpu: str
    cores: int
    memory_gib: float
    kernel: str

    def to_json(self) -> dict[str, object]:
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.cpu}, {self.cores} cores, {self.memory_gib:.1f} GiB, Linux {self.kernel}"


def read(cpuinfo: Path = Path("/proc/cpuinfo"), meminfo: Path = Path("/proc/meminfo")) -> Machine:
    """Return this machine."""
    model = _value(cpuinfo.read_text(), "model name") or platform.machine()
    kilobytes = int(_value(meminfo.read_text(), "MemTotal").split()[0])
    return Machine(model, len(os.sched_getaffinity(0)), kilobytes / 2**20, platform.release())


def load() -> float:
    """Return the average number of runnable processes over the last minute."""
    return os.getloadavg()[0]


def cpu_s(stat: Path = Path("/proc/stat")) -> tuple[float, float]:
    """Return the CPU time of all cores since the boot: busy, and in all."""
    # proc_stat(5): user, nice, system, idle, iowait, irq, softirq, steal, in hundredths of a second.
    ticks = [int(each) for each in stat.read_text().split("\n", 1)[0].split()[1:9]]
    idle = ticks[3] + ticks[4]
    return (sum(ticks) - idle) / 100, sum(ticks) / 100


def _value(text: str, key: str) -> str:
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return ""
