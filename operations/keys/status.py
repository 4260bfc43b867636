"""Which keys a cluster has, how far their rotations are, and how long its certificates live. Reads only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from clients.access import Access
from cluster.key_rings import Ring, RingName
from operations.keys import kubelets, reports, rings
from operations.keys.certificates import Certificate, of_hosts, of_stack, shown
from stacks.automation import ClusterStack


@dataclass(frozen=True)
class KeyStatus:
    """unproven: what hosts and kubelets do not work with yet, "" where all work with what the stack has."""

    rings: Mapping[RingName, Ring]
    unproven: str
    certificates: tuple[Certificate, ...]

    def ok(self, now: datetime) -> bool:
        """Whether no rotation is under way, every host is as the stack, and nothing is overdue."""
        stable = all(ring.is_stable and ring.is_carried_over for ring in self.rings.values())
        return stable and not self.unproven and not any(each.is_overdue(now) for each in self.certificates)

    def to_json(self, now: datetime) -> dict[str, Any]:
        return {
            "ok": self.ok(now),
            "rings": {
                name: {"generations": list(ring.generations), "state": ring.state} for name, ring in self.rings.items()
            },
            "unproven": self.unproven,
            "certificates": [each.to_json(now) for each in self.certificates],
        }


def look(stack: ClusterStack) -> KeyStatus:
    """Of a cluster that runs. Raises NotBuiltError, and EtcdError or the API's errors where that is down."""
    outputs = stack.outputs()
    access = Access.from_stack(stack.name, outputs)
    told = reports.read(access)
    live = reports.live_api_servers(access.api())
    certificates = (*of_stack(stack.deployment()), *of_hosts(told), *shown(access))
    return KeyStatus(
        rings.built(outputs),
        "; ".join(filter(None, (reports.unproven(reports.wanted(outputs), told, live), _kubelets(access, outputs)))),
        tuple(sorted(certificates, key=lambda each: (each.ends is not None, each.ends, each.name))),
    )


def _kubelets(access: Access, outputs: Mapping[str, object]) -> str:
    """Which do not follow; nothing of a stack from before it told its authorities, and those of serving certificates."""
    wanted: dict[str, str] = json.loads(str(outputs.get("authorities", "{}")))
    if not set(wanted) >= kubelets.RINGS:
        return ""
    said = kubelets.said(access)
    late = [
        each for ring in sorted(kubelets.RINGS) for each in kubelets.late(said, kubelets.Needs.as_now(ring, wanted))
    ]
    return kubelets.told(dict.fromkeys(late))
