"""node-preflight: lifts the taint that hosts join with, once a host says that it is as expected; puts it back when not.

The verdict is a condition of the Node, written with its kubelet's identity. That identity may not change taints
(NodeRestriction); an admission policy confines this program's to the one taint. Pods that run stay: it is NoSchedule.
"""

from __future__ import annotations

import calendar
import os
import time
from pathlib import Path
from typing import Any

from .api import Api, ApiError, forever
from .following import Follower, plain

LIST = "/api/v1/nodes"
CONDITION = "PreflightPassed"
KEY = "menagerie.dev/preflight"
TAINT = {"key": KEY, "effect": "NoSchedule"}
# Seconds that a good verdict counts, and that it may lie in the future. Hosts repeat theirs every ten minutes.
FRESH, AHEAD = 1800.0, 60.0
# 422 is the answer to a JSON patch whose test does not hold.
RACES = (404, 409, 422)


def unix(stamp: str) -> float:
    """Unix time of a time as the API writes it."""
    return float(calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ")))


def verdict(node: dict[str, Any]) -> dict[str, Any]:
    """The condition; empty where the host has not said anything."""
    return next((each for each in node["status"].get("conditions") or [] if each["type"] == CONDITION), {})


def said(found: dict[str, Any]) -> str:
    """A condition's reason and message; a kubelet may leave either out."""
    return f"{found.get('reason', 'no reason')}: {found.get('message', '')}"


def counts(found: dict[str, Any], node: dict[str, Any], now: float) -> bool:
    """Whether a good verdict is of now, and of this Node rather than of one of its name that was there before."""
    try:
        said, made = unix(found["lastHeartbeatTime"]), unix(node["metadata"]["creationTimestamp"])
    except (KeyError, TypeError, ValueError):
        return False
    return max(made, now - FRESH) <= said <= now + AHEAD


def wanted(node: dict[str, Any], now: float) -> list[dict[str, Any]] | None:
    """The taints that the Node should have; None where it has them, or nothing can be said."""
    taints = node["spec"].get("taints") or []
    others = [taint for taint in taints if taint["key"] != KEY]
    found, tainted = verdict(node), len(others) < len(taints)
    if found.get("status") == "True" and tainted and counts(found, node, now):
        return others
    return [*taints, TAINT] if found.get("status") == "False" and not tainted else None


def patch(node: dict[str, Any], taints: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """JSON patch that does nothing where the Node has changed since it was read."""
    version = node["metadata"]["resourceVersion"]
    change = {"op": "add", "path": "/spec/taints", "value": taints}
    return [{"op": "test", "path": "/metadata/resourceVersion", "value": version}, change]


class Gate:
    """Acts on each Node's verdict."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._nodes = Follower(api, LIST, lambda node: self.decide(node, time.time()))

    def decide(self, node: dict[str, Any], now: float) -> None:
        """Lift the taint or put it back. Losing a race, against the same program of another host too, is success."""
        taints = wanted(node, now)
        if taints is None:
            return
        name, found = node["metadata"]["name"], verdict(node)
        try:
            self._api.call("PATCH", f"{LIST}/{name}", patch(node, taints), "application/json-patch+json")
        except ApiError as error:
            if error.status not in RACES:
                raise
            return
        did = "set again" if TAINT in taints else "lifted"
        print(f"{name}: {KEY} {did}: {plain(said(found))}", flush=True)

    def follow(self) -> None:
        """All Nodes that are there, out of the watch cache, then what changes."""
        self._nodes.follow("?resourceVersion=0")


def main() -> None:
    forever(Gate(Api(Path(os.environ["CREDENTIALS_DIRECTORY"], "kubeconfig"))).follow)


if __name__ == "__main__":
    main()
