"""A node's folders of the CNI plugins, and the agent's own files, for tests."""

from __future__ import annotations

import json
from pathlib import Path

from menagerie_traffic.api import Pod
from menagerie_traffic.reservations import Reservations


class Node:
    """Writes what host-local and libcni write when a sandbox starts and ends."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.metrics, self.totals = folder / "metrics" / "traffic.prom", folder / "state" / "totals.json"
        for each in (self._held, self._results):
            each.mkdir()

    @property
    def _held(self) -> Path:
        return self.folder / "held"

    @property
    def _results(self) -> Path:
        return self.folder / "results"

    def reservations(self) -> Reservations:
        return Reservations(str(self._held), str(self._results))

    def settings(self, classes: dict[str, list[str]]) -> dict[str, object]:
        """Return the program's settings on this node."""
        return {
            "classes": classes,
            "interfaces": ["cni0"],
            "ceph_ports": ["3300", "6800-7568"],
            "reservations": str(self._held),
            "attachments": str(self._results),
            "metrics": str(self.metrics),
            "totals": str(self.totals),
            "every_s": 1,
        }

    def start(self, pod: Pod, address: str) -> None:
        sandbox = f"sandbox-{pod.uid}"
        (self._held / address).write_text(f"{sandbox}\r\neth0")
        given = {"K8S_POD_NAMESPACE": pod.namespace, "K8S_POD_NAME": pod.name, "K8S_POD_UID": pod.uid}
        text = json.dumps({"containerId": sandbox, "cniArgs": [[key, value] for key, value in given.items()]})
        (self._results / f"flannel-{sandbox}-eth0").write_text(text)

    def end(self, address: str) -> None:
        sandbox = (self._held / address).read_text().split()[0]
        (self._held / address).unlink()
        (self._results / f"flannel-{sandbox}-eth0").unlink()
