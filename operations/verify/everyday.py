"""Proofs that leave a cluster as it is: nodes, events, traffic, names, logs."""

from __future__ import annotations

import secrets
import time

from kubernetes import client

from operations.etcd import EtcdClient
from operations.verify.proof import Context, Proof, demand
from operations.verify.workload import NAMESPACE, Pod
from operations.waiting import nodes_missing

EVENTS_PREFIX = "/registry/events/"
_REQUESTS = 20


def every_node_is_ready(context: Context) -> str:
    expected = frozenset(host.name for _, host in context.cluster.host_list())
    missing = nodes_missing(context.workload.api, expected)
    demand(not missing, missing)
    return f"{len(expected)} of {len(expected)} nodes are Ready"


def events_are_in_their_own_etcd(context: Context) -> str:
    reason = f"MenagerieVerify{secrets.token_hex(3)}"
    _record_event(context, reason)
    counts = {}
    for role in ("main", "events"):
        etcd = EtcdClient(context.access, role)
        member = next(m for m in etcd.etcd.members if etcd.is_healthy(m))
        counts[role] = etcd.count(member, EVENTS_PREFIX)
    listed = len(client.CoreV1Api(context.workload.api).list_event_for_all_namespaces().items)
    seen = f"{counts['events']} Event keys in etcd events, {counts['main']} in etcd main; the API lists {listed}"
    demand(counts["events"] > 0 and counts["main"] == 0, seen)
    return seen


def _record_event(context: Context, reason: str) -> None:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    context.workload.core.create_namespaced_event(
        NAMESPACE,
        {
            "metadata": {"generateName": "verify-"},
            "involvedObject": {"kind": "Namespace", "name": NAMESPACE, "namespace": NAMESPACE},
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
    seen = context.on_the_grounds().traffic(near.node, lambda: _talk(context, near, far))
    text = (
        f"{near.node} to {far.node}, same segment: {_REQUESTS} requests, {seen.plain} packets from pod to pod, "
        f"{seen.encapsulated} encapsulated"
    )
    demand(seen.encapsulated == 0 and seen.plain >= _REQUESTS, text)
    return text


def pods_across_segments_talk_through_vxlan(context: Context) -> str:
    near, _, distant = _three(context)
    seen = context.on_the_grounds().traffic(near.node, lambda: _talk(context, near, distant))
    text = (
        f"{near.node} to {distant.node}, across segments: {_REQUESTS} requests, {seen.encapsulated} VXLAN packets, "
        f"{seen.plain} plain"
    )
    demand(seen.encapsulated >= _REQUESTS and seen.plain == 0, text)
    return text


def _three(context: Context) -> tuple[Pod, Pod, Pod]:
    """A pod, one on another host of its segment, and one on another segment."""
    racks: dict[str, list[str]] = {}
    for _, host in context.cluster.host_list():
        racks.setdefault(host.rack, []).append(host.name)
    shared = next((names for names in racks.values() if len(names) > 1), None)
    demand(shared is not None and len(racks) > 1, f"needs two hosts in one rack and one in another, has {racks}")
    assert shared is not None
    other = next(names[0] for names in racks.values() if names is not shared)
    pods = context.workload.pods()
    return pods[shared[0]], pods[shared[1]], pods[other]


def _talk(context: Context, source: Pod, target: Pod) -> None:
    url = f"http://{target.address}:8080/"
    loop = f"i=0; while [ $i -lt {_REQUESTS} ]; do timeout 5 wget -q -O - {url} || exit 1; i=$((i+1)); done"
    answer = context.workload.run(source, "sh", "-c", loop)
    count = answer.count(context.workload.word)
    demand(count == _REQUESTS, f"{count} of {_REQUESTS} requests from {source.node} to {target.node} were answered")


def a_service_name_resolves_and_answers(context: Context) -> str:
    domain = context.cluster.spec.network.domain
    url = f"http://probe.{NAMESPACE}.svc.{domain}/"
    answers = []
    for pod in context.workload.pods().values():
        answer = context.workload.fetch(pod, url).strip()
        demand(context.workload.word in answer, f"from {pod.node}, {url} answered {answer!r}")
        answers.append(f"{pod.node} → {answer.split(' ')[0]}")
    return f"{url}: {', '.join(answers)}"


def logs_and_exec_work_without_a_route(context: Context) -> str:
    pods = context.workload.pods()
    api_server = context.access.outputs.api_servers[0].name
    addresses = {host.name: str(host.address) for _, host in context.cluster.host_list()}
    for pod in pods.values():
        log = context.workload.core.read_namespaced_pod_log(pod.name, NAMESPACE)
        demand(f"started {context.workload.word}" in log, f"the log of {pod.name} on {pod.node} is {log!r}")
        said = context.workload.run(pod, "echo", context.workload.word).strip()
        demand(said == context.workload.word, f"exec in {pod.name} on {pod.node} answered {said!r}")
    for pod in pods.values():
        for address in (addresses[pod.node], pod.address):
            demand(not context.on_the_grounds().reaches(api_server, address), f"{api_server} reaches {address}")
    return f"logs and exec on {len(pods)} nodes; {api_server} reaches none of their hosts or pods itself"


PROOFS = (
    Proof("nodes", "every node is Ready", every_node_is_ready),
    Proof("events", "every Event is in the events etcd and none in main", events_are_in_their_own_etcd),
    Proof(
        "direct",
        "pods on one layer-2 segment talk with no encapsulated packet",
        pods_on_one_segment_talk_without_encapsulation,
        needs_grounds=True,
    ),
    Proof(
        "vxlan", "pods across segments talk through VXLAN", pods_across_segments_talk_through_vxlan, needs_grounds=True
    ),
    Proof("service", "a Service name resolves and answers, from every node", a_service_name_resolves_and_answers),
    Proof(
        "logs",
        "kubectl logs and exec work although API servers have no route to workers or pods",
        logs_and_exec_work_without_a_route,
        needs_grounds=True,
    ),
)
