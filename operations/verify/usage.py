"""What a pod uses: by the metrics API, and by its own control group, which it writes once a second. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from kubernetes.utils.quantity import parse_quantity

# Each line: seconds, microseconds of CPU, bytes in use without those that the kernel can drop, as the kubelet counts them. The lab's
# hosts have version 1 of control groups if the machine has it.
SCRIPT = """\
dd if=/dev/zero of=/load/kept bs=1M count=48 2>/dev/null
while :; do :; done &
cd /sys/fs/cgroup
while :; do
  if [ -f cpu.stat ]; then
    read -r _ cpu < cpu.stat
    used=$(cat memory.current) idle=$(sed -n 's/^inactive_file //p' memory.stat)
  else
    cpu=$(( $(cat cpuacct/cpuacct.usage) / 1000 ))
    used=$(cat memory/memory.usage_in_bytes) idle=$(sed -n 's/^total_inactive_file //p' memory/memory.stat)
  fi
  echo "$(date +%s) $cpu $((used - idle))"
  sleep 1
done
"""
_SPAN = re.compile(r"([0-9.]+)(h|ms|m|s)")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


@dataclass(frozen=True)
class Sample:
    """What a pod's own control group says. at: Unix time. cpu_s: used since its start."""

    at: float
    cpu_s: float
    memory: float


@dataclass(frozen=True)
class Usage:
    """A pod's use by the metrics API. ends: Unix time. cpu: cores, over the window."""

    ends: float
    window_s: float
    cpu: float
    memory: float

    @classmethod
    def of(cls, thing: dict[str, Any]) -> Usage:
        """Read a PodMetrics with one container. Its time is in whole seconds, so half of one is added."""
        (container,) = thing["containers"]
        return cls(
            datetime.fromisoformat(thing["timestamp"]).timestamp() + 0.5,
            sum(float(number) * _UNITS[unit] for number, unit in _SPAN.findall(thing["window"])),
            float(parse_quantity(container["usage"]["cpu"])),
            float(parse_quantity(container["usage"]["memory"])),
        )


def samples(log: str) -> list[Sample]:
    """Read the lines of `SCRIPT`. Its time is in whole seconds, too."""
    numbers = [[float(word) for word in line.split()] for line in log.splitlines() if len(line.split()) == 3]
    return [Sample(at + 0.5, cpu / 1e6, memory) for at, cpu, memory in numbers]


def own_usage(taken: Sequence[Sample], usage: Usage) -> tuple[float, float] | None:
    """Return (cores over the window of `usage`, bytes at its end) by a pod's own samples, None if they do not cover it."""
    ends = [_between(taken, at) for at in (usage.ends - usage.window_s, usage.ends)]
    if ends[0] is None or ends[1] is None:
        return None
    return (ends[1].cpu_s - ends[0].cpu_s) / usage.window_s, ends[1].memory


def _between(taken: Sequence[Sample], at: float) -> Sample | None:
    for one, next_ in pairwise(taken):
        if one.at <= at <= next_.at and next_.at > one.at:
            share = (at - one.at) / (next_.at - one.at)
            return Sample(at, one.cpu_s + share * (next_.cpu_s - one.cpu_s), next_.memory)
    return None
