"""API servers replaced by the engine: one after another where they have names, by their group where a cloud has them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from clients.access import Access
from clients.waiting import Report, wait_until
from cluster.spec import Cluster
from operations.configure import patience_s
from operations.record.journal import Journal
from operations.status import balancer_states, not_well
from operations.upgrade import versions
from operations.upgrade.plan import GROUP

VALIDATED, BETWEEN_S = 2, 5.0
"""Times in a row that all must be well before the next is begun, and the time between them."""
GROUP_S = 3600.0
"""For a cloud's group to roll: hosts boot and pass probes one after another, and some clouds pause between them."""

Engine = Callable[[tuple[str, ...]], Access]
"""Brings up the resources of these names with what they are made from, all for GROUP; how to reach the cluster after that."""


@dataclass(frozen=True)
class Servers:
    """Replaces API servers. besides: items of `status` that need not be well. pause: sleeps."""

    cluster: Cluster
    access: Access
    engine: Engine
    operation: Journal
    besides: frozenset[str] = frozenset()
    pause: Callable[[float], None] = field(default=time.sleep)

    def replace(self, names: tuple[str, ...], report: Report) -> None:
        """One after another; all must be well before the next. Raises TimedOutError, and what the engine raises."""
        for name in names:
            report(f"{name} is being replaced")
            self.engine((name,))
            self._validate(name, report)
            self.operation.done(f"API server {name}", version=self._wanted)

    @property
    def _wanted(self) -> str:
        return self.cluster.spec.kubernetes.version

    def _validate(self, name: str, report: Report) -> None:
        patience, well = GROUP_S if name == GROUP else patience_s(self.cluster), 0

        def missing() -> str:
            nonlocal well
            why = self._missing(name)
            well = 0 if why else well + 1
            return why or ("" if well == VALIDATED else f"{name} is well, and is looked at again")

        wait_until(missing, patience, report, every_s=BETWEEN_S, pause=self.pause)

    def _missing(self, name: str) -> str:
        """Why the API server is not there yet with the new version, and the cluster well."""
        if name == GROUP:
            found = versions.servers(self.access)
            if found != {self._wanted}:
                return f"the load balancer leads to {', '.join(sorted(found)) or 'no API server that is ready'}"
            return not_well(self.cluster, self.access, self.besides)
        found_there = versions.hosts(self.access)[name]
        if found_there != self._wanted:
            return f"{name} runs {found_there}" if found_there else f"{name} is not ready yet"
        if self.access.outputs.load_balancer_status:
            state = balancer_states(self.access.outputs)[name]
            if not state.startswith("UP"):
                return f"the load balancer calls {name} {state}"
        return not_well(self.cluster, self.access, self.besides)
