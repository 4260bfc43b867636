"""A compromised worker: what its kubelet's identity may change on its Node, and what it could attract to it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kubernetes import client

from clients.waiting import wait_until
from cluster import places
from cluster.load import load_cluster
from cluster.pools import POOL_LABEL, TRUSTED_POOL
from cluster.spec import Cluster
from operations.drain import MARK
from operations.stack import access_to
from sandbox.lab import hosts
from tests.lab.support import ROOT, Run

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

WORKER = "worker-2"
MERGE = "application/merge-patch+json"
FORBIDDEN = 403
AS_KUBELET = """
import base64, http.client, json, re, ssl, sys
method, path, body, kind = sys.argv[1:]
text = open("/etc/kubernetes/kubelet.conf").read()
host, port = re.search(r"server: https://([^:\\s]+):(\\d+)", text).groups()
ca = base64.b64decode(re.search(r"certificate-authority-data: (\\S+)", text)[1]).decode()
tls = ssl.create_default_context(cadata=ca)
tls.load_cert_chain("/var/lib/kubelet/pki/kubelet-client-current.pem")
connection = http.client.HTTPSConnection(host, int(port), timeout=20, context=tls)
connection.request(method, path, body or None, {"Content-Type": kind})
answer = connection.getresponse()
print(json.dumps({"status": answer.status, "body": json.loads(answer.read())}))
"""


@pytest.fixture(scope="module")
def cluster(lab: Run) -> Cluster:
    return load_cluster(ROOT / "inventories" / "lab" / "cluster.yaml")


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> client.ApiClient:
    return access_to(cluster).api()


def as_kubelet(method: str, path: str, body: Any = None, kind: str = MERGE) -> tuple[int, dict[str, Any]]:
    """Return the API's answer to the identity on the worker's disk."""
    text = "" if body is None else json.dumps(body)
    done = hosts.run(WORKER, ["python3", "-c", AS_KUBELET, method, path, text, kind])
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    return answer["status"], answer["body"]


def test_every_node_has_the_labels_of_the_spec_and_the_trust_label(cluster: Cluster, api: client.ApiClient) -> None:
    nodes = {node.metadata.name: node.metadata.labels for node in client.CoreV1Api(api).list_node().items}
    for pool, host in cluster.host_list():
        assert places.node_labels(cluster, pool, host).items() <= nodes[host.name].items()
    in_region = {name: labels for name, labels in nodes.items() if POOL_LABEL in labels}
    assert in_region
    assert {labels.get(TRUSTED_POOL) for labels in in_region.values()} == {"region"}


def test_root_on_a_worker_cannot_relabel_its_node_or_return_it_to_service(api: client.ApiClient) -> None:
    path = f"/api/v1/nodes/{WORKER}"
    before = client.CoreV1Api(api).read_node(WORKER).metadata
    tries = [
        *(
            {"metadata": {"labels": {key: "region"}}}
            for key in (POOL_LABEL, TRUSTED_POOL, places.RACK, "openai.com/team")
        ),
        {"metadata": {"annotations": {MARK: "{}"}}},
        {"metadata": {"finalizers": ["example.org/never"]}},
        {"spec": {"unschedulable": True}},
    ]
    answers = [as_kubelet("PATCH", path, body) for body in tries]
    answers += [as_kubelet("PATCH", f"{path}/status", body) for body in tries[:4]]
    assert [status for status, _ in answers] == [FORBIDDEN] * len(answers), answers
    after = client.CoreV1Api(api).read_node(WORKER).metadata
    assert (after.labels, after.finalizers, MARK in (after.annotations or {})) == (
        before.labels,
        before.finalizers,
        False,
    )


def test_its_node_cannot_register_with_other_labels(api: client.ApiClient) -> None:
    """As its kubelet would create it again if somebody deleted it; nothing is deleted here."""
    status, own = as_kubelet("GET", f"/api/v1/nodes/{WORKER}")
    assert status == 200
    labels = {key: value for key, value in own["metadata"]["labels"].items() if key != TRUSTED_POOL}
    taints = [{"key": "menagerie.dev/preflight", "effect": "NoSchedule"}]

    def create(taints: list[dict[str, str]], **more: str) -> tuple[int, dict[str, Any]]:
        body = {"metadata": {"name": WORKER, "labels": {**labels, **more}}, "spec": {"taints": taints}}
        return as_kubelet("POST", "/api/v1/nodes?dryRun=All", body, "application/json")

    assert create(taints)[0] == 409
    for more in ({POOL_LABEL: "region"}, {places.RACK: "r9"}, {"openai.com/team": "robotics"}):
        status, answer = create(taints, **more)
        assert (status, "the spec does not give" in answer["message"]) == (FORBIDDEN, True), answer
    status, answer = create([])
    assert (status, "registers without the taint" in answer["message"]) == (FORBIDDEN, True), answer


def test_a_restarted_kubelet_is_ready_again(api: client.ApiClient) -> None:
    """It registers first, with the labels of its join, and then writes its status: nothing of that is refused."""
    beat = client.CoreV1Api(api).read_node(WORKER).status.conditions[0].last_heartbeat_time
    assert hosts.run(WORKER, ["systemctl", "restart", "kubelet.service"]).returncode == 0

    def missing() -> str:
        conditions = client.CoreV1Api(api).read_node(WORKER).status.conditions
        ready = next(condition for condition in conditions if condition.type == "Ready")
        return "" if ready.status == "True" and ready.last_heartbeat_time > beat else f"{WORKER} is {ready.status}"

    wait_until(missing, 120, lambda _: None)


def test_removed_labels_are_restored(cluster: Cluster, api: client.ApiClient) -> None:
    core = client.CoreV1Api(api)
    core.patch_node(WORKER, {"metadata": {"labels": {TRUSTED_POOL: None, places.RACK: "r9"}}})
    (expected,) = (places.node_labels(cluster, pool, host) for pool, host in cluster.host_list() if host.name == WORKER)

    def missing() -> str:
        labels = core.read_node(WORKER).metadata.labels
        return "" if expected.items() <= labels.items() else f"{WORKER} has other labels"

    wait_until(missing, 60, lambda _: None)
