"""node-labels: gives Nodes the labels that are theirs by the spec, with the one that no kubelet may set.

Machines at sites are in a table that operators' commands write. Of workers in the region no spec has the names; for those counts
the pool that their kubelet named when it was seen first. A kubelet can't change that while its Node is there (an admission
policy); one that comes back under a name that is known with another pool is not believed.
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


def wanted(table: dict[str, str], name: str) -> dict[str, str]:
    """The labels of a machine at a site; none of a Node that the table doesn't have."""
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
        """Give it what it lacks. Losing a race, against the same program of another host too, is success."""
        meta = node["metadata"]
        name, labels = meta["name"], meta.get("labels") or {}
        if name not in self._table and TRUSTED not in labels:
            # A machine that joins now: its line was written a moment before.
            self._read()
        ours = wanted(self._table, name)
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
        """The pool that counts, remembered before the label is there."""
        pool = labels.get(CLAIMED, "")
        if not pool:
            return {}
        known = self._data(POOLS).get(name)
        if known is None:
            self._api.call("PATCH", f"{CONFIGMAPS}/{POOLS}", {"data": {name: pool}}, MERGE)
        elif known != pool:
            print(
                f"{name} says that it is of pool {pool}, and was of {known}: not believed. If it is another machine of the same "
                f'name: kubectl -n kube-system patch configmap {POOLS} --type merge -p \'{{"data": {{"{name}": null}}}}\'',
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
        """Every Node that is there."""
        self._nodes.look()

    def follow(self) -> None:
        """What is there, then what changes."""
        self._nodes.follow()


def main() -> None:
    keeper = Keeper(Api(Path(os.environ["CREDENTIALS_DIRECTORY"], "kubeconfig")))
    forever(keeper.follow)


if __name__ == "__main__":
    main()
