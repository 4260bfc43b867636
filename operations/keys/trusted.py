"""The cluster's copies of the API's authorities: kube-root-ca.crt in every namespace, which pods mount, and
kube-public/cluster-info, which is read by tools that join hosts.

The controller manager writes the first, with the content it read at its start (k8s.io/kubernetes,
pkg/controller/certificates/rootcacertpublisher). kubeadm creates the second once and never updates it.
"""

from __future__ import annotations

import base64
from typing import Any

import yaml
from cryptography import x509
from kubernetes import client

from clients.access import API_TIMEOUT_S
from clients.kube import Kube

ROOT = "kube-root-ca.crt"
INFO, INFO_NAMESPACE = "cluster-info", "kube-public"


def missing(api: client.ApiClient, authorities: str) -> str:
    """Write cluster-info. Return which namespaces do not have exactly these authorities (PEM), "" if all do."""
    core = client.CoreV1Api(api)
    expected = _certificates(authorities)
    _write_info(core, authorities)
    kube = Kube(api)
    listed = kube.list("ConfigMap", fields=f"metadata.name={ROOT}")
    held = {each["metadata"]["namespace"]: _certificates((each.get("data") or {}).get("ca.crt", "")) for each in listed}
    namespaces = [each["metadata"] for each in kube.list("Namespace")]
    live = [metadata["name"] for metadata in namespaces if "deletionTimestamp" not in metadata]
    behind = sorted(name for name in live if held.get(name) != expected)
    if not behind:
        return ""
    more = f" and {len(behind) - 5} more" if len(behind) > 5 else ""
    return f"{ROOT} is not up to date in {', '.join(behind[:5])}{more}; the controller manager writes it"


def _write_info(core: client.CoreV1Api, authorities: str) -> None:
    config_map = core.read_namespaced_config_map(INFO, INFO_NAMESPACE, _request_timeout=API_TIMEOUT_S)
    kubeconfig: dict[str, Any] = yaml.safe_load(config_map.data["kubeconfig"])
    data = base64.b64encode(authorities.encode()).decode()
    if all(entry["cluster"].get("certificate-authority-data") == data for entry in kubeconfig["clusters"]):
        return
    for entry in kubeconfig["clusters"]:
        entry["cluster"]["certificate-authority-data"] = data
    body = {
        "metadata": {"resourceVersion": config_map.metadata.resource_version},
        "data": {"kubeconfig": yaml.safe_dump(kubeconfig)},
    }
    core.patch_namespaced_config_map(INFO, INFO_NAMESPACE, body, _request_timeout=API_TIMEOUT_S)


def _certificates(pem: str) -> frozenset[x509.Certificate]:
    return frozenset(x509.load_pem_x509_certificates(pem.encode())) if pem.strip() else frozenset()
