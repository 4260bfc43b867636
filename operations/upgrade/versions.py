"""Reads the version of every part of a cluster, as the parts report it. Changes nothing.

Asks API servers without the Kubernetes client, because `up` does so too while the engine needs the memory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import urllib3

from clients.access import API_TIMEOUT_S, Access
from cluster.releases import NodePrograms, numbers
from cluster.spec import Cluster
from components.control_plane.ports import API_PORT
from etcd.apiserver import probe_path

if TYPE_CHECKING:
    from kubernetes import client

ASKED = 16
"""Connections through the load balancer. With round-robin, they reach each of a dozen backends. With random choice, the
probability to miss one of two is 1 in 32768."""
CONFIG, CONFIG_KEY = "kubeadm-config", "ClusterConfiguration"
PROXY = "kube-proxy"
_NAMESPACE = "kube-system"


@dataclass(frozen=True)
class RunningVersions:
    """Running versions, without the v; "" for parts that do not respond.

    hosts: API-server host -> version; {} in a cloud, where the hosts are unknown. answers: versions behind the load
    balancer. said: kubeadm's record of the cluster's version. proxy: of kube-proxy's image. nodes: node -> versions that it
    reports; region: those of them in the region. begun: those that an earlier run has taken out of service.
    """

    hosts: Mapping[str, str] = field(default_factory=dict)
    answers: frozenset[str] = frozenset()
    said: str = ""
    proxy: str = ""
    nodes: Mapping[str, NodePrograms] = field(default_factory=dict)
    region: frozenset[str] = frozenset()
    begun: frozenset[str] = frozenset()

    @property
    def servers(self) -> frozenset[str]:
        """Versions of all API servers that respond."""
        return frozenset(version for version in (*self.hosts.values(), *self.answers) if version)

    @property
    def newest(self) -> str:
        """The newest version of any part of Kubernetes, "" if nothing responds."""
        versions_ = [
            version
            for version in (*self.servers, *(node.kubelet for node in self.nodes.values()), self.proxy)
            if version
        ]
        return max(versions_, key=numbers, default="")


def servers(access: Access) -> frozenset[str]:
    """Return the versions of the API servers behind the load balancer; none if none responds."""
    with ThreadPoolExecutor(ASKED) as threads:
        replies = threads.map(lambda _: _version(access), range(ASKED))
    return frozenset(version for version in replies if version)


def hosts(access: Access) -> dict[str, str]:
    """Return API-server host -> version, "" if it does not respond or isn't ready."""
    listed = access.outputs.api_servers
    with ThreadPoolExecutor(max(1, len(listed))) as threads:
        replies = threads.map(lambda host: _version(access, f"https://{host.address}:{API_PORT}"), listed)
        return {host.name: version for host, version in zip(listed, replies, strict=True)}


def metrics(access: Access) -> list[str]:
    """Return the metrics of each API server in Prometheus' text format: of those with names, else of those that connections
    through the load balancer reach."""
    urls = [f"https://{host.address}:{API_PORT}" for host in access.outputs.api_servers] or [""] * ASKED
    with ThreadPoolExecutor(len(urls)) as threads:
        return [text for texts in threads.map(lambda url: _metrics(access, url), urls) for text in texts]


def _metrics(access: Access, url: str) -> list[str]:
    """Return the metrics of one server, [] if it does not respond: other checks report that."""
    try:
        return access.ask(("/metrics",), url)
    except urllib3.exceptions.ResponseError:
        raise
    except urllib3.exceptions.HTTPError:
        return []


def _version(access: Access, server: str = "") -> str:
    try:
        # In one connection: the load balancer may choose another server for the next one.
        ready, reply = access.ask((probe_path(), "/version"), server)
    except urllib3.exceptions.HTTPError:
        return ""
    return str(json.loads(reply)["gitVersion"]).removeprefix("v") if ready == "ok" else ""


def running(cluster: Cluster, access: Access) -> RunningVersions:
    """Return the versions of all parts. Raises the Kubernetes client's errors if the API does not respond."""
    from kubernetes import client

    from clients.nodes import in_the_region, programs
    from clients.paging import models
    from operations.upgrade.nodes import is_begun

    api = access.api()
    listed = list(models(client.CoreV1Api(api).list_node))
    return RunningVersions(
        hosts(access),
        servers(access),
        recorded_version(api),
        proxy(api),
        {node.metadata.name: programs(node) for node in listed},
        in_the_region(cluster, listed),
        frozenset(node.metadata.name for node in listed if is_begun(node)),
    )


def recorded_version(api: client.ApiClient) -> str:
    """Return the version in kubeadm's configuration in the cluster, "" if there is none."""
    from kubernetes import client
    from kubernetes.client.exceptions import ApiException

    try:
        config_map = client.CoreV1Api(api).read_namespaced_config_map(
            CONFIG, _NAMESPACE, _request_timeout=API_TIMEOUT_S
        )
    except ApiException as error:
        if error.status == 404:
            return ""
        raise
    lines = (config_map.data or {}).get(CONFIG_KEY, "").splitlines()
    version_line = next((line for line in lines if line.startswith("kubernetesVersion:")), "")
    return version_line.partition(":")[2].strip().removeprefix("v")


def proxy(api: client.ApiClient) -> str:
    """Return the version of kube-proxy's image, "" if there is no kube-proxy."""
    from kubernetes import client
    from kubernetes.client.exceptions import ApiException

    try:
        daemon_set = client.AppsV1Api(api).read_namespaced_daemon_set(PROXY, _NAMESPACE, _request_timeout=API_TIMEOUT_S)
    except ApiException as error:
        if error.status == 404:
            return ""
        raise
    return str(daemon_set.spec.template.spec.containers[0].image).partition("@")[0].rpartition(":")[2].removeprefix("v")
