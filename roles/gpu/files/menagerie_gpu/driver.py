"""The driver: one branch, one source, its packages on hold, and never changed under running pods."""

from __future__ import annotations

import os
import re
from typing import Any

from .edge import SWITCH, Edge, Refused, Step

KEYRING = "/etc/apt/keyrings/menagerie-nvidia.asc"
SOURCES = "/etc/apt/sources.list.d/menagerie-nvidia.sources"
PIN = "/etc/apt/preferences.d/menagerie-nvidia"
# Parts of the driver in NVIDIA's and in Debian's packages, which must have the same version.
DRIVERS = re.compile(
    r"(lib)?nvidia-(?!container)|cuda-drivers|libcuda1|libcudadebugger1|firmware-nvidia|xserver-xorg-video-nvidia"
)
APT = ["apt-get", "--yes", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"]


def nouveau(edge: Edge) -> list[Step]:
    if not edge.exists("/sys/module/nouveau"):
        return []

    def unload() -> None:
        code, said = edge.run("modprobe", "--remove", "nouveau")
        if code:
            way = "reboot: /etc/modprobe.d/menagerie-gpu.conf keeps it from loading"
            raise Refused(f"nouveau holds the GPU and can't be unloaded ({' '.join(said.split())}); {way}")

    return [Step("unload nouveau", unload)]


def installed(edge: Edge) -> dict[str, str]:
    """Return installed Debian packages: name -> version."""
    _, said = edge.run("dpkg-query", "--show", "--showformat", "${db:Status-Abbrev} ${Package} ${Version}\\n")
    rows = [line.split() for line in said.splitlines() if line.startswith(("ii", "hi"))]
    return {row[1]: row[2] for row in rows if len(row) == 3}


def branch_of(version: str) -> str:
    """Return 580 for 580.95.05-1; a version may start with an epoch."""
    return version.rpartition(":")[2].split(".")[0]


def package(edge: Edge, settings: dict[str, Any], change: bool) -> list[Step]:
    driver = settings["driver"]
    if driver["source"] == "image":
        return []
    packages = installed(edge)
    desired = [*driver["packages"], *settings["packages"]]
    if edge.devices(SWITCH):
        desired += settings["fabric_manager"]
    other = {
        name: packages[name]
        for name in driver["packages"]
        if branch_of(packages.get(name, "")) not in ("", driver["branch"])
    }
    missing = [name for name in desired if name not in packages]
    if not other and not missing:
        return []
    loaded = edge.read("/sys/module/nvidia/version").strip()
    if other and loaded and not change:
        way = "drain the host, run menagerie-gpu --change-driver, and reboot it"
        raise Refused(f"driver {loaded} is loaded, branch {driver['branch']} is wanted; {way}")
    return [Step(f"install {', '.join([*other, *missing])}", lambda: _install(edge, driver, desired))]


def _install(edge: Edge, driver: dict[str, Any], packages: list[str]) -> None:
    for path, text in apt_files(driver).items():
        edge.write(path, text)
    edge.must(*APT, "update")
    for name in driver["packages"]:
        said = edge.must("apt-cache", "policy", name)
        candidate = re.search(r"Candidate: (\S+)", said)
        has = candidate[1] if candidate else "(none)"
        if branch_of(has) != driver["branch"]:
            raise Refused(f"no package {name} of branch {driver['branch']}: apt has {has}; is the repository right?")
    headers = f"linux-headers-{os.uname().release}"
    edge.must(*APT, "install", "--allow-change-held-packages", "--allow-downgrades", headers, *packages)


def apt_files(driver: dict[str, Any]) -> dict[str, str]:
    """Return apt's files for the driver's source and branch (apt_preferences(5): priority 1001 may downgrade)."""
    files = {PIN: f"Package: *nvidia* cuda-drivers* libcuda*\nPin: version {driver['branch']}.*\nPin-Priority: 1001\n"}
    if driver["source"] == "nvidia" and driver.get("key"):
        files[KEYRING] = driver["key"]
        files[SOURCES] = f"Types: deb\nURIs: {driver['repository']}\nSuites: /\nSigned-By: {KEYRING}\n"
    return files


def hold(edge: Edge) -> list[Step]:
    """Hold the driver's packages: after an update under running pods, the library would not match the loaded module."""
    ours = {name for name in installed(edge) if DRIVERS.match(name)}
    held = set(edge.run("apt-mark", "showhold")[1].split())
    free = sorted(ours - held)
    return [Step(f"hold {', '.join(free)}", lambda: edge.must("apt-mark", "hold", *free))] if free else []
