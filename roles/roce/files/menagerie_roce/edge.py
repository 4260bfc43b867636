"""Everything that `menagerie-roce` touches of the host."""

from __future__ import annotations

import os

from menagerie_host import edge

NET, IB, PCI = "/sys/class/net", "/sys/class/infiniband", "/sys/bus/pci/devices"


class Refused(Exception):
    """What keeps a port from being used, for who has to mend it."""


class Edge(edge.Edge):
    def write(self, path: str, text: str) -> None:
        try:
            with open(self.at(path), "w") as handle:
                handle.write(text)
        except OSError as error:
            raise Refused(f"{path} refuses {text}: {error.strerror}") from None

    def make(self, path: str) -> None:
        """A folder of configfs; making it is what brings up its files."""
        try:
            os.makedirs(self.at(path), exist_ok=True)
        except OSError as error:
            raise Refused(f"{path} can't be made: {error.strerror}") from None


def tell(edge: Edge, *words: str) -> str:
    """What a tool said; Refused where it failed."""
    code, said = edge.run(*words)
    if code:
        raise Refused(f"{' '.join(words)}: {said.strip() or f'exit code {code}'}")
    return said
