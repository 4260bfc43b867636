"""What the cluster is said to run, and kube-proxy: after the last API server on the way up, before the first on the way back.

API-server hosts run kubeadm's phases at boot only where the cluster is said to run their own version
(components/control_plane/host/bootstrap.py), so that the first new host brings no kube-proxy that is newer than the old API servers.
kubeadm's own manifests of kube-proxy differ between releases by the image alone; a test compares them.
"""

from __future__ import annotations

import re

from kubernetes import client

from clients.access import API_TIMEOUT_S
from clients.waiting import Report, wait_until
from operations.upgrade.versions import CONFIG, CONFIG_KEY, PROXY

ROLLED_S = 1800.0
_NAMESPACE = "kube-system"
_VERSION = re.compile(r"^kubernetesVersion:.*$", re.MULTILINE)


def say(api: client.ApiClient, version: str) -> None:
    """Have the cluster said to run `version`."""
    core = client.CoreV1Api(api)
    found = core.read_namespaced_config_map(CONFIG, _NAMESPACE, _request_timeout=API_TIMEOUT_S)
    text = _VERSION.sub(f"kubernetesVersion: v{version}", found.data[CONFIG_KEY], count=1)
    # With the version that was read: an API-server host that boots may write it too.
    metadata = {"resourceVersion": found.metadata.resource_version}
    body = {"metadata": metadata, "data": {CONFIG_KEY: text}}
    core.patch_namespaced_config_map(CONFIG, _NAMESPACE, body, _request_timeout=API_TIMEOUT_S)


def roll_proxy(api: client.ApiClient, version: str, image: str, report: Report, timeout_s: float = ROLLED_S) -> None:
    """Have every node's kube-proxy run `version`, from an image by its digest. TimedOutError says how many still do not."""
    apps = client.AppsV1Api(api)
    container = {"name": PROXY, "image": image}
    # A kube-proxy that ends leaves its rules in the kernel; one node at a time, as kubeadm has it, takes hours on thousands.
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}}
    body = {"spec": {"updateStrategy": strategy, "template": {"spec": {"containers": [container]}}}}
    apps.patch_namespaced_daemon_set(PROXY, _NAMESPACE, body, _request_timeout=API_TIMEOUT_S)

    def missing() -> str:
        found = apps.read_namespaced_daemon_set(PROXY, _NAMESPACE, _request_timeout=API_TIMEOUT_S)
        status, wanted = found.status, found.status.desired_number_scheduled
        seen = (status.observed_generation or 0) >= found.metadata.generation
        done = min(status.updated_number_scheduled or 0, status.number_ready or 0) if seen else 0
        return "" if seen and done >= wanted else f"kube-proxy {version} is ready on {done} of {wanted} nodes"

    wait_until(missing, timeout_s, report, every_s=1.0)
