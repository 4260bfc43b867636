"""Access of `menagerie-roce` to the host."""

from __future__ import annotations

import os

from menagerie_host import edge

NET, IB, PCI = "/sys/class/net", "/sys/class/infiniband", "/sys/bus/pci/devices"


class Refused(Exception):
    """A port can't be used. The text tells the operator why."""


class Edge(edge.Edge):
    def write(self, path: str, text: str) -> None:
        try:
            with open(self.at(path), "w") as handle:
                handle.write(text)
        except OSError as error:
            raise Refused(f"{path} refuses {text}: {error.strerror}") from None

    def make(self, path: str) -> None:
        """Create a folder of configfs, which makes its files appear."""
        try:
            os.makedirs(self.at(path), exist_ok=True)
        except OSError as error:
            raise Refused(f"{path} can't be created: {error.strerror}") from None


def tell(edge: Edge, *words: str) -> str:
    """Return a tool's output. Refused if it fails."""
    code, said = edge.run(*words)
    if code:
        raise Refused(f"{' '.join(words)}: {said.strip() or f'exit code {code}'}")
    return said
