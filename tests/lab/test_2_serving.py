"""Kubelets' serving certificates in the lab: who signs them, who trusts them, and which requests of a worker are refused."""

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
    """API client of the operator."""
    return access_to(load_cluster(ROOT / "inventories" / "lab" / "cluster.yaml")).api()


def as_kubelet(name: str) -> client.ApiClient:
    """Return an API client with the identity of root on a worker."""
    access = access_to(load_cluster(ROOT / "inventories" / "lab" / "cluster.yaml"))
    pem = on_host(name, ["cat", CLIENT]).stdout
    return replace(access, certificate=pem, key=pem).api()


def requested(name: str, names: list[str], addresses: list[str]) -> str:
    """Request a serving certificate; return the request's name."""
    text = base64.b64encode(request(ec.generate_private_key(ec.SECP256R1()), name, names, addresses)).decode()
    spec = {"signerName": SIGNER, "request": text, "usages": ["digital signature", "server auth"]}
    body = {"metadata": {"generateName": "csr-"}, "spec": spec}
    return str(client.CertificatesV1Api(as_kubelet(name)).create_certificate_signing_request(body).metadata.name)


def conditions(api: client.ApiClient, name: str) -> list[str]:
    conditions_ = client.CertificatesV1Api(api).read_certificate_signing_request(name).status.conditions
    return [condition.type for condition in conditions_ or ()]


def test_each_kubelet_has_a_certificate_of_the_authority_that_only_api_servers_trust(lab: Run) -> None:
    trusted = on_host("api-1", ["cat", "/etc/kubernetes/pki/kubelet-serving-ca.crt"]).stdout
    clients = on_host("api-1", ["cat", "/etc/kubernetes/pki/ca.crt"]).stdout
    (authority,) = x509.load_pem_x509_certificates(trusted.encode())
    assert authority not in x509.load_pem_x509_certificates(clients.encode())
    for worker in (OWN, NEIGHBOUR, IN_REGION):
        shown = x509.load_pem_x509_certificate(on_host(worker, ["cat", SERVING]).stdout.encode())
        shown.verify_directly_issued_by(authority)


def test_a_worker_gets_no_certificate_for_another_address_or_name(lab: Run, api: client.ApiClient) -> None:
    nodes = {
        node.metadata.name: next(
            address_.address for address_ in node.status.addresses if address_.type == "InternalIP"
        )
        for node in client.CoreV1Api(api).list_node().items
    }
    refused = [
        requested(OWN, [OWN], [nodes[NEIGHBOUR]]),
        requested(OWN, [NEIGHBOUR], [nodes[OWN]]),
        requested(IN_REGION, [IN_REGION], [nodes[OWN]]),
    ]
    good = requested(OWN, [OWN], [nodes[OWN]])
    try:
        for _ in range(60):
            if "Approved" in conditions(api, good):
                break
            time.sleep(1)
        assert "Approved" in conditions(api, good), "the approver works"
        assert [conditions(api, node) for node in refused] == [[], [], []]
    finally:
        # `status` names nodes with several requests that nobody approves.
        for name in refused:
            client.CertificatesV1Api(api).delete_certificate_signing_request(name)


def test_logs_of_every_worker_are_served_with_these_certificates(lab: Run, api: client.ApiClient) -> None:
    core = client.CoreV1Api(api)

    def missing() -> str:
        """Earlier tests restart kubelets, which serve logs of their pods only a moment later."""
        pods = core.list_namespaced_pod("kube-system", label_selector="k8s-app=konnectivity-agent").items
        silent = {OWN, NEIGHBOUR, IN_REGION} - {pod.spec.node_name for pod in pods if _log(core, pod.metadata.name)}
        return f"no log from {', '.join(sorted(silent))}" if silent else ""

    wait_until(missing, 60, print)


def _log(core: client.CoreV1Api, pod: str) -> str:
    try:
        return str(core.read_namespaced_pod_log(pod, "kube-system", tail_lines=1))
    except ApiException:
        return ""


def test_a_kubelet_cannot_read_the_address_table_or_delete_its_node(lab: Run) -> None:
    core = client.CoreV1Api(as_kubelet(IN_REGION))
    with pytest.raises(ApiException, match="403"):
        core.read_namespaced_config_map("workers", "menagerie-serving")
    with pytest.raises(ApiException, match="403"):
        core.delete_node(IN_REGION)
