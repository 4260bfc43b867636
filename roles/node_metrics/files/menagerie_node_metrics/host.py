"""Access to the host: reads /sys and /run, and asks systemd, nvidia-smi and konnectivity's agent."""

from __future__ import annotations

import glob
import http.client
import os
import re
import subprocess
import urllib.request
from collections.abc import Iterable, Iterator

from . import Sample, Unanswered

NVIDIA, DISPLAY = "0x10de", "0x03"
"""PCI's numbers of the maker, and of display controllers: VGA (0300) and 3D (0302)."""
PREFLIGHT = "/run/menagerie-preflight/passed"
"""Role preflight writes the result of each check: the status of its condition, True or False."""
REBOOTS = ("/run/reboot-required", "/run/menagerie/reboot-required.d/*")
"""Files of Debian's packages, and of Menagerie's programs."""
EXPORTER = "node-exporter.service"
CREDENTIALS = ("/var/lib/kubelet/pki/kubelet-server-current.pem", "/etc/kubernetes/pki/ca.crt")
"""What systemd gives the exporter when it starts it."""
TUNNELS = re.compile(
    r"^konnectivity_network_proxy_agent_open_server_connections(?:\{[^}]*\})? ([\d.e+]+)$", re.MULTILINE
)
TOOL_S = 30


class Host:
    """root: where the host's file system is, for tests."""

    def __init__(self, root: str = "/") -> None:
        self.root = root

    def at(self, path: str) -> str:
        return os.path.join(self.root, path.lstrip("/"))

    def read(self, path: str) -> str:
        """Return a file's text, "" if there is none."""
        try:
            with open(self.at(path)) as handle:
                return handle.read().strip()
        except OSError:
            return ""

    def written(self, path: str) -> list[float]:
        """Return when a file was written, and the link to it, if there is one; nothing without the file."""
        try:
            return [os.stat(self.at(path)).st_mtime, os.lstat(self.at(path)).st_mtime]
        except OSError:
            return []

    def run(self, words: list[str]) -> str:
        """Return a command's output. Raises Unanswered with the end of what it says."""
        try:
            done = subprocess.run(
                words, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TOOL_S
            )
        except FileNotFoundError:
            raise Unanswered(f"{words[0]} is missing") from None
        except subprocess.TimeoutExpired:
            raise Unanswered(f"{words[0]} did not answer in {TOOL_S} s") from None
        if done.returncode:
            said = " ".join((done.stdout + done.stderr).split())[-300:]
            raise Unanswered(f"{words[0]} ended with {done.returncode}: {said}")
        return done.stdout

    def pci_gpus(self) -> int:
        """Return the number of NVIDIA's display controllers."""
        folders = glob.glob(self.at("/sys/bus/pci/devices/*"))
        own = (os.path.join("/", os.path.relpath(folder, self.root)) for folder in folders)
        return sum(
            self.read(f"{folder}/vendor") == NVIDIA and self.read(f"{folder}/class").startswith(DISPLAY)
            for folder in own
        )


def units(host: Host, names: Iterable[str]) -> Iterator[Sample]:
    """Yield the state of units. Raises Unanswered if systemd does not answer."""
    words = list(names)
    text = host.run(["systemctl", "show", "--property=Id,ActiveState,NRestarts", "--", *words]) if words else ""
    for block in filter(None, text.strip().split("\n\n")):
        shown = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        own = (("unit", shown.get("Id", "")),)
        yield Sample("unit_active", shown.get("ActiveState") in ("active", "reloading"), own)
        yield Sample("unit_restarts_total", int(shown.get("NRestarts") or 0), own)


def is_outdated(host: Host, now: float, monotonic: float) -> bool:
    """Return whether one of the exporter's credentials was written after its start. Raises Unanswered.

    Its start is counted back on the monotonic clock, and files from the future are ignored, so that a clock that was set
    does not matter. The kubelet writes another file and replaces the link to it.
    """
    shown = host.run(["systemctl", "show", "--property=ExecMainStartTimestampMonotonic", "--value", "--", EXPORTER])
    stamp = int(shown.strip() or 0)
    started = now - (monotonic - stamp / 1e6)
    times = [each for path in CREDENTIALS for each in host.written(path)]
    return bool(stamp) and any(started < each <= now for each in times)


def preflight(host: Host) -> Iterator[Sample]:
    """Yield the result of the host's own checks, and when they ended; nothing before the first, or without the role."""
    result = host.read(PREFLIGHT)
    if result:
        yield Sample("preflight_passed", result == "True")
        yield Sample("preflight_timestamp_seconds", os.stat(host.at(PREFLIGHT)).st_mtime)


def reboot(host: Host) -> Sample:
    return Sample("reboot_required", any(glob.glob(host.at(pattern)) for pattern in REBOOTS))


def tunnels(port: int) -> Sample:
    """Return how many API servers konnectivity's agent is connected to, by its own metric."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            match = TUNNELS.search(answer.read().decode(errors="replace"))
    except (OSError, http.client.HTTPException):
        match = None
    return Sample("agent_tunnels", float(match[1]) if match else 0)
