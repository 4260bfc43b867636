"""Helpers for tests of repairs: workers whose kubelets become silent, power buttons, and a configurable run."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from cluster.spec import Cluster
from operations import removals
from operations.drain import Pause, Rules
from operations.reboot import Rebooter
from operations.repair import records
from operations.repair.actuators import ByCommand, Power
from operations.repair.look import CheckInputs, RepairPlan, limits_of, plan
from operations.repair.run import RepairResult, Repairs, Tools
from tests.operations.real_cluster import World

NAMES = ("worker-1", "worker-2", "worker-3")
CONDITIONS = [
    {"type": "Ready", "status": "False", "after": "0s"},
    {"type": "PreflightPassed", "status": "False", "after": "0s"},
    {"type": "ReadonlyFilesystem", "status": "True", "after": "0s", "action": "power-cycle"},
]
SETTINGS = {
    "conditions": CONDITIONS, "node_startup": "0s", "max_unhealthy": "2", "max_removed": "3", "min_healthy_period": "1h",
}  # fmt: skip


def renew(fleet: World, name: str) -> None:
    """Renew a lease, as a kubelet does every ten seconds."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": {"renewTime": now},
    }
    fleet.call("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", body)


def silence(fleet: World, *names: str) -> None:
    """Set nodes NotReady, as the node lifecycle controller does for silent kubelets."""
    for name in names:
        fleet.say(fleet.hosts[name], ready=False)


def report_condition(fleet: World, name: str, type_: str, status: str, reason: str, message: str) -> None:
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}
    fleet.merge(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [condition]}})


@dataclass
class Wire:
    """A power button for every host. pressed: what was pressed, in order."""

    fleet: World
    pressed: list[str] = field(default_factory=list)

    def has(self, host: str) -> bool:
        return True

    def off(self, host: str, pause: Pause) -> None:
        self.pressed.append(f"{host} off")
        self.fleet.hosts[host].answers = False

    def on(self, host: str, pause: Pause) -> None:
        own = self.fleet.hosts[host]
        if not own.answers:
            self.pressed.append(f"{host} on")
            own.answers, own.away_from, own.boots = True, time.monotonic(), own.boots + 1
            own.away_until = own.away_from + own.boot_s


class NoPower:
    def has(self, host: str) -> bool:
        return False

    def off(self, host: str, pause: Pause) -> None: ...
    def on(self, host: str, pause: Pause) -> None: ...


def around(cluster: Cluster, fleet: World, control_plane: str = "") -> CheckInputs:
    return CheckInputs(cluster, fleet.api, lambda: control_plane, limits_of(cluster))


def mend(
    cluster: Cluster,
    fleet: World,
    power: Power | None = None,
    *,
    back_s: float = 30,
    plan_: RepairPlan | None = None,
    **more: Any,
) -> dict[str, RepairResult]:
    power = power or NoPower()
    rules = more.pop("rules", Rules(timeout_s=20))
    tools = {
        "rebooter": Rebooter(cluster, fleet.api, fleet, rules, back_s),
        "power": power,
        "replacer": ByCommand(),
        "reinstall": lambda host, report: None,
        "rules": rules,
        **more,
    }
    here = around(cluster, fleet)
    plan_ = plan_ or look(cluster, fleet, power)
    repairs = Repairs(here, Tools(**tools))
    rolled = repairs.run(plan_, plan_.allowed, lambda _: None)
    assert not rolled.why_stopped or len(repairs.results) < len(plan_.allowed), rolled
    return repairs.results


def look(cluster: Cluster, fleet: World, power: Power | None = None, *limit: str) -> RepairPlan:
    with_bmc = [name for name in NAMES if power and power.has(name)]
    return plan(around(cluster, fleet), limit, with_bmc)


def ends(results: dict[str, RepairResult]) -> dict[str, str]:
    return {host: str(result.end) for host, result in results.items()}


def joined(real: World) -> World:
    """Reset to the lab's three healthy workers, without any records."""
    for name in (records.NAME, removals.NAME):
        real.server.call("DELETE", f"/api/v1/namespaces/kube-system/configmaps/{name}")
    real.server.call("DELETE", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases")
    for name in NAMES:
        real.add(name)
        renew(real, name)
    return real
