"""Access of `menagerie-gpu` to the host, and the step that the other modules plan."""

from __future__ import annotations

import glob
import os
import subprocess
from collections.abc import Callable
from typing import Any, NamedTuple

NVIDIA = "0x10de"
GPU, SWITCH = "0x03", "0x0680"


class Refused(Exception):
    """The GPUs can't be prepared. The text tells the operator why."""


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
        """Return PCI addresses of NVIDIA's devices of a class."""
        addresses = []
        for path in sorted(glob.glob(self.at("/sys/bus/pci/devices/*"))):
            name = os.path.basename(path)
            vendor, own = (self.read(f"/sys/bus/pci/devices/{name}/{file}").strip() for file in ("vendor", "class"))
            if vendor == NVIDIA and own.startswith(kind):
                addresses.append(name)
        return addresses

    def run(self, *words: str) -> tuple[int, str]:
        """Return a command's exit code and output; 127 if the command is missing."""
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
        try:
            done = subprocess.run(words, check=False, stdin=subprocess.DEVNULL, capture_output=True, env=environment)
        except FileNotFoundError:
            return 127, f"{words[0]} is missing"
        return done.returncode, (done.stdout + done.stderr).decode(errors="replace")

    def must(self, *words: str) -> str:
        code, said = self.run(*words)
        if code:
            raise Refused(f"{' '.join(words)}: {' '.join(said.split())[-600:]}")
        return said


class Step(NamedTuple):
    """A step, by name. act: does it."""

    what: str
    act: Callable[[], Any]
