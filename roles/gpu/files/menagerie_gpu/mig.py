"""MIG: split GPUs into instances."""

from __future__ import annotations

import re
from typing import Any

from .edge import Edge, Refused, Step


def mig(edge: Edge, settings: dict[str, Any]) -> list[Step]:
    """Return the steps that give each GPU its mode and instances. Instances are gone after each reset or reboot."""
    if settings["mig"] == "leave":
        return []
    said = edge.must("nvidia-smi", "--query-gpu=index,mig.mode.current", "--format=csv,noheader")
    modes = dict(line.split(", ", 1) for line in said.splitlines() if ", " in line)
    lacking = [gpu for gpu, mode in modes.items() if mode.strip() not in ("Enabled", "Disabled")]
    if lacking:
        return [] if settings["mig"] == "off" else _no_mig(lacking)
    steps = []
    for gpu, mode in modes.items():
        on = mode.strip() == "Enabled"
        if on != (settings["mig"] == "on"):
            steps.append(_switch(edge, gpu, settings["mig"] == "on"))
        elif on and instances(edge, gpu) != sorted(settings["mig_profiles"]):
            steps.append(_cut(edge, gpu, settings["mig_profiles"]))
    return steps


def _no_mig(gpus: list[str]) -> list[Step]:
    raise Refused(f"GPU {', '.join(gpus)} has no MIG; set gpu_mig: leave")


def _switch(edge: Edge, gpu: str, on: bool) -> Step:
    def act() -> None:
        said = edge.must("nvidia-smi", "-i", gpu, "-mig", "1" if on else "0")
        if "pending" in said.lower():
            raise Refused(
                f"GPU {gpu}: MIG needs a reset: drain the host, then nvidia-smi --gpu-reset -i {gpu}, or reboot"
            )

    return Step(f"MIG {'on' if on else 'off'} on GPU {gpu}", act)


def instances(edge: Edge, gpu: str) -> list[str]:
    """Return the sorted profiles of a GPU's instances, such as 1g.10gb."""
    _, said = edge.run("nvidia-smi", "mig", "-i", gpu, "-lgi")
    return sorted(re.findall(r"MIG (\S+)", said))


def _cut(edge: Edge, gpu: str, profiles: list[str]) -> Step:
    def act() -> None:
        if instances(edge, gpu):
            edge.run("nvidia-smi", "mig", "-i", gpu, "-dci")
            edge.must("nvidia-smi", "mig", "-i", gpu, "-dgi")
        if profiles:
            edge.must("nvidia-smi", "mig", "-i", gpu, "-cgi", ",".join(profiles), "-C")

    return Step(f"cut GPU {gpu} into {', '.join(profiles) or 'nothing'}", act)
