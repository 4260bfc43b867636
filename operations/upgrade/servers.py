"""Replaces API servers with the engine: one after another if they have names, by their instance group in a cloud."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from clients.access import Access
from clients.waiting import Report, wait_until
from cluster.spec import Cluster
from operations.configure import patience_s
from operations.record.journal import Journal
from operations.status.balancer import balancer_states
from operations.status.read import unhealthy_parts
from operations.upgrade import versions
from operations.upgrade.plan import GROUP

VALIDATED, BETWEEN_S = 2, 5.0
"""Number of successful checks in a row before the next one starts, and the time between checks."""
GROUP_S = 3600.0
"""Time-out for a cloud's group to roll: hosts boot and pass probes one after another, and some clouds pause in between."""

Engine = Callable[[tuple[str, ...]], Access]
"""Updates the resources of these names with their dependencies, all for GROUP. Returns the new access to the cluster."""


@dataclass(frozen=True)
class Servers:
    """Replaces API servers. besides: items of `status` that may be unhealthy. pause: sleeps."""

    cluster: Cluster
    access: Access
    engine: Engine
    operation: Journal
    besides: frozenset[str] = frozenset()
    pause: Callable[[float], None] = field(default=time.sleep)

    def replace(self, names: tuple[str, ...], report: Report) -> None:
        """Replace one after another; everything must be healthy before the next. Raises TimedOutError and the
        engine's errors."""
        for name in names:
            report(f"replacing {name}")
            self.engine((name,))
            self._validate(name, report)
            self.operation.done(f"API server {name}", version=self._version)

    @property
    def _version(self) -> str:
        return self.cluster.spec.kubernetes.version

    def _validate(self, name: str, report: Report) -> None:
        patience, successes = GROUP_S if name == GROUP else patience_s(self.cluster), 0

        def missing() -> str:
            nonlocal successes
            why = self._missing(name)
            successes = 0 if why else successes + 1
            return why or ("" if successes == VALIDATED else f"{name} is healthy; checking again")

        wait_until(missing, patience, report, every_s=BETWEEN_S, pause=self.pause)

    def _missing(self, name: str) -> str:
        """Return why the API server does not run the new version yet, or what is unhealthy in the cluster."""
        if name == GROUP:
            versions_ = versions.servers(self.access)
            if versions_ != {self._version}:
                return f"the API servers behind the load balancer run {', '.join(sorted(versions_)) or 'nothing yet: none is ready'}"
            return unhealthy_parts(self.cluster, self.access, self.besides)
        version = versions.hosts(self.access)[name]
        if version != self._version:
            return f"{name} runs {version}" if version else f"{name} is not ready yet"
        if self.access.outputs.load_balancer_status:
            state = balancer_states(self.access.outputs)[name]
            if not state.startswith("UP"):
                return f"the load balancer reports {name} as {state}"
        return unhealthy_parts(self.cluster, self.access, self.besides)
