"""Kubelets' serving certificates in the lab: who signs them, who believes them, and what a worker is refused."""

from __future__ import annotations

import base64
import time
from dataclasses import replace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.waiting import wait_until
from cluster.load import load_cluster
from operations.stack import access_to
from sandbox.lab.hosts import run as on_host
from tests.control_plane.serving_support import SIGNER, request
from tests.lab.support import ROOT, Run

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]

OWN, NEIGHBOUR, IN_REGION = "worker-1", "worker-2", "lab-region-1"
SERVING = "/var/lib/kubelet/pki/kubelet-server-current.pem"
CLIENT = "/var/lib/kubelet/pki/kubelet-client-current.pem"


@pytest.fixture(scope="module")
def api(lab: Run) -> client.ApiClient:
    """As the operator."""
    return access_to(load_cluster(ROOT / "inventories" / "lab" / "cluster.yaml")).api()


def as_kubelet(name: str) -> client.ApiClient:
    """What root on a worker can do in the API."""
    access = access_to(load_cluster(ROOT / "inventories" / "lab" / "cluster.yaml"))
    pem = on_host(name, ["cat", CLIENT]).stdout
    return replace(access, certificate=pem, key=pem).api()


def asked(name: str, names: list[str], addresses: list[str]) -> str:
    """Name of a request for a serving certificate."""
    text = base64.b64encode(request(ec.generate_private_key(ec.SECP256R1()), name, names, addresses)).decode()
    spec = {"signerName": SIGNER, "request": text, "usages": ["digital signature", "server auth"]}
    body = {"metadata": {"generateName": "csr-"}, "spec": spec}
    return str(client.CertificatesV1Api(as_kubelet(name)).create_certificate_signing_request(body).metadata.name)


def conditions(api: client.ApiClient, name: str) -> list[str]:
    found = client.CertificatesV1Api(api).read_certificate_signing_request(name).status.conditions
    return [each.type for each in found or ()]


def test_each_kubelet_shows_a_certificate_of_the_authority_that_api_servers_alone_believe(lab: Run) -> None:
    believed = on_host("api-1", ["cat", "/etc/kubernetes/pki/kubelet-serving-ca.crt"]).stdout
    clients = on_host("api-1", ["cat", "/etc/kubernetes/pki/ca.crt"]).stdout
    (authority,) = x509.load_pem_x509_certificates(believed.encode())
    assert authority not in x509.load_pem_x509_certificates(clients.encode())
    for worker in (OWN, NEIGHBOUR, IN_REGION):
        shown = x509.load_pem_x509_certificate(on_host(worker, ["cat", SERVING]).stdout.encode())
        shown.verify_directly_issued_by(authority)


def test_a_worker_is_given_no_neighbours_address_and_nothing_in_another_s_name(lab: Run, api: client.ApiClient) -> None:
    nodes = {
        each.metadata.name: next(one.address for one in each.status.addresses if one.type == "InternalIP")
        for each in client.CoreV1Api(api).list_node().items
    }
    refused = [
        asked(OWN, [OWN], [nodes[NEIGHBOUR]]),
        asked(OWN, [NEIGHBOUR], [nodes[OWN]]),
        asked(IN_REGION, [IN_REGION], [nodes[OWN]]),
    ]
    good = asked(OWN, [OWN], [nodes[OWN]])
    for _ in range(60):
        if "Approved" in conditions(api, good):
            break
        time.sleep(1)
    assert "Approved" in conditions(api, good), "the approver is at work"
    assert [conditions(api, each) for each in refused] == [[], [], []]


def test_logs_of_every_worker_come_by_these_certificates(lab: Run, api: client.ApiClient) -> None:
    core = client.CoreV1Api(api)

    def missing() -> str:
        """Tests before this one restart kubelets, which answer for their pods a moment later."""
        pods = core.list_namespaced_pod("kube-system", label_selector="k8s-app=konnectivity-agent").items
        silent = {OWN, NEIGHBOUR, IN_REGION} - {pod.spec.node_name for pod in pods if _log(core, pod.metadata.name)}
        return f"no log from {', '.join(sorted(silent))}" if silent else ""

    wait_until(missing, 60, print)


def _log(core: client.CoreV1Api, pod: str) -> str:
    try:
        return str(core.read_namespaced_pod_log(pod, "kube-system", tail_lines=1))
    except ApiException:
        return ""


def test_a_kubelet_neither_reads_who_has_which_address_nor_deletes_its_node(lab: Run) -> None:
    core = client.CoreV1Api(as_kubelet(IN_REGION))
    with pytest.raises(ApiException, match="403"):
        core.read_namespaced_config_map("workers", "menagerie-serving")
    with pytest.raises(ApiException, match="403"):
        core.delete_node(IN_REGION)
