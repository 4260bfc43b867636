"""A worker in the region: it boots from user data alone, and its pods do not reach what its machine may read."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from kubernetes import client

from cluster import versions
from cluster.files import JOIN_TOKEN
from cluster.load import find_cluster, load_cluster
from lab import hosts, plan
from operations.stack import access_to
from operations.verify.workload import Pod, Workload, workload
from operations.waiting import is_ready, wait_until
from tests.lab.support import ROOT, Run, menagerie
from workers import metadata

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]

WORKER = "lab-region-1"
SECRETS = f"{plan.STORE_URL}/v1/secrets"
# A packet that is sent to another address and rewritten on its way, as kube-proxy does it, and a table that is asked
# first and takes everything.
REWRITING = f"""
table inet probe {{
    chain before {{ type nat hook prerouting priority dstnat - 10; ip daddr 198.51.100.1 dnat ip to {metadata.METADATA}; }}
    chain through {{ type filter hook forward priority filter - 50; accept; }}
}}
"""


@pytest.fixture(scope="module")
def api(lab: Run) -> client.ApiClient:
    return access_to(load_cluster(find_cluster("lab", ROOT))).api()


@pytest.fixture(scope="module")
def pods(api: client.ApiClient) -> Iterator[Workload]:
    with workload(api, frozenset({WORKER}), print) as made:
        yield made


@pytest.fixture(scope="module")
def pod(pods: Workload) -> Pod:
    return pods.pods()[WORKER]


@pytest.fixture(scope="module")
def pod_of_the_host(api: client.ApiClient) -> Iterator[Pod]:
    """One in the network of its host, in the only namespace that allows it."""
    core, name = client.CoreV1Api(api), "menagerie-probe"
    container = {
        "name": "a",
        "image": f"docker.io/library/busybox:{versions.BUSYBOX}",
        "command": ["sleep", "600"],
    }
    spec = {"nodeName": WORKER, "hostNetwork": True, "terminationGracePeriodSeconds": 0, "containers": [container]}
    core.create_namespaced_pod("kube-system", {"metadata": {"name": name}, "spec": spec})
    wait_until(lambda: "" if is_ready(core.read_namespaced_pod(name, "kube-system")) else name, 60, print)
    yield Pod(name, WORKER, "")
    core.delete_namespaced_pod(name, "kube-system")


def on_host(*argv: str) -> str:
    done = hosts.run(WORKER, argv)
    return done.stdout + done.stderr


def asked(host: str, method: str, name: str) -> str:
    """The HTTP status of a request to the store."""
    told = hosts.run(host, ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-X", method, f"{SECRETS}/{name}"])
    return told.stdout


def refused() -> int:
    """Packets that the guard has sent back."""
    listed = on_host("nft", "list", "table", "inet", "menagerie-metadata")
    return int(listed.partition("counter packets ")[2].split()[0])


def test_a_worker_made_itself_a_node_of_its_pool(api: client.ApiClient) -> None:
    node = client.CoreV1Api(api).read_node(WORKER)
    assert is_ready(node)
    assert node.metadata.labels["openai.org/location"] == "lab-local"
    assert "everything is in place and started" in hosts.console(WORKER).read_text()


def test_nobody_can_log_in_to_it(lab: Run) -> None:
    listening = on_host("ss", "-Hltn")
    assert ":10250" in listening
    assert ":22 " not in listening


def test_api_servers_write_its_token_and_cannot_read_it_and_it_cannot_write(lab: Run) -> None:
    assert [asked(WORKER, method, JOIN_TOKEN) for method in ("GET", "PUT")] == ["200", "403"]
    assert asked("api-1", "GET", JOIN_TOKEN) == "403"
    assert [asked(WORKER, "GET", name) for name in ("kubernetes-ca.crt", "kubernetes-ca.key")] == ["200", "403"]


def test_a_pod_does_not_reach_the_address_from_which_its_host_reads_its_secrets(pods: Workload, pod: Pod) -> None:
    before = refused()
    assert "No route to host" in pods.run(pod, "timeout", "5", "wget", "-q", "-O", "-", f"{SECRETS}/{JOIN_TOKEN}")
    assert refused() > before
    assert asked(WORKER, "GET", JOIN_TOKEN) == "200"


def test_a_pod_reaches_other_addresses_outside_of_the_cluster(pods: Workload, pod: Pod) -> None:
    shown = pods.run(pod, "timeout", "5", "wget", "-S", "-O", "/dev/null", f"http://{plan.REGISTRY}/v2/")
    assert "200 OK" in shown


def test_a_pod_in_the_network_of_its_host_reaches_it(pods: Workload, pod_of_the_host: Pod) -> None:
    inside = Workload(pods.core.api_client, "kube-system", "", frozenset(), print)
    assert len(inside.fetch(pod_of_the_host, f"{SECRETS}/{JOIN_TOKEN}").strip()) == len("abcdef.0123456789abcdef")


def test_no_rewriting_of_addresses_and_no_other_table_undoes_the_guard(pods: Workload, pod: Pod) -> None:
    on_host("sh", "-c", f"echo '{REWRITING}' | nft -f -")
    try:
        url = f"http://198.51.100.1/v1/secrets/{JOIN_TOKEN}"
        assert "No route to host" in pods.run(pod, "timeout", "5", "wget", "-q", "-O", "-", url)
        on_host("nft", "flush", "table", "inet", "menagerie-metadata")
        assert len(pods.fetch(pod, url).strip()) == len("abcdef.0123456789abcdef")
    finally:
        on_host("nft", "delete", "table", "inet", "probe")
        on_host("systemctl", "restart", metadata.UNIT)
    assert "No route to host" in pods.run(pod, "timeout", "5", "wget", "-q", "-O", "-", f"{SECRETS}/{JOIN_TOKEN}")


def test_a_worker_that_reboots_is_a_node_again_and_guarded_before_any_pod_runs(
    pods: Workload, api: client.ApiClient
) -> None:
    core, boots = client.CoreV1Api(api), on_host("cat", "/proc/1/stat").split()[21]
    on_host("systemctl", "reboot")

    def missing() -> str:
        if hosts.leader(WORKER) is None or on_host("cat", "/proc/1/stat").split()[21:22] in ([], [boots]):
            return "not booted"
        return "" if on_host("systemctl", "is-active", "kubelet.service").strip() == "active" else "no kubelet"

    wait_until(missing, 90, print)
    units = (metadata.UNIT, "containerd.service", "kubelet.service")
    began = [int(on_host("systemctl", "show", "--value", "-p", "ActiveEnterTimestampMonotonic", u)) for u in units]
    assert began == sorted(began)
    assert "menagerie-metadata" in on_host("nft", "list", "tables")
    since = time.time()
    wait_until(lambda: "" if is_ready(core.read_node(WORKER)) else "not Ready", 90, print)
    assert time.time() - since < 90


def test_status_counts_it(lab: Run) -> None:
    def missing() -> str:
        items = {item["name"]: item for item in menagerie("status", "lab", "--json").json["items"]}
        ours = [items[WORKER], items["workers in the region"]]
        return "; ".join(item["detail"] for item in ours if not item["ok"])

    wait_until(missing, 60, print)
