"""Counters of pods' traffic, on a node at a site and one in the region, against what iperf3 says that it sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

import pytest
from kubernetes import client

from clients.waiting import is_ready, wait_until
from cluster.allocations import SYSTEM_LABEL
from cluster.images import BUSYBOX, by_digest
from cluster.load import find_cluster, load_cluster
from operations.stack import access_to
from operations.verify.traffic import HEADERS, PROGRAM, TOLERANCE
from operations.verify.workload import CONTAINER_SECURITY
from sandbox.lab import hosts
from tests.lab.support import ROOT, Run
from tests.waiting import until

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

SITE, REGION = "worker-1", "lab-region-1"
NAMESPACES = ("traffic-one", "traffic-two")
MEGABYTES = 60
_LARGEST_SEGMENT = 9216
# ip-netns(8) lists the namespaces that containerd created for pods.
_NAMESPACE_OF = (
    'for n in $(ip netns list | cut -d" " -f1); do ip -n $n -4 -o addr | grep -qF " {}/" && echo $n; done; true'
)


@dataclass(frozen=True)
class Pod:
    node: str
    address: str
    space: str


@dataclass(frozen=True)
class Sent:
    bytes: int
    resent: int


@pytest.fixture(scope="module")
def pods(lab: Run) -> Iterator[dict[tuple[str, str], Pod]]:
    """(namespace, node) -> a pod that sleeps there."""
    cluster = load_cluster(find_cluster("lab", ROOT))
    core, image = client.CoreV1Api(access_to(cluster).api()), by_digest(cluster.spec, BUSYBOX)
    try:
        for namespace in NAMESPACES:
            core.create_namespace({"metadata": {"name": namespace, "labels": {SYSTEM_LABEL: "true"}}})
            for node in (SITE, REGION):
                core.create_namespaced_pod(namespace, _sleeping(node, image))
        yield {(namespace, node): _pod(core, namespace, node) for namespace in NAMESPACES for node in (SITE, REGION)}
    finally:
        for namespace in NAMESPACES:
            with suppress(client.ApiException):
                core.delete_namespace(namespace)


def _sleeping(node: str, image: str) -> dict[str, object]:
    container = {"name": "x", "image": image, "command": ["sleep", "3600"], "securityContext": CONTAINER_SECURITY}
    spec = {
        "nodeName": node,
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
    }
    return {"metadata": {"name": node}, "spec": spec}


def _pod(core: client.CoreV1Api, namespace: str, node: str) -> Pod:
    def missing() -> str:
        return "" if is_ready(core.read_namespaced_pod(node, namespace)) else f"{namespace}/{node} isn't ready"

    wait_until(missing, 120, print)
    address = core.read_namespaced_pod(node, namespace).status.pod_ip
    space = _run(node, "sh", "-c", _NAMESPACE_OF.format(address)).strip()
    assert space
    return Pod(node, address, space)


def _run(host: str, *words: str) -> str:
    done = hosts.run(host, list(words))
    assert done.returncode == 0, f"{host}: {' '.join(words)}: {done.stdout} {done.stderr}"
    return done.stdout


def transfer(source: Pod, target: Pod) -> Sent:
    """Send from one pod to another. Return what iperf3 says."""
    server = ["ip", "netns", "exec", target.space, "iperf3", "--server", "--one-off", "--daemon"]
    _run(target.node, *server)
    listening = ["ip", "netns", "exec", target.space, "ss", "-Hltn", "sport", "=", ":5201"]
    until(lambda: _run(target.node, *listening).strip(), "iperf3 does not listen")
    words = ["iperf3", "--client", target.address, "--bytes", f"{MEGABYTES}M", "--json"]
    report = json.loads(_run(source.node, "ip", "netns", "exec", source.space, *words))
    return Sent(report["end"]["sum_sent"]["bytes"], report["end"]["sum_sent"]["retransmits"])


def payloads(node: str, direction: str) -> dict[str, int]:
    """Return namespace -> bytes without headers that its pods on a node exchanged with pods."""
    rows = json.loads(_run(node, PROGRAM, "show", "--json"))["counters"]
    own = [each for each in rows if (each["direction"], each["class"]) == (direction, "pod")]
    return {str(each["namespace"]): each["bytes"] - HEADERS * each["packets"] for each in own}


def grown(before: dict[str, int], after: dict[str, int], namespace: str) -> int:
    return after.get(namespace, 0) - before.get(namespace, 0)


def assert_within(counted: int, sent: Sent) -> None:
    off = counted - sent.bytes
    limit = sent.bytes * TOLERANCE
    assert -limit <= off <= limit + sent.resent * _LARGEST_SEGMENT, f"{off / sent.bytes:+.4%}"


def test_two_namespaces_at_once_are_counted_at_both_ends_within_a_thousandth(pods) -> None:
    """One sends from the site to the region, the other from the region to the site."""
    one, two = NAMESPACES
    ways = {one: (SITE, REGION), two: (REGION, SITE)}
    before = {(node, direction): payloads(node, direction) for node in (SITE, REGION) for direction in ("out", "in")}
    with ThreadPoolExecutor() as pool:
        running = {name: pool.submit(transfer, *(pods[name, node] for node in way)) for name, way in ways.items()}
        sent = {name: future.result() for name, future in running.items()}
    for name, (source, target) in ways.items():
        for node, direction in ((source, "out"), (target, "in")):
            counted = grown(before[node, direction], payloads(node, direction), name)
            assert_within(counted, sent[name])


def test_a_killed_program_counts_on_and_comes_back(pods) -> None:
    namespace = NAMESPACES[0]
    before = payloads(SITE, "out")
    with ThreadPoolExecutor() as pool:
        running = pool.submit(transfer, pods[namespace, SITE], pods[namespace, REGION])
        _run(SITE, "systemctl", "kill", "--signal=KILL", "menagerie-traffic.service")
        sent = running.result()
    until(lambda: "running" in _run(SITE, "systemctl", "show", "-p", "SubState", "menagerie-traffic.service"))
    assert_within(grown(before, payloads(SITE, "out"), namespace), sent)


def test_a_deleted_table_comes_back_and_totals_never_go_backwards(pods) -> None:
    namespace = NAMESPACES[0]
    # What was counted before is read within a second.
    _run(SITE, "sleep", "2")
    before = payloads(SITE, "out")
    _run(SITE, "nft", "delete", "table", "ip", "menagerie_traffic")
    until(lambda: _run(SITE, "nft", "list", "tables").count("menagerie_traffic"), "the table does not come back")
    assert grown(before, payloads(SITE, "out"), namespace) >= 0
    again = payloads(SITE, "out")
    sent = transfer(pods[namespace, SITE], pods[namespace, REGION])
    assert_within(grown(again, payloads(SITE, "out"), namespace), sent)


def test_pods_in_the_hosts_network_are_named_as_not_attributed(pods) -> None:
    """kube-proxy or Ceph's daemons, for example; their number is a metric, and no counter has their namespace."""
    text = _run(SITE, "cat", "/var/lib/prometheus/node-exporter/menagerie_traffic.prom")
    assert "# TYPE menagerie_traffic_host_network_pods gauge" in text
    assert 'menagerie_traffic_addresses{state="attributed"}' in text
