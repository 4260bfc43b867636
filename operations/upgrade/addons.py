"""kubeadm's record of the cluster's version, and kube-proxy: changed after the last API server in an upgrade, before the first
one in a rollback.

API-server hosts run kubeadm's phases at boot only if the recorded version is their own
(components/control_plane/host/bootstrap.py). Otherwise the first new host would install a kube-proxy that is newer than the
old API servers. kubeadm's kube-proxy manifests differ between releases only in the image; a test compares them.
"""

from __future__ import annotations

import re

from kubernetes import client

from clients.access import API_TIMEOUT_S
from clients.waiting import Report, wait_until
from operations.upgrade.parts import CONFIG, CONFIG_KEY, PROXY

ROLLED_S = 1800.0
_NAMESPACE = "kube-system"
_VERSION = re.compile(r"^kubernetesVersion:.*$", re.MULTILINE)


def record_version(api: client.ApiClient, version: str) -> None:
    """Record `version` as the cluster's version."""
    core = client.CoreV1Api(api)
    config_map = core.read_namespaced_config_map(CONFIG, _NAMESPACE, _request_timeout=API_TIMEOUT_S)
    text = _VERSION.sub(f"kubernetesVersion: v{version}", config_map.data[CONFIG_KEY], count=1)
    # With the resourceVersion that was read: a booting API-server host may write it too.
    metadata = {"resourceVersion": config_map.metadata.resource_version}
    body = {"metadata": metadata, "data": {CONFIG_KEY: text}}
    core.patch_namespaced_config_map(CONFIG, _NAMESPACE, body, _request_timeout=API_TIMEOUT_S)


def roll_proxy(api: client.ApiClient, version: str, image: str, report: Report, timeout_s: float = ROLLED_S) -> None:
    """Roll kube-proxy to `version` on every node, with an image by digest. Raises TimedOutError with how many nodes
    are done."""
    apps = client.AppsV1Api(api)
    container = {"name": PROXY, "image": image}
    # A stopped kube-proxy leaves its rules in the kernel. One node at a time, kubeadm's default, takes hours with thousands.
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}}
    body = {"spec": {"updateStrategy": strategy, "template": {"spec": {"containers": [container]}}}}
    apps.patch_namespaced_daemon_set(PROXY, _NAMESPACE, body, _request_timeout=API_TIMEOUT_S)

    def missing() -> str:
        daemon_set = apps.read_namespaced_daemon_set(PROXY, _NAMESPACE, _request_timeout=API_TIMEOUT_S)
        status, desired = daemon_set.status, daemon_set.status.desired_number_scheduled
        is_observed = (status.observed_generation or 0) >= daemon_set.metadata.generation
        done = min(status.updated_number_scheduled or 0, status.number_ready or 0) if is_observed else 0
        return "" if is_observed and done >= desired else f"kube-proxy {version} is ready on {done} of {desired} nodes"

    wait_until(missing, timeout_s, report, every_s=1.0)
