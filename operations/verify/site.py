"""Proofs about an isolated site: what keeps working in its racks while nothing else can be reached."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from kubernetes import client

from clients.paging import models
from clients.waiting import nodes_missing, wait_until
from operations.verify.everyday import three_hosts
from operations.verify.proof import Context, Proof, demand, lacks_machines
from operations.verify.workload import Pod

UNREACHABLE = "node.kubernetes.io/unreachable"
CUT_S = 180
"""Three times as long as the controller manager takes to set a silent node's state to unknown."""
_RACK_S = 20
_READY_AGAIN_S = 120.0
# Kubernetes' default is 300 s ("Taints and Tolerations", Taint based Evictions): with it, a longer cut would end every pod.
_USUAL_TOLERATION_S = 300


def pods_of_a_rack_talk_within_it(context: Context) -> str:
    """Nothing is routed out of the rack meanwhile, so a response comes from inside."""
    near, far, distant = three_hosts(context.cluster)
    rack = _rack(context, near)
    pods, machines = context.workload.pods(), context.machines
    machines.isolate([rack], _RACK_S)
    try:
        inside = machines.reaches(near, pods[far].address)
        outside = machines.reaches(near, pods[distant].address)
    finally:
        machines.rejoin()
    summary = (
        f"nothing routed out of {rack}: {near} {_reaches(inside)} the pod on {far}, "
        f"{_reaches(outside)} the one on {distant} in another rack"
    )
    demand(inside and not outside, summary)
    return summary


def a_site_outlives_its_uplink(context: Context) -> str:
    near, far, distant = three_hosts(context.cluster)
    site = [host.name for _, host in context.cluster.host_list()]
    pods, stays = context.workload.pods(), context.workload.alone(near)
    tolerated = _tolerated_s(stays)
    demand(tolerated > _USUAL_TOLERATION_S, f"a pod tolerates an unreachable node for only {tolerated} s")
    before = _pods_on(context, site)
    racks = sorted({host.rack for _, host in context.cluster.host_list()})
    cut_at = time.monotonic()
    context.machines.isolate(racks, CUT_S)
    try:
        wait_until(lambda: _still_known(context, site), CUT_S, context.report, every_s=1.0)
        unknown_s = time.monotonic() - cut_at
        within = {name: _reached(context, near, pods[name]) for name in (far, distant)}
        time.sleep(max(0.0, cut_at + CUT_S - time.monotonic()))
        leaving = [name for name, (_, _, ends) in _pods_on(context, site).items() if ends]
    finally:
        context.machines.rejoin()
    rejoined_at = time.monotonic()
    wait_until(lambda: nodes_missing(context.api, frozenset(site)), _READY_AGAIN_S, context.report, every_s=1.0)
    ready_s = time.monotonic() - rejoined_at
    demand(
        all(within.values()),
        f"while cut off, {near} did not reach pods on {[name_ for name_ in within if not within[name_]]}",
    )
    after = _pods_on(context, site)
    changed = sorted({*leaving, *(name for name, was in before.items() if after.get(name) != was)})
    demand(not changed, f"evicted, restarted or missing after {CUT_S} s without the uplink: {', '.join(changed)}")
    return (
        f"cut off for {CUT_S} s: unknown after {unknown_s:.0f} s, {len(before)} pods kept running and reached one another, "
        f"none was evicted or restarted; Ready again after {ready_s:.0f} s"
    )


def _rack(context: Context, name: str) -> str:
    return next(host.rack for _, host in context.cluster.host_list() if host.name == name)


def _reaches(answered: bool) -> str:
    return "reaches" if answered else "does not reach"


def _reached(context: Context, host: str, pod: Pod) -> bool:
    return context.machines.reaches(host, pod.address)


def _tolerated_s(pod: Any) -> float:
    """Return how long a pod stays on an unreachable node. A toleration without a key matches every taint."""
    tolerations = [toleration for toleration in pod.spec.tolerations or () if toleration.key in (UNREACHABLE, None)]
    return max(
        (
            float("inf") if toleration.toleration_seconds is None else toleration.toleration_seconds
            for toleration in tolerations
        ),
        default=0,
    )


def _still_known(context: Context, nodes: Collection[str]) -> str:
    """Return which nodes the controller manager does not count as unknown yet.

    Checks conditions, not taints: it taints nodes one by one, and not always all of them.
    """
    listed = models(client.CoreV1Api(context.api).list_node)
    waiting = [
        node.metadata.name
        for node in listed
        if node.metadata.name in nodes
        and not any(
            condition.type == "Ready" and condition.status == "Unknown" for condition in node.status.conditions or ()
        )
    ]
    return f"not counted as unreachable yet: {', '.join(waiting)}" if waiting else ""


def _pods_on(context: Context, nodes: Collection[str]) -> dict[str, tuple[str, int, bool]]:
    """Return namespace/name -> (uid, restarts, whether it is being deleted). Leaves out pods that tolerate less than the cut:
    CoreDNS leaves a node that does not respond for a minute, while its other replica serves."""
    listed = models(client.CoreV1Api(context.api).list_pod_for_all_namespaces)
    return {
        f"{pod.metadata.namespace}/{pod.metadata.name}": (
            pod.metadata.uid,
            sum(status.restart_count for status in pod.status.container_statuses or ()),
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
        "a site whose uplink is cut keeps its pods, which reach one another, and recovers automatically",
        a_site_outlives_its_uplink,
        lacks=lacks_machines,
        effect=f"cuts the site off for {CUT_S} s; its nodes are unknown meanwhile",
    ),
)
