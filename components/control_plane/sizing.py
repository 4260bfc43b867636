"""Settings of the control plane that depend on the cluster's size: the most nodes that its pools can grow to.

They do not follow the current number of nodes: that would replace API-server hosts in the middle of growing.

The in-flight limits assume API Priority and Fairness, which queues requests above their sum. kube-up's own numbers (1500 and
500 above 500 nodes, 3000 and 1000 above 3,000) are older; its test of 5,000 nodes ran with 640 in total (kops #18070).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cluster.spec import Cluster

Program = Literal["kube-apiserver", "kube-controller-manager", "kube-scheduler"]

_CCE = "Huawei CCE's reference of parameters: 200 above 1,000 nodes"
_KOPS = "kops' test of 5,000 nodes (tests/e2e/scenarios/scalability/run-test.sh)"


@dataclass(frozen=True)
class Setting:
    """A flag with a number.

    default: Kubernetes' own in 1.36. steps: (smallest number of nodes, value), both ascending. source: of the steps.
    """

    program: Program
    flag: str
    default: int
    steps: tuple[tuple[int, int], ...]
    source: str

    def at(self, nodes: int) -> int:
        """Return the value for a cluster that can grow to `nodes` nodes."""
        return next((value for first, value in reversed(self.steps) if nodes >= first), self.default)


SETTINGS = (
    Setting("kube-apiserver", "max-requests-inflight", 400, ((3001, 800),), _KOPS),
    Setting("kube-apiserver", "max-mutating-requests-inflight", 200, ((3001, 400),), _KOPS),
    Setting(
        "kube-apiserver", "delete-collection-workers", 1, ((3001, 16),), "kube-up's and kops' tests of 5,000 nodes"
    ),
    # 20 calls a second are too few for a rack that joins at once; kube-up's test of 5,000 nodes had 100.
    Setting("kube-controller-manager", "kube-api-qps", 20, ((0, 100), (1001, 200), (3001, 500)), f"{_CCE}; {_KOPS}"),
    Setting("kube-controller-manager", "kube-api-burst", 30, ((0, 200), (3001, 500)), _KOPS),
    Setting("kube-scheduler", "kube-api-qps", 50, ((1001, 200), (3001, 500)), f"{_CCE}; {_KOPS}"),
    Setting("kube-scheduler", "kube-api-burst", 100, ((1001, 200), (3001, 500)), f"{_CCE}; {_KOPS}"),
)
"""docs/explanation/scale.md shows them as a table, with the settings that are left alone; a test compares the two."""


@dataclass(frozen=True)
class Room:
    """What a pod requests. cpu_m: thousandths of a core."""

    cpu_m: int
    memory_mib: int


METRICS_NODES = (100, 300, 1000, 3000, 7500)
"""Sizes up to which metrics-server keeps its requests, so that few changes of a pool's maximum replace API servers' hosts."""


def metrics_room(nodes: int) -> Room:
    """Return what each pod of metrics-server requests in a cluster that can grow to `nodes` nodes.

    Upstream: "1 mili core of CPU and 2 MB of memory for each node in a cluster", and 100m and 200Mi in its manifests (README.md
    and manifests/base/deployment.yaml of 0.9.0, which name 5,000 nodes as the most).
    """
    size = next((most for most in METRICS_NODES if nodes <= most), nodes)
    return Room(size, 2 * size)


def most_nodes(cluster: Cluster) -> int:
    """Return the most nodes that the cluster's pools can grow to."""
    return cluster.spec.cloud_workers + len(cluster.host_list())


def value(program: Program, flag: str, nodes: int) -> int:
    """Return one setting at that size. Raises StopIteration if there is no such setting."""
    return next(setting for setting in SETTINGS if (setting.program, setting.flag) == (program, flag)).at(nodes)


def flags(program: Program, nodes: int) -> dict[str, str]:
    """Return the program's flags that differ from Kubernetes' defaults at that size: name without dashes -> value."""
    chosen = {setting: setting.at(nodes) for setting in SETTINGS if setting.program == program}
    return {setting.flag: str(value) for setting, value in chosen.items() if value != setting.default}
