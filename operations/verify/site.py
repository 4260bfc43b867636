"""Proofs about a site on its own: what goes on in its racks while nothing beyond them is reached."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from kubernetes import client

from clients.access import API_TIMEOUT_S
from clients.waiting import nodes_missing, wait_until
from operations.verify.everyday import three_hosts
from operations.verify.proof import Context, Proof, demand, lacks_machines
from operations.verify.workload import Pod

UNREACHABLE = "node.kubernetes.io/unreachable"
CUT_S = 180
"""Three times what the controller manager takes to call a silent node's state unknown."""
_RACK_S = 20
_READY_AGAIN_S = 120.0
# Kubernetes' own is 300 s ("Taints and Tolerations", Taint based Evictions): a longer cut would then end every pod.
_USUAL_TOLERATION_S = 300


def pods_of_a_rack_talk_within_it(context: Context) -> str:
    """Nothing is routed out of the rack meanwhile, so an answer has not left it."""
    near, far, distant = three_hosts(context.cluster)
    rack = _rack(context, near)
    pods, machines = context.workload.pods(), context.machines
    machines.isolate([rack], _RACK_S)
    try:
        inside = machines.reaches(near, pods[far].address)
        outside = machines.reaches(near, pods[distant].address)
    finally:
        machines.rejoin()
    seen = (
        f"nothing routed out of {rack}: {near} {_reaches(inside)} the pod on {far}, "
        f"{_reaches(outside)} the one on {distant} in another rack"
    )
    demand(inside and not outside, seen)
    return seen


def a_site_outlives_its_uplink(context: Context) -> str:
    near, far, distant = three_hosts(context.cluster)
    site = [host.name for _, host in context.cluster.host_list()]
    pods, stays = context.workload.pods(), context.workload.alone(near)
    tolerated = _tolerated_s(stays)
    demand(tolerated > _USUAL_TOLERATION_S, f"a pod tolerates a node that can't be reached for {tolerated} s only")
    before = _pods_on(context, site)
    racks = sorted({host.rack for _, host in context.cluster.host_list()})
    began = time.monotonic()
    context.machines.isolate(racks, CUT_S)
    try:
        wait_until(lambda: _still_known(context, site), CUT_S, context.report, every_s=1.0)
        unknown_s = time.monotonic() - began
        within = {name: _reached(context, near, pods[name]) for name in (far, distant)}
        time.sleep(max(0.0, began + CUT_S - time.monotonic()))
        leaving = [name for name, (_, _, ends) in _pods_on(context, site).items() if ends]
    finally:
        context.machines.rejoin()
    again = time.monotonic()
    wait_until(lambda: nodes_missing(context.api, frozenset(site)), _READY_AGAIN_S, context.report, every_s=1.0)
    ready_s = time.monotonic() - again
    demand(all(within.values()), f"while cut off, {near} did not reach pods on {[n for n in within if not within[n]]}")
    after = _pods_on(context, site)
    changed = sorted({*leaving, *(name for name, was in before.items() if after.get(name) != was)})
    demand(not changed, f"evicted, restarted or gone after {CUT_S} s without the uplink: {', '.join(changed)}")
    return (
        f"cut off for {CUT_S} s: unknown after {unknown_s:.0f} s, {len(before)} pods ran on and reached one another, "
        f"none was evicted or restarted; Ready again {ready_s:.0f} s after"
    )


def _rack(context: Context, name: str) -> str:
    return next(host.rack for _, host in context.cluster.host_list() if host.name == name)


def _reaches(answered: bool) -> str:
    return "reaches" if answered else "does not reach"


def _reached(context: Context, host: str, pod: Pod) -> bool:
    return context.machines.reaches(host, pod.address)


def _tolerated_s(pod: Any) -> float:
    """How long a pod stays on a node that can't be reached. A toleration without a key is for every taint."""
    found = [each for each in pod.spec.tolerations or () if each.key in (UNREACHABLE, None)]
    return max(
        (float("inf") if each.toleration_seconds is None else each.toleration_seconds for each in found), default=0
    )


def _still_known(context: Context, nodes: Collection[str]) -> str:
    """Which nodes the controller manager has not given up yet. It taints them one by one, and not all of a few."""
    listed = client.CoreV1Api(context.api).list_node(_request_timeout=API_TIMEOUT_S).items
    waiting = [
        node.metadata.name
        for node in listed
        if node.metadata.name in nodes
        and not any(each.type == "Ready" and each.status == "Unknown" for each in node.status.conditions or ())
    ]
    return f"still counted as reached: {', '.join(waiting)}" if waiting else ""


def _pods_on(context: Context, nodes: Collection[str]) -> dict[str, tuple[str, int, bool]]:
    """namespace/name -> uid, restarts, whether it was told to end. Without pods that ask to be moved sooner than a cut ends:
    CoreDNS leaves a node that does not answer for a minute, and its other replica serves meanwhile."""
    listed = client.CoreV1Api(context.api).list_pod_for_all_namespaces(_request_timeout=API_TIMEOUT_S).items
    return {
        f"{pod.metadata.namespace}/{pod.metadata.name}": (
            pod.metadata.uid,
            sum(each.restart_count for each in pod.status.container_statuses or ()),
            pod.metadata.deletion_timestamp is not None,
        )
        for pod in listed
        if pod.spec.node_name in nodes and _tolerated_s(pod) > CUT_S
    }


EVERYDAY = (
    Proof(
        "rack",
        "pods of one rack talk while nothing is routed out of it",
        pods_of_a_rack_talk_within_it,
        lacks=lacks_machines,
        effect="cuts one rack off for some seconds",
    ),
)
FAULTS = (
    Proof(
        "uplink-cut",
        "a site whose uplink is cut keeps its pods, which reach one another, and recovers alone",
        a_site_outlives_its_uplink,
        lacks=lacks_machines,
        effect=f"cuts the site off for {CUT_S} s; its nodes are unknown meanwhile",
    ),
)
