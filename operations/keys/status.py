"""A cluster's keys, the state of their rotations, and the lifetimes of its certificates. Reads only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from clients.access import Access
from cluster.key_rings import Ring, RingName
from operations.keys import kubelets, reports, rings
from operations.keys.certificates import Certificate, of_hosts, of_stack, shown

if TYPE_CHECKING:
    from stacks.automation import ClusterStack


@dataclass(frozen=True)
class KeyStatus:
    """unproven: what hosts and kubelets do not use yet, "" if all use the stack's current values."""

    rings: Mapping[RingName, Ring]
    unproven: str
    certificates: tuple[Certificate, ...]

    def ok(self, now: datetime) -> bool:
        """Return whether no rotation is in progress, every host matches the stack, and nothing is overdue."""
        stable = all(ring.is_stable and ring.is_carried_over for ring in self.rings.values())
        return (
            stable and not self.unproven and not any(certificate.is_overdue(now) for certificate in self.certificates)
        )

    def to_json(self, now: datetime) -> dict[str, Any]:
        return {
            "ok": self.ok(now),
            "rings": {
                name: {"generations": list(ring.generations), "state": ring.state} for name, ring in self.rings.items()
            },
            "unproven": self.unproven,
            "certificates": [certificate.to_json(now) for certificate in self.certificates],
        }


def key_status(stack: ClusterStack) -> KeyStatus:
    """Return the key status of a running cluster. Raises NotBuiltError, and EtcdError or the API's errors if these
    are down."""
    outputs = stack.outputs()
    access = Access.from_stack(stack.name, outputs)
    host_reports = reports.read(access)
    live = reports.live_api_servers(access.api())
    certificates = (*of_stack(stack.deployment()), *of_hosts(host_reports), *shown(access))
    return KeyStatus(
        rings.built(outputs),
        "; ".join(
            filter(
                None,
                (reports.unproven(reports.expected_digests(outputs), host_reports, live), _kubelets(access, outputs)),
            )
        ),
        tuple(
            sorted(
                certificates, key=lambda certificate: (certificate.ends is not None, certificate.ends, certificate.name)
            )
        ),
    )


def _kubelets(access: Access, outputs: Mapping[str, object]) -> str:
    """Return which kubelets do not follow; "" for a stack that is older than the outputs with authorities."""
    authorities: dict[str, str] = json.loads(str(outputs.get("authorities", "{}")))
    if not set(authorities) >= kubelets.RINGS:
        return ""
    nodes = kubelets.kubelet_reports(access)
    late = [
        node
        for ring in sorted(kubelets.RINGS)
        for node in kubelets.late(nodes, kubelets.Needs.as_now(ring, authorities))
    ]
    return kubelets.describe(dict.fromkeys(late))
