"""Ports of Services on nodes: open to the cluster's own nodes and pods, at every site and in the region, and to nothing else."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from kubernetes import client

from clients.waiting import wait_until
from cluster.load import find_cluster, load_cluster
from operations.stack import access_to
from sandbox.lab import hosts
from tests.lab.probe import NAME, workload
from tests.lab.support import ROOT, Run, menagerie

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

ANSWER = ["curl", "-s", "-m", "2", "-o", "/dev/null", "-w", "%{http_code}"]
NODES = ("worker-1", "worker-3", "lab-region-1")
"""Two racks of a site, and the region."""


@pytest.fixture(scope="module")
def api(lab: Run) -> client.ApiClient:
    return access_to(load_cluster(find_cluster("lab", ROOT))).api()


@pytest.fixture(scope="module")
def addresses(api: client.ApiClient) -> dict[str, str]:
    """Node -> its address."""
    nodes = client.CoreV1Api(api).list_node().items
    by_node = {
        node.metadata.name: next(a.address for a in node.status.addresses if a.type == "InternalIP") for node in nodes
    }
    assert set(NODES) <= set(by_node)
    return by_node


@pytest.fixture(scope="module")
def port(api: client.ApiClient) -> Iterator[int]:
    """Port of a Service, on every node."""
    with workload(api) as service:
        yield service.ports[0].node_port


@pytest.mark.parametrize("client_node", NODES)
def test_every_node_reaches_the_port_on_every_node(port: int, addresses: dict[str, str], client_node: str) -> None:
    """The Service may be seconds old: each node's kube-proxy opens the port when it learns of it."""

    def unanswered() -> str:
        urls = {name: f"http://{address}:{port}/" for name, address in addresses.items()}
        answers = {name: hosts.run(client_node, [*ANSWER, url]).stdout for name, url in urls.items()}
        return ", ".join(f"{name}: {answer}" for name, answer in answers.items() if answer != "200")

    wait_until(unanswered, 30, print)


def test_a_pod_reaches_the_port_on_every_node(port: int, addresses: dict[str, str], api: client.ApiClient) -> None:
    pods = client.CoreV1Api(api).list_namespaced_pod(NAME).items
    pod = next(candidate for candidate in pods if candidate.spec.node_name.startswith("worker"))
    kubectl = [
        str(ROOT / ".menagerie" / "bin" / "kubectl"),
        "--kubeconfig",
        menagerie("kubeconfig", "lab").out.strip(),
    ]
    for address in addresses.values():
        url = f"http://{address}:{port}/"
        command = [*kubectl, "-n", NAME, "exec", pod.metadata.name, "--", "timeout", "5", "wget", "-q", "-O", "-", url]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.stdout.startswith(NAME), f"{address}: {done.stderr}"


def test_the_operators_machine_cannot_reach_it_at_a_site(port: int, addresses: dict[str, str]) -> None:
    """A cloud's firewall blocks this for workers in the region; the lab's router does not: it admits this machine."""
    at_sites = {name: address for name, address in addresses.items() if name.startswith("worker-")}
    assert len(at_sites) == 3
    for name, address in at_sites.items():
        command = [*ANSWER, f"http://{address}:{port}/"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode != 0, done.stdout) == (True, "000"), name
