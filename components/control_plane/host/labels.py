"""node-labels: gives Nodes their labels from the spec, and the label that kubelets may not set.

Operators' commands write a table of machines at sites. No spec names workers in the region: their pool is the one that
their kubelet first named. A kubelet can't change it while its Node exists (an admission policy). If a known name comes
back with another pool, the pool is not believed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .api import Api, ApiError, forever
from .following import Follower

NODES = "/api/v1/nodes"
CONFIGMAPS = "/api/v1/namespaces/kube-system/configmaps"
TABLE, POOLS = "menagerie-hosts", "menagerie-region"
CLAIMED, TRUSTED = "menagerie/pool", "node-restriction.kubernetes.io/menagerie-pool"
MERGE = "application/merge-patch+json"
RACES = (404, 409)


def desired_labels(table: dict[str, str], name: str) -> dict[str, str]:
    """Return the labels of a machine at a site, none if the table does not have the Node."""
    lines = table.get(table.get(name, ""), "")
    return dict(line.split("=", 1) for line in lines.split("\n") if line)


class Keeper:
    """Acts on each Node."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._table: dict[str, str] = {}
        self._nodes = Follower(api, NODES, self.decide, lambda uids: self._read())

    def _read(self) -> None:
        self._table = self._data(TABLE)

    def decide(self, node: dict[str, Any]) -> None:
        """Set missing labels. Losing a race, also against another host, is success."""
        meta = node["metadata"]
        name, labels = meta["name"], meta.get("labels") or {}
        if name not in self._table and TRUSTED not in labels:
            # A machine that joins now: its line was written a moment ago.
            self._read()
        ours = desired_labels(self._table, name)
        if not ours and labels.get(CLAIMED, "") != labels.get(TRUSTED, ""):
            ours = self._of_region(name, labels)
        lacking = {key: value for key, value in ours.items() if labels.get(key) != value}
        if not lacking:
            return
        change = {"metadata": {"labels": lacking, "resourceVersion": meta["resourceVersion"]}}
        try:
            self._api.call("PATCH", f"{NODES}/{name}", change, MERGE)
        except ApiError as error:
            if error.status not in RACES:
                raise
            return
        print(f"{name}: {', '.join(f'{key}={value}' for key, value in sorted(lacking.items()))}", flush=True)

    def _of_region(self, name: str, labels: dict[str, str]) -> dict[str, str]:
        """Return the label of the first claimed pool. Record the pool before the label is set."""
        pool = labels.get(CLAIMED, "")
        if not pool:
            return {}
        known = self._data(POOLS).get(name)
        if known is None:
            self._api.call("PATCH", f"{CONFIGMAPS}/{POOLS}", {"data": {name: pool}}, MERGE)
        elif known != pool:
            print(
                f"{name} claims pool {pool}, but was in {known}: not believed. If a new machine has this name: "
                f'kubectl -n kube-system patch configmap {POOLS} --type merge -p \'{{"data": {{"{name}": null}}}}\'',
                flush=True,
            )
            return {}
        return {TRUSTED: pool}

    def _data(self, name: str) -> dict[str, str]:
        try:
            return self._api.call("GET", f"{CONFIGMAPS}/{name}").get("data") or {}
        except ApiError as error:
            if error.status != 404:
                raise
            return {}

    def look(self) -> None:
        """Handle all Nodes."""
        self._nodes.look()

    def follow(self) -> None:
        """Handle all Nodes, then changes."""
        self._nodes.follow()


def main() -> None:
    keeper = Keeper(Api(Path(os.environ["CREDENTIALS_DIRECTORY"], "kubeconfig")))
    forever(keeper.follow)


if __name__ == "__main__":
    main()
