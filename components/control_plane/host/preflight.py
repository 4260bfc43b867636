"""node-preflight: lifts the taint that hosts join with when a host reports that it is as expected, else sets it again.

The verdict is a condition of the Node, written with its kubelet's identity, which may not change taints
(NodeRestriction). An admission policy confines this program to the one taint. It is NoSchedule: running pods stay.
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
# Seconds that a good verdict is valid, and that it may be in the future. Hosts repeat theirs every ten minutes.
FRESH, AHEAD = 1800.0, 60.0
# 422: the test of a JSON patch failed.
RACES = (404, 409, 422)


def unix(stamp: str) -> float:
    """Return the Unix time of an API timestamp."""
    return float(calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ")))


def verdict(node: dict[str, Any]) -> dict[str, Any]:
    """Return the condition, empty if the host has reported none."""
    return next((each for each in node["status"].get("conditions") or [] if each["type"] == CONDITION), {})


def said(condition: dict[str, Any]) -> str:
    """Return a condition's reason and message. A kubelet may omit either."""
    return f"{condition.get('reason', 'no reason')}: {condition.get('message', '')}"


def counts(condition: dict[str, Any], node: dict[str, Any], now: float) -> bool:
    """Return whether a good verdict is recent, and is this Node's, not that of an earlier one of its name."""
    try:
        said, made = unix(condition["lastHeartbeatTime"]), unix(node["metadata"]["creationTimestamp"])
    except (KeyError, TypeError, ValueError):
        return False
    return max(made, now - FRESH) <= said <= now + AHEAD


def desired_taints(node: dict[str, Any], now: float) -> list[dict[str, Any]] | None:
    """Return the taints that the Node should have, None if it has them or the verdict says nothing."""
    taints = node["spec"].get("taints") or []
    others = [taint for taint in taints if taint["key"] != KEY]
    condition, tainted = verdict(node), len(others) < len(taints)
    if condition.get("status") == "True" and tainted and counts(condition, node, now):
        return others
    return [*taints, TAINT] if condition.get("status") == "False" and not tainted else None


def patch(node: dict[str, Any], taints: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a JSON patch that fails if the Node has changed since it was read."""
    version = node["metadata"]["resourceVersion"]
    change = {"op": "add", "path": "/spec/taints", "value": taints}
    return [{"op": "test", "path": "/metadata/resourceVersion", "value": version}, change]


class Gate:
    """Acts on each Node's verdict."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._nodes = Follower(api, LIST, lambda node: self.decide(node, time.time()))

    def decide(self, node: dict[str, Any], now: float) -> None:
        """Lift the taint or set it again. Losing a race, also against another host, is success."""
        taints = desired_taints(node, now)
        if taints is None:
            return
        name, condition = node["metadata"]["name"], verdict(node)
        try:
            self._api.call("PATCH", f"{LIST}/{name}", patch(node, taints), "application/json-patch+json")
        except ApiError as error:
            if error.status not in RACES:
                raise
            return
        did = "set again" if TAINT in taints else "lifted"
        print(f"{name}: {KEY} {did}: {plain(said(condition))}", flush=True)

    def follow(self) -> None:
        """Handle all Nodes from the watch cache, then changes."""
        self._nodes.follow("?resourceVersion=0")


def main() -> None:
    forever(Gate(Api(Path(os.environ["CREDENTIALS_DIRECTORY"], "kubeconfig"))).follow)


if __name__ == "__main__":
    main()
