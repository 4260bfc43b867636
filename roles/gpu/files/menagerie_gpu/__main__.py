"""Prepare this host's NVIDIA GPUs for containers: driver, persistence, MIG, CDI. Idempotent; systemd retries it.

    menagerie-gpu                  prepare them; on a host without a GPU, only report that
    menagerie-gpu --check          only report what would be done; 2 if something would
    menagerie-gpu --change-driver  also install another branch than the loaded driver's

Placed by Menagerie's role gpu. Standard library only.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from .driver import hold, nouveau, package
from .edge import GPU, SWITCH, Edge, Refused, Step
from .mig import mig

SETTINGS = "/etc/menagerie/gpu.json"
SPEC = "/var/run/cdi/nvidia.yaml"


def needed(edge: Edge, settings: dict[str, Any], change: bool = False) -> list[Step]:
    """Return the next steps. Call it again after each round: only an installed driver can be queried."""
    stages: tuple[Callable[[], list[Step]], ...] = (
        lambda: [*nouveau(edge), *package(edge, settings, change), *hold(edge)],
        lambda: _modules(edge, settings),
        lambda: _units(edge, settings),
        lambda: mig(edge, settings),
    )
    return next((steps for stage in stages if (steps := stage())), [])


def _modules(edge: Edge, settings: dict[str, Any]) -> list[Step]:
    names = ["nvidia", "nvidia_uvm", *(["nvidia_peermem"] if settings["peermem"] else [])]
    missing = [name for name in names if not edge.exists(f"/sys/module/{name}")]

    def load(name: str) -> Callable[[], Any]:
        return lambda: edge.must("modprobe", name.replace("_", "-"))

    return [Step(f"load {name}", load(name)) for name in missing]


def _units(edge: Edge, settings: dict[str, Any]) -> list[Step]:
    units = ["nvidia-persistenced.service"] if settings["persistence"] else []
    units += ["nvidia-dcgm.service"] if settings["dcgm"] else []
    units += ["nvidia-fabricmanager.service"] if edge.devices(SWITCH) else []
    steps = []
    for unit in units:
        _, said = edge.run("systemctl", "show", unit, "--property", "LoadState,ActiveState,UnitFileState")
        state = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
        if state.get("LoadState") != "loaded":
            raise Refused(f"{unit} is missing; the driver's image or packages lack it")
        if state.get("ActiveState") != "active" or state.get("UnitFileState") == "disabled":
            steps.append(_start(edge, unit))
    return steps


def _start(edge: Edge, unit: str) -> Step:
    return Step(f"start {unit}", lambda: edge.must("systemctl", "enable", "--now", unit))


def converge(edge: Edge, settings: dict[str, Any], check: bool, change: bool) -> list[str]:
    """Return what was, or would be, done. Refused with the obstacle."""
    done: list[str] = []
    for _ in range(10):
        steps = needed(edge, settings, change)
        if check or not steps:
            return [*done, *(step.what for step in steps)]
        for step in steps:
            step.act()
            print(step.what, flush=True)
            done.append(step.what)
    raise Refused(f"these steps repeat without end: {', '.join(done[-3:])}")


def describe(edge: Edge) -> None:
    """Write the CDI specification again: device numbers may change at each boot, files with each driver."""
    edge.must("nvidia-ctk", "cdi", "generate", f"--output={SPEC}")


def main(arguments: list[str], edge: Edge) -> int:
    if unknown := set(arguments) - {"--check", "--change-driver"}:
        print(f"unknown: {', '.join(sorted(unknown))}\n{__doc__}", file=sys.stderr)
        return 1
    gpus = edge.devices(GPU)
    if not gpus:
        print("no NVIDIA GPU on PCI: nothing to do", flush=True)
        return 0
    settings = json.loads(edge.read(SETTINGS))
    check = "--check" in arguments
    done = converge(edge, settings, check, "--change-driver" in arguments)
    if check:
        print("\n".join(done) or "nothing to do", flush=True)
        return 2 if done else 0
    describe(edge)
    print(f"{len(gpus)} GPUs are ready", flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:], Edge()))
    except (Refused, OSError, ValueError, KeyError) as error:
        sys.exit(str(error) or repr(error))
