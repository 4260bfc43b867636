"""Reads the version of every part of a cluster, as the parts report it. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.access import API_TIMEOUT_S, Access
from clients.nodes import in_the_region, programs
from clients.paging import models
from cluster.releases import NodePrograms, numbers
from cluster.spec import Cluster
from operations.upgrade import versions
from operations.upgrade.nodes import is_begun

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


def running(cluster: Cluster, access: Access) -> RunningVersions:
    """Return the versions of all parts. Raises the Kubernetes client's errors if the API does not respond."""
    api = access.api()
    listed = list(models(client.CoreV1Api(api).list_node))
    return RunningVersions(
        versions.hosts(access),
        versions.servers(access),
        recorded_version(api),
        proxy(api),
        {node.metadata.name: programs(node) for node in listed},
        in_the_region(cluster, listed),
        frozenset(node.metadata.name for node in listed if is_begun(node)),
    )


def recorded_version(api: client.ApiClient) -> str:
    """Return the version in kubeadm's configuration in the cluster, "" if there is none."""
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
    try:
        daemon_set = client.AppsV1Api(api).read_namespaced_daemon_set(PROXY, _NAMESPACE, _request_timeout=API_TIMEOUT_S)
    except ApiException as error:
        if error.status == 404:
            return ""
        raise
    return str(daemon_set.spec.template.spec.containers[0].image).partition("@")[0].rpartition(":")[2].removeprefix("v")
