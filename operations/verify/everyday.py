"""Proofs that change nothing: nodes, events, traffic, names, logs."""

from __future__ import annotations

import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product

from clients.access import API_TIMEOUT_S
from clients.etcd_client import EtcdClient
from clients.kube import Kube
from clients.nodes import least_in_region
from clients.waiting import nodes_missing, wait_until
from cluster.errors import TimedOutError
from cluster.spec import Cluster
from operations.verify.proof import Context, FailedProofError, Proof, demand, lacks_machines
from operations.verify.workload import PORT, Pod

EVENTS_PREFIX = "/registry/events/"
_REQUESTS = 20
# CoreDNS caches "no such name" for at most 30 s (`cache` in its configuration). A Service may have a pod's former address
# until the kubelet of a rebooted host has reported the new one.
_NAMES_TIMEOUT_S = 60


def every_node_is_ready(context: Context) -> str:
    expected, at_sites = frozenset(context.nodes), len(context.cluster.host_list())
    missing = nodes_missing(context.api, expected)
    demand(not missing, missing)
    in_region, least = len(expected) - at_sites, least_in_region(context.cluster)
    demand(in_region >= least, f"{in_region} workers are in the region, at least {least} are required")
    return f"{len(expected)} of {len(expected)} nodes are Ready, {in_region} of them in the region"


def events_are_in_their_own_etcd(context: Context) -> str:
    reason = f"MenagerieVerify{secrets.token_hex(3)}"
    _record_event(context, reason)
    counts = {role: EtcdClient(context.access, role).count(EVENTS_PREFIX) for role in ("main", "events")}
    listed = sum(1 for _ in Kube(context.api).list("Event"))
    summary = f"{counts['events']} Event keys in etcd events, {counts['main']} in etcd main; the API lists {listed}"
    demand(counts["events"] > 0 and counts["main"] == 0, summary)
    return summary


def _record_event(context: Context, reason: str) -> None:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    namespace = context.workload.namespace
    context.workload.core.create_namespaced_event(
        namespace,
        {
            "metadata": {"generateName": "verify-"},
            "involvedObject": {"kind": "Namespace", "name": namespace, "namespace": namespace},
            "reason": reason,
            "message": "written by menagerie verify",
            "type": "Normal",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": "menagerie"},
        },
    )


def pods_on_one_segment_talk_without_encapsulation(context: Context) -> str:
    near, far, _ = _three(context)
    packets = context.machines.traffic(near.node, lambda: _talk(context, near, far))
    text = (
        f"{near.node} to {far.node}, same segment: {_REQUESTS} requests, {packets.plain} packets from pod to pod, "
        f"{packets.encapsulated} encapsulated"
    )
    demand(packets.encapsulated == 0 and packets.plain >= _REQUESTS, text)
    return text


def pods_across_segments_talk_through_vxlan(context: Context) -> str:
    near, _, distant = _three(context)
    packets = context.machines.traffic(near.node, lambda: _talk(context, near, distant))
    text = (
        f"{near.node} to {distant.node}, across segments: {_REQUESTS} requests, {packets.encapsulated} VXLAN packets, "
        f"{packets.plain} plain"
    )
    demand(packets.encapsulated >= _REQUESTS and packets.plain == 0, text)
    return text


def _three(context: Context) -> tuple[Pod, Pod, Pod]:
    """Return a pod, one on another host in its segment, and one in another segment."""
    near, far, distant = three_hosts(context.cluster)
    pods = context.workload.pods()
    return pods[near], pods[far], pods[distant]


def three_hosts(cluster: Cluster) -> tuple[str, str, str]:
    """Return a host, another in its layer-2 segment, and one in another segment. Raises FailedProofError if there are none."""
    segments: dict[str, list[str]] = {}
    for pool, host in cluster.host_list():
        segments.setdefault(f"{cluster.spec.pools[pool].site}/{host.rack}", []).append(host.name)
    near, far, *_ = next((hosts for hosts in segments.values() if len(hosts) > 1), ["", ""])
    distant = next((hosts[0] for hosts in segments.values() if near not in hosts), "")
    demand(bool(near and distant), f"needs two hosts in one rack and one in another, has {segments}")
    return near, far, distant


def _talk(context: Context, source: Pod, target: Pod) -> None:
    url = f"http://{target.address}:{PORT}/"
    loop = f"i=0; while [ $i -lt {_REQUESTS} ]; do timeout 5 wget -q -O - {url} || exit 1; i=$((i+1)); done"
    answer = context.workload.run(source, "sh", "-c", loop)
    count = answer.count(context.workload.word)
    demand(count == _REQUESTS, f"{count} of {_REQUESTS} requests from {source.node} to {target.node} got a response")


def a_service_name_resolves_and_answers(context: Context) -> str:
    url = f"http://probe.{context.workload.namespace}.svc.{context.cluster.spec.network.domain}/"
    deadline = time.monotonic() + _NAMES_TIMEOUT_S
    answers = [_answer(context, pod, url, deadline) for pod in context.workload.pods().values()]
    return f"{url}: {', '.join(answers)}"


def _answer(context: Context, pod: Pod, url: str, deadline: float) -> str:
    replies: list[str] = []

    def missing() -> str:
        replies.append(context.workload.fetch(pod, url).strip())
        return "" if context.workload.word in replies[-1] else f"from {pod.node}, {url} responded {replies[-1]!r}"

    try:
        wait_until(missing, deadline - time.monotonic(), context.report)
    except TimedOutError as error:
        raise FailedProofError(str(error)) from None
    late = f" ({len(replies)} attempts, the first got {replies[0]!r})" if len(replies) > 1 else ""
    return f"{pod.node} → {replies[-1].split(' ')[0]}{late}"


def logs_and_exec_work_without_a_route(context: Context) -> str:
    workload = context.workload
    pods = workload.pods()
    for pod in pods.values():
        log = workload.core.read_namespaced_pod_log(pod.name, workload.namespace, _request_timeout=API_TIMEOUT_S)
        demand(f"started {workload.word}" in log, f"the log of {pod.name} on {pod.node} is {log!r}")
        output = workload.run(pod, "echo", workload.word).strip()
        demand(output == workload.word, f"exec in {pod.name} on {pod.node} returned {output!r}")
    node_addresses = context.nodes
    servers = no_route(
        context, [address for pod in pods.values() for address in (node_addresses[pod.node], pod.address)]
    )
    return f"logs and exec on {len(pods)} nodes; {', '.join(servers)} have no route to their hosts or pods"


def no_route(context: Context, addresses: list[str]) -> list[str]:
    """Check that each API server reaches a member of etcd main, but none of the addresses. Return the API servers."""
    servers = [host.name for host in context.access.outputs.api_servers]
    member = context.access.outputs.etcds["main"].members[0].address
    pairs = list(product(servers, (member, *addresses)))
    with ThreadPoolExecutor() as pool:
        answers = pool.map(lambda pair: context.machines.reaches(*pair), pairs)
        for (server, address), answered in zip(pairs, answers, strict=True):
            target = f"{address} of etcd main" if address == member else address
            demand(answered == (address == member), f"{server} {'reaches' if answered else 'does not reach'} {target}")
    return servers


PROOFS = (
    Proof("nodes", "every node is Ready", every_node_is_ready),
    Proof("events", "every Event is in the events etcd and none in main", events_are_in_their_own_etcd),
    Proof(
        "direct",
        "pods on one layer-2 segment talk with no encapsulated packet",
        pods_on_one_segment_talk_without_encapsulation,
        lacks=lacks_machines,
    ),
    Proof(
        "vxlan",
        "pods across segments talk through VXLAN",
        pods_across_segments_talk_through_vxlan,
        lacks=lacks_machines,
    ),
    Proof("service", "a Service name resolves and answers, from every node", a_service_name_resolves_and_answers),
    Proof(
        "logs",
        "kubectl logs and exec work although API servers have no route to workers or pods",
        logs_and_exec_work_without_a_route,
        lacks=lacks_machines,
    ),
)
