#!/usr/bin/python3
"""Makes NVIDIA's GPUs of this host ready for containers: driver, persistence, MIG, CDI. Safe to repeat; systemd does.

    menagerie-gpu                  make it so; a host without a GPU is left alone, and says so
    menagerie-gpu --check          only say what would be done; 2 where something would
    menagerie-gpu --change-driver  as without it, and another branch than the loaded driver's is installed too

Placed by Menagerie's role gpu. Standard library only.
"""

from __future__ import annotations

import glob
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

SETTINGS = "/etc/menagerie/gpu.json"
SPEC = "/var/run/cdi/nvidia.yaml"
KEYRING = "/etc/apt/keyrings/menagerie-nvidia.asc"
SOURCES = "/etc/apt/sources.list.d/menagerie-nvidia.sources"
PIN = "/etc/apt/preferences.d/menagerie-nvidia"
# What comes with the driver in NVIDIA's and in Debian's packages, and must stay of one version.
DRIVERS = re.compile(
    r"(lib)?nvidia-(?!container)|cuda-drivers|libcuda1|libcudadebugger1|firmware-nvidia|xserver-xorg-video-nvidia"
)
GPU, SWITCH = "0x03", "0x0680"
NVIDIA = "0x10de"
APT = ["apt-get", "--yes", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"]


class Refused(Exception):
    """What keeps the GPUs from being made ready, for who has to mend it."""


class Edge:
    """The host's files and programs."""

    def __init__(self, root: str = "/") -> None:
        self.root = root

    def at(self, path: str) -> str:
        return os.path.join(self.root, path.lstrip("/"))

    def read(self, path: str) -> str:
        try:
            with open(self.at(path)) as handle:
                return handle.read()
        except OSError:
            return ""

    def write(self, path: str, text: str) -> None:
        os.makedirs(os.path.dirname(self.at(path)), exist_ok=True)
        with open(self.at(path + ".new"), "w") as handle:
            handle.write(text)
        os.replace(self.at(path + ".new"), self.at(path))

    def exists(self, path: str) -> bool:
        return os.path.lexists(self.at(path))

    def devices(self, kind: str) -> list[str]:
        """PCI addresses of NVIDIA's devices of a class."""
        found = []
        for path in sorted(glob.glob(self.at("/sys/bus/pci/devices/*"))):
            name = os.path.basename(path)
            vendor, own = (self.read(f"/sys/bus/pci/devices/{name}/{file}").strip() for file in ("vendor", "class"))
            if vendor == NVIDIA and own.startswith(kind):
                found.append(name)
        return found

    def run(self, *words: str) -> tuple[int, str]:
        """Exit code and all that a command said; 127 where there is none."""
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
        try:
            done = subprocess.run(words, check=False, stdin=subprocess.DEVNULL, capture_output=True, env=environment)
        except FileNotFoundError:
            return 127, f"{words[0]} is not here"
        return done.returncode, (done.stdout + done.stderr).decode(errors="replace")

    def must(self, *words: str) -> str:
        code, said = self.run(*words)
        if code:
            raise Refused(f"{' '.join(words)}: {' '.join(said.split())[-600:]}")
        return said


class Step(NamedTuple):
    """Something to be done. act: does it."""

    what: str
    act: Callable[[], Any]


def needed(edge: Edge, told: dict[str, Any], change: bool = False) -> list[Step]:
    """What is to be done next. It is asked again after each, for a driver must be there before it can be asked."""
    stages: tuple[Callable[[], list[Step]], ...] = (
        lambda: [*_nouveau(edge), *_driver(edge, told, change), *_hold(edge)],
        lambda: _modules(edge, told),
        lambda: _units(edge, told),
        lambda: _mig(edge, told),
    )
    return next((steps for stage in stages if (steps := stage())), [])


def _nouveau(edge: Edge) -> list[Step]:
    if not edge.exists("/sys/module/nouveau"):
        return []

    def unload() -> None:
        code, said = edge.run("modprobe", "--remove", "nouveau")
        if code:
            way = "reboot: /etc/modprobe.d/menagerie-gpu.conf keeps it away then"
            raise Refused(f"nouveau holds the GPU and can't be unloaded ({' '.join(said.split())}); {way}")

    return [Step("unload nouveau", unload)]


def installed(edge: Edge) -> dict[str, str]:
    """Debian package -> version, of those that are installed."""
    _, said = edge.run("dpkg-query", "--show", "--showformat", "${db:Status-Abbrev} ${Package} ${Version}\\n")
    rows = [line.split() for line in said.splitlines() if line.startswith(("ii", "hi"))]
    return {row[1]: row[2] for row in rows if len(row) == 3}


def branch_of(version: str) -> str:
    """580.95.05-1 -> 580; a package may have an epoch before it."""
    return version.rpartition(":")[2].split(".")[0]


def _driver(edge: Edge, told: dict[str, Any], change: bool) -> list[Step]:
    driver = told["driver"]
    if driver["source"] == "image":
        return []
    packages = installed(edge)
    wanted = [*driver["packages"], *told["packages"]]
    if edge.devices(SWITCH):
        wanted += told["fabric_manager"]
    other = {
        name: packages[name]
        for name in driver["packages"]
        if branch_of(packages.get(name, "")) not in ("", driver["branch"])
    }
    missing = [name for name in wanted if name not in packages]
    if not other and not missing:
        return []
    loaded = edge.read("/sys/module/nvidia/version").strip()
    if other and loaded and not change:
        way = "drain the host, run menagerie-gpu --change-driver, and reboot it"
        raise Refused(f"driver {loaded} is loaded, branch {driver['branch']} is wanted; {way}")
    return [Step(f"install {', '.join([*other, *missing])}", lambda: _install(edge, driver, wanted))]


def _install(edge: Edge, driver: dict[str, Any], wanted: list[str]) -> None:
    for path, text in apt_files(driver).items():
        edge.write(path, text)
    edge.must(*APT, "update")
    for name in driver["packages"]:
        said = edge.must("apt-cache", "policy", name)
        found = re.search(r"Candidate: (\S+)", said)
        has = found[1] if found else "(none)"
        if branch_of(has) != driver["branch"]:
            raise Refused(f"no package {name} of branch {driver['branch']}: apt has {has}; is the repository right?")
    headers = f"linux-headers-{os.uname().release}"
    edge.must(*APT, "install", "--allow-change-held-packages", "--allow-downgrades", headers, *wanted)


def apt_files(driver: dict[str, Any]) -> dict[str, str]:
    """Where the driver comes from, and of which branch it must be (apt_preferences(5): 1001 may also downgrade)."""
    files = {PIN: f"Package: *nvidia* cuda-drivers* libcuda*\nPin: version {driver['branch']}.*\nPin-Priority: 1001\n"}
    if driver["source"] == "nvidia" and driver.get("key"):
        files[KEYRING] = driver["key"]
        files[SOURCES] = f"Types: deb\nURIs: {driver['repository']}\nSuites: /\nSigned-By: {KEYRING}\n"
    return files


def _hold(edge: Edge) -> list[Step]:
    """An update of the driver under running pods would leave a library that doesn't fit the loaded module."""
    ours = {name for name in installed(edge) if DRIVERS.match(name)}
    held = set(edge.run("apt-mark", "showhold")[1].split())
    free = sorted(ours - held)
    return [Step(f"hold {', '.join(free)}", lambda: edge.must("apt-mark", "hold", *free))] if free else []


def _modules(edge: Edge, told: dict[str, Any]) -> list[Step]:
    names = ["nvidia", "nvidia_uvm", *(["nvidia_peermem"] if told["peermem"] else [])]
    missing = [name for name in names if not edge.exists(f"/sys/module/{name}")]

    def load(name: str) -> Callable[[], Any]:
        return lambda: edge.must("modprobe", name.replace("_", "-"))

    return [Step(f"load {name}", load(name)) for name in missing]


def _units(edge: Edge, told: dict[str, Any]) -> list[Step]:
    units = ["nvidia-persistenced.service"] if told["persistence"] else []
    units += ["nvidia-dcgm.service"] if told["dcgm"] else []
    units += ["nvidia-fabricmanager.service"] if edge.devices(SWITCH) else []
    steps = []
    for unit in units:
        _, said = edge.run("systemctl", "show", unit, "--property", "LoadState,ActiveState,UnitFileState")
        state = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
        if state.get("LoadState") != "loaded":
            raise Refused(f"{unit} is not here; the driver's image or packages lack it")
        if state.get("ActiveState") != "active" or state.get("UnitFileState") == "disabled":
            steps.append(_start(edge, unit))
    return steps


def _start(edge: Edge, unit: str) -> Step:
    return Step(f"start {unit}", lambda: edge.must("systemctl", "enable", "--now", unit))


def _mig(edge: Edge, told: dict[str, Any]) -> list[Step]:
    """Cuts each GPU that is not cut so. MIG is a GPU's mode; instances are gone with each reset or reboot."""
    if told["mig"] == "leave":
        return []
    said = edge.must("nvidia-smi", "--query-gpu=index,mig.mode.current", "--format=csv,noheader")
    modes = dict(line.split(", ", 1) for line in said.splitlines() if ", " in line)
    lacking = [gpu for gpu, mode in modes.items() if mode.strip() not in ("Enabled", "Disabled")]
    if lacking:
        return [] if told["mig"] == "off" else _no_mig(lacking)
    steps = []
    for gpu, mode in modes.items():
        on = mode.strip() == "Enabled"
        if on != (told["mig"] == "on"):
            steps.append(_switch(edge, gpu, told["mig"] == "on"))
        elif on and instances(edge, gpu) != sorted(told["mig_profiles"]):
            steps.append(_cut(edge, gpu, told["mig_profiles"]))
    return steps


def _no_mig(gpus: list[str]) -> list[Step]:
    raise Refused(f"GPU {', '.join(gpus)} has no MIG; set gpu_mig: leave")


def _switch(edge: Edge, gpu: str, on: bool) -> Step:
    def act() -> None:
        said = edge.must("nvidia-smi", "-i", gpu, "-mig", "1" if on else "0")
        if "pending" in said.lower():
            raise Refused(
                f"GPU {gpu}: MIG waits for a reset: drain the host, then nvidia-smi --gpu-reset -i {gpu}, or reboot"
            )

    return Step(f"MIG {'on' if on else 'off'} on GPU {gpu}", act)


def instances(edge: Edge, gpu: str) -> list[str]:
    """Profiles of a GPU's instances, sorted: 1g.10gb."""
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


def converge(edge: Edge, told: dict[str, Any], check: bool, change: bool) -> list[str]:
    """What was done, or would be. Raises Refused with what stands in the way."""
    done: list[str] = []
    for _ in range(10):
        steps = needed(edge, told, change)
        if check or not steps:
            return [*done, *(step.what for step in steps)]
        for step in steps:
            step.act()
            print(step.what, flush=True)
            done.append(step.what)
    raise Refused(f"this does not come to an end: {', '.join(done[-3:])}")


def describe(edge: Edge) -> None:
    """Write the CDI specification anew: device numbers may change with each boot, files with each driver."""
    edge.must("nvidia-ctk", "cdi", "generate", f"--output={SPEC}")


def main(arguments: list[str], edge: Edge) -> int:
    if unknown := set(arguments) - {"--check", "--change-driver"}:
        print(f"unknown: {', '.join(sorted(unknown))}\n{__doc__}", file=sys.stderr)
        return 1
    gpus = edge.devices(GPU)
    if not gpus:
        print("no NVIDIA GPU on PCI: nothing is done here", flush=True)
        return 0
    told = json.loads(edge.read(SETTINGS))
    check = "--check" in arguments
    done = converge(edge, told, check, "--change-driver" in arguments)
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
