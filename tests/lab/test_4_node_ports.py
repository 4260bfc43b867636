"""Ports of Services on nodes: open to the cluster's own nodes and pods, at every site and in the region, and to nobody else."""

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
    """Node -> where it is reached."""
    nodes = client.CoreV1Api(api).list_node().items
    found = {
        each.metadata.name: next(a.address for a in each.status.addresses if a.type == "InternalIP") for each in nodes
    }
    assert set(NODES) <= set(found)
    return found


@pytest.fixture(scope="module")
def port(api: client.ApiClient) -> Iterator[int]:
    """Of a Service, on every node."""
    with workload(api) as service:
        yield service.ports[0].node_port


@pytest.mark.parametrize("asks", NODES)
def test_every_node_reaches_the_port_on_every_node(port: int, addresses: dict[str, str], asks: str) -> None:
    """The Service may be seconds old: each node's kube-proxy opens the port when it has heard of it."""

    def unanswered() -> str:
        urls = {name: f"http://{address}:{port}/" for name, address in addresses.items()}
        answers = {name: hosts.run(asks, [*ANSWER, url]).stdout for name, url in urls.items()}
        return ", ".join(f"{name}: {answer}" for name, answer in answers.items() if answer != "200")

    wait_until(unanswered, 30, print)


def test_a_pod_reaches_the_port_on_every_node(port: int, addresses: dict[str, str], api: client.ApiClient) -> None:
    pods = client.CoreV1Api(api).list_namespaced_pod(NAME).items
    pod = next(each for each in pods if each.spec.node_name.startswith("worker"))
    kubectl = [
        str(ROOT / ".menagerie" / "bin" / "kubectl"),
        "--kubeconfig",
        menagerie("kubeconfig", "lab").out.strip(),
    ]
    for address in addresses.values():
        url = f"http://{address}:{port}/"
        words = [*kubectl, "-n", NAME, "exec", pod.metadata.name, "--", "timeout", "5", "wget", "-q", "-O", "-", url]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
        assert done.stdout.startswith(NAME), f"{address}: {done.stderr}"


def test_the_operator_s_machine_does_not_reach_it_at_a_site(port: int, addresses: dict[str, str]) -> None:
    """What a cloud's firewall keeps from workers in the region, the lab's router does not: it lets this machine in."""
    at_sites = {name: address for name, address in addresses.items() if name.startswith("worker-")}
    assert len(at_sites) == 3
    for name, address in at_sites.items():
        words = [*ANSWER, f"http://{address}:{port}/"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode != 0, done.stdout) == (True, "000"), name
