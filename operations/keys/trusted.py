"""The cluster's own copies of whom to trust as its API: kube-root-ca.crt in every namespace, which pods mount, and
kube-public/cluster-info, which tools read that join hosts.

The controller manager writes the first, with what it read at its start (k8s.io/kubernetes, pkg/controller/certificates/
rootcacertpublisher). kubeadm makes the second once, and writes it no more where it is.
"""

from __future__ import annotations

import base64
from typing import Any

import yaml
from cryptography import x509
from kubernetes import client

from clients.access import API_TIMEOUT_S

ROOT = "kube-root-ca.crt"
INFO, INFO_NAMESPACE = "cluster-info", "kube-public"


def missing(api: client.ApiClient, wanted: str) -> str:
    """Write cluster-info, and say which namespaces have others than the wanted authorities (PEM); nothing where all have these."""
    core = client.CoreV1Api(api)
    known = _certificates(wanted)
    _write_info(core, wanted)
    listed = core.list_config_map_for_all_namespaces(
        field_selector=f"metadata.name={ROOT}", _request_timeout=API_TIMEOUT_S
    )
    held = {each.metadata.namespace: _certificates((each.data or {}).get("ca.crt", "")) for each in listed.items}
    namespaces = core.list_namespace(_request_timeout=API_TIMEOUT_S).items
    live = [each.metadata.name for each in namespaces if each.metadata.deletion_timestamp is None]
    behind = sorted(name for name in live if held.get(name) != known)
    if not behind:
        return ""
    more = f" and {len(behind) - 5} more" if len(behind) > 5 else ""
    return f"{ROOT} is not up to date in {', '.join(behind[:5])}{more}; the controller manager writes it"


def _write_info(core: client.CoreV1Api, wanted: str) -> None:
    found = core.read_namespaced_config_map(INFO, INFO_NAMESPACE, _request_timeout=API_TIMEOUT_S)
    told: dict[str, Any] = yaml.safe_load(found.data["kubeconfig"])
    data = base64.b64encode(wanted.encode()).decode()
    if all(each["cluster"].get("certificate-authority-data") == data for each in told["clusters"]):
        return
    for each in told["clusters"]:
        each["cluster"]["certificate-authority-data"] = data
    body = {
        "metadata": {"resourceVersion": found.metadata.resource_version},
        "data": {"kubeconfig": yaml.safe_dump(told)},
    }
    core.patch_namespaced_config_map(INFO, INFO_NAMESPACE, body, _request_timeout=API_TIMEOUT_S)


def _certificates(pem: str) -> frozenset[x509.Certificate]:
    return frozenset(x509.load_pem_x509_certificates(pem.encode())) if pem.strip() else frozenset()
