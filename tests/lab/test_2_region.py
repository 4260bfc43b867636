"""A worker in the region: it boots from user data alone, and its pods can't reach the secrets that its machine may read."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import suppress

import pytest
from kubernetes import client
from kubernetes.client.exceptions import NotFoundException

from clients.waiting import is_ready, nodes_missing, wait_until
from cluster import versions
from cluster.files import JOIN_TOKEN
from cluster.load import find_cluster, load_cluster
from components.control_plane import joining
from components.control_plane.host import csr
from components.workers import metadata, render
from operations.stack import access_to
from operations.verify.workload import Pod, Workload, workload
from sandbox.lab import hosts, plan
from sandbox.lab.errors import LabError
from tests.control_plane.joins import CLIENT, CSR, asked_pem, new_key
from tests.lab.support import ROOT, Run, menagerie

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]

WORKER = "lab-region-1"
SECRETS = f"{plan.STORE_URL}/v1/secrets"
# A packet to another address that is rewritten on its way, as kube-proxy does, and a table that is evaluated first and
# accepts everything.
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
    with workload(api, frozenset({WORKER}), print) as workload_:
        yield workload_


@pytest.fixture(scope="module")
def pod(pods: Workload) -> Pod:
    return pods.pods()[WORKER]


@pytest.fixture(scope="module")
def pod_of_the_host(api: client.ApiClient) -> Iterator[Pod]:
    """A pod in the network of its host, in the only namespace that permits it."""
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
    # It is deleted with its Node if a test deletes that.
    with suppress(NotFoundException):
        core.delete_namespaced_pod(name, "kube-system")


def on_host(*argv: str) -> str:
    done = hosts.run(WORKER, argv)
    return done.stdout + done.stderr


def store_status(host: str, method: str, name: str) -> str:
    """Return the HTTP status of a request to the store."""
    response = hosts.run(
        host, ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-X", method, f"{SECRETS}/{name}"]
    )
    return response.stdout


def refused_packets() -> int:
    """Return how many packets of pods have been refused."""
    rules = on_host("iptables", "-vnxL", metadata.CHAIN).splitlines()
    return sum(int(rule.split()[0]) for rule in rules if "reject-with" in rule)


def test_a_worker_joined_as_a_node_of_its_pool(api: client.ApiClient) -> None:
    node = client.CoreV1Api(api).read_node(WORKER)
    assert is_ready(node)
    assert node.metadata.labels["openai.org/location"] == "lab-local"
    assert "everything is in place and started" in hosts.console(WORKER).read_text()


def test_nobody_can_log_in_to_it(lab: Run) -> None:
    listening = on_host("ss", "-Hltn")
    assert ":10250" in listening
    assert ":22 " not in listening


def test_api_servers_can_only_write_its_token_and_it_can_only_read(lab: Run) -> None:
    assert [store_status(WORKER, method, JOIN_TOKEN) for method in ("GET", "PUT")] == ["200", "403"]
    assert store_status("api-1", "GET", JOIN_TOKEN) == "403"
    assert [store_status(WORKER, "GET", name) for name in ("kubernetes-ca.crt", "kubernetes-ca.key")] == ["200", "403"]


def test_a_pod_cannot_reach_the_address_of_its_hosts_secrets(pods: Workload, pod: Pod) -> None:
    before = refused_packets()
    assert "No route to host" in pods.run(pod, "timeout", "5", "wget", "-q", "-O", "-", f"{SECRETS}/{JOIN_TOKEN}")
    assert refused_packets() > before
    assert store_status(WORKER, "GET", JOIN_TOKEN) == "200"


def test_a_pod_reaches_other_addresses_outside_the_cluster(pods: Workload, pod: Pod) -> None:
    output = pods.run(pod, "timeout", "5", "wget", "-S", "-O", "/dev/null", f"http://{plan.REGISTRY}/v2/")
    assert "200 OK" in output


def test_a_pod_in_the_network_of_its_host_reaches_the_store(pods: Workload, pod_of_the_host: Pod) -> None:
    inside = Workload(pods.core.api_client, "kube-system", "", frozenset(), print)
    assert len(inside.fetch(pod_of_the_host, f"{SECRETS}/{JOIN_TOKEN}").strip()) == len("abcdef.0123456789abcdef")


def test_address_rewriting_and_other_tables_cannot_bypass_the_guard(pods: Workload, pod: Pod) -> None:
    on_host("sh", "-c", f"echo '{REWRITING}' | nft -f -")
    try:
        url = f"http://198.51.100.1/v1/secrets/{JOIN_TOKEN}"
        assert "No route to host" in pods.run(pod, "timeout", "5", "wget", "-q", "-O", "-", url)
        on_host("iptables", "-F", metadata.CHAIN)
        # Not wget -T: busybox 1.35 crashes when that time is over.
        assert "timed out" in pods.run(pod, "nc", "-w", "2", "198.51.100.1", "80")
        on_host("iptables", "-t", "security", "-F", "FORWARD")
        assert len(pods.fetch(pod, url).strip()) == len("abcdef.0123456789abcdef")
    finally:
        on_host("nft", "delete", "table", "inet", "probe")
        on_host("systemctl", "restart", metadata.UNIT)
    assert "No route to host" in pods.run(pod, "timeout", "5", "wget", "-q", "-O", "-", f"{SECRETS}/{JOIN_TOKEN}")


def test_a_rebooted_worker_is_a_node_again_and_guarded_before_any_pod_runs(
    pods: Workload, api: client.ApiClient
) -> None:
    core, boots = client.CoreV1Api(api), on_host("cat", "/proc/1/stat").split()[21]
    containers = groups_of_containers()
    assert containers
    on_host("systemctl", "reboot")

    def missing() -> str:
        try:  # the host may go down between two looks
            if on_host("cat", "/proc/1/stat").split()[21:22] in ([], [boots]):
                return "not booted"
            return "" if on_host("systemctl", "is-active", "kubelet.service").strip() == "active" else "no kubelet"
        except LabError:
            return "not booted"

    wait_until(missing, 90, print)
    units = (metadata.UNIT, "containerd.service", "kubelet.service")
    started = [int(on_host("systemctl", "show", "--value", "-p", "ActiveEnterTimestampMonotonic", u)) for u in units]
    assert started == sorted(started)
    assert containers & groups_of_containers() == set(), "control groups survived the reboot"
    assert f"-j {metadata.CHAIN}" in on_host("iptables", "-S", "FORWARD")
    assert "-j DROP" in on_host("iptables", "-t", "security", "-S", "FORWARD")
    # By the worker's clock. Until the API server has missed a few heartbeats, it reports a host that is down as Ready.
    started = 'date -d "$(systemctl show --value -p ExecMainStartTimestamp kubelet.service)" +%s'
    booted = int(on_host("sh", "-c", started))
    wait_until(lambda: "" if reported_ready(core.read_node(WORKER)) >= booted else "not Ready", 90, print)


def groups_of_containers() -> set[str]:
    return set(on_host("find", "/sys/fs/cgroup", "-path", "*/pod*/*", "-type", "d", "-printf", "%f\\n").split())


def reported_ready(node: client.V1Node) -> float:
    """Return when its kubelet last reported Ready, in seconds since 1970; 0 if it is not Ready."""
    ready = [
        condition for condition in node.status.conditions if (condition.type, condition.status) == ("Ready", "True")
    ]
    return float(ready[0].last_heartbeat_time.timestamp()) if ready else 0.0


def test_status_counts_it(lab: Run) -> None:
    def missing() -> str:
        items = {item["name"]: item for item in menagerie("status", "lab", "--json").json["items"]}
        ours = [items[WORKER], items["workers in the region"]]
        return "; ".join(item["detail"] for item in ours if not item["ok"])

    wait_until(missing, 60, print)


def request_as(node: str) -> str:
    """Request a certificate as root on the worker with the token that it may read; return the request's name."""
    token = json.loads(on_host("/usr/local/sbin/menagerie-secret", JOIN_TOKEN))[JOIN_TOKEN]
    endpoint = json.loads(on_host("cat", render.SETTINGS))["join"]["endpoint"]
    spec = {
        "signerName": CLIENT,
        "request": asked_pem(new_key(), f"system:node:{node}"),
        "usages": ["digital signature", "client auth"],
    }
    kind = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
    body = json.dumps({**kind, "metadata": {"generateName": "stolen-"}, "spec": spec})
    sent = ("-H", "Content-Type: application/json", "-H", f"Authorization: Bearer {token}", "-d", body)
    response = on_host("curl", "-s", "--cacert", render.CA, *sent, f"https://{endpoint}{CSR}")
    return str(json.loads(response)["metadata"]["name"])


def objection(request: str) -> str:
    """Return why approvers on API servers left a request pending, "" before they decide."""
    unit = ("-u", f"{joining.NAME}.service", "-o", "cat", "--no-pager")
    journals = [
        hosts.run(host, ["journalctl", *unit]).stdout for host in hosts.created_hosts() if host.startswith("api-")
    ]
    lines = [line for text in journals for line in text.splitlines() if line.startswith(f"{request} is left pending: ")]
    return lines[0] if lines else ""


@pytest.mark.parametrize(
    ("node", "why"), [("worker-1", "the cloud has no machine worker-1"), (WORKER, f"{WORKER} already joined")]
)
def test_root_on_it_cannot_become_another_node_with_its_token(api: client.ApiClient, node: str, why: str) -> None:
    certificates = client.CertificatesV1Api(api)
    request = request_as(node)
    try:
        wait_until(lambda: "" if objection(request) else f"nobody decided about {request}", 60, print)
        assert why in objection(request)
        status = certificates.read_certificate_signing_request(request).status
        assert not status.conditions
        assert not status.certificate
    finally:
        certificates.delete_certificate_signing_request(request)


@pytest.mark.soak
def test_it_joins_again_as_itself_when_an_operator_permits_it(api: client.ApiClient) -> None:
    """The machine is the same: the operator deletes its Node and its former requests."""
    core, certificates = client.CoreV1Api(api), client.CertificatesV1Api(api)
    on_host("systemctl", "stop", "kubelet.service")
    core.delete_node(WORKER)
    listed = certificates.list_certificate_signing_request(field_selector=f"spec.signerName={CLIENT}")
    for request in listed.items:
        node_name = csr.parse(base64.b64decode(request.spec.request).decode()).common_name
        if request.spec.username.startswith("system:bootstrap:") and node_name == f"system:node:{WORKER}":
            certificates.delete_certificate_signing_request(request.metadata.name)
    on_host("rm", "-f", "/etc/kubernetes/kubelet.conf")
    # An attempt before flannel is ready fails, and systemd retries.
    hosts.run(WORKER, ["systemctl", "restart", render.JOIN], timeout=300)
    nodes = frozenset({WORKER})
    wait_until(lambda: nodes_missing(api, nodes), 240, print)
