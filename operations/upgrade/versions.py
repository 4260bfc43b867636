"""Which version every part of a cluster runs, as the parts say. Reads only.

Without the Kubernetes client where API servers are asked: `up` asks them too, beside the engine.
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
"""Connections through the load balancer. One that takes backends in turn shows each of a dozen; one that picks at random
hides one of two from as many with a chance of 1 in 32768."""
CONFIG, CONFIG_KEY = "kubeadm-config", "ClusterConfiguration"
PROXY = "kube-proxy"
_NAMESPACE = "kube-system"


@dataclass(frozen=True)
class Running:
    """Versions are without the v, "" of what does not answer.

    hosts: API-server host -> version, {} in a cloud, which does not say which hosts there are. answers: what the load
    balancer led to. said: kubeadm's record of what the cluster runs. proxy: of kube-proxy's image. nodes: node -> what it
    says that it runs; region: those of them in the region. begun: those that an earlier run has out of service.
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
        """Versions of all API servers that answer."""
        return frozenset(each for each in (*self.hosts.values(), *self.answers) if each)

    @property
    def newest(self) -> str:
        """The newest version of any part of Kubernetes, "" where nothing answers."""
        found = [each for each in (*self.servers, *(node.kubelet for node in self.nodes.values()), self.proxy) if each]
        return max(found, key=numbers, default="")


def servers(access: Access) -> frozenset[str]:
    """The versions of the API servers that the load balancer leads to, none where none answers."""
    with ThreadPoolExecutor(ASKED) as threads:
        found = threads.map(lambda _: _version(access), range(ASKED))
    return frozenset(each for each in found if each)


def hosts(access: Access) -> dict[str, str]:
    """API-server host -> its version, "" where it does not answer or isn't ready."""
    listed = access.outputs.api_servers
    with ThreadPoolExecutor(max(1, len(listed))) as threads:
        found = threads.map(lambda host: _version(access, f"https://{host.address}:{API_PORT}"), listed)
        return {host.name: version for host, version in zip(listed, found, strict=True)}


def metrics(access: Access) -> list[str]:
    """What each API server measures, as Prometheus' text: of those with names, else of those that connections lead to."""
    urls = [f"https://{host.address}:{API_PORT}" for host in access.outputs.api_servers] or [""] * ASKED
    with ThreadPoolExecutor(len(urls)) as threads:
        return [text for texts in threads.map(lambda url: _metrics(access, url), urls) for text in texts]


def _metrics(access: Access, url: str) -> list[str]:
    """None of one that does not answer, which is not well and said to be so elsewhere."""
    try:
        return access.ask(("/metrics",), url)
    except urllib3.exceptions.ResponseError:
        raise
    except urllib3.exceptions.HTTPError:
        return []


def _version(access: Access, server: str = "") -> str:
    try:
        # In one connection: the load balancer may lead the next one elsewhere.
        ready, told = access.ask((probe_path(), "/version"), server)
    except urllib3.exceptions.HTTPError:
        return ""
    return str(json.loads(told)["gitVersion"]).removeprefix("v") if ready == "ok" else ""


def running(cluster: Cluster, access: Access) -> Running:
    """Of all parts. Raises what the Kubernetes client raises where the API does not answer."""
    from kubernetes import client

    from clients.nodes import in_the_region, programs
    from operations.upgrade.nodes import is_begun

    api = access.api()
    listed = client.CoreV1Api(api).list_node(_request_timeout=API_TIMEOUT_S).items
    return Running(
        hosts(access),
        servers(access),
        said(api),
        proxy(api),
        {node.metadata.name: programs(node) for node in listed},
        in_the_region(cluster, listed),
        frozenset(node.metadata.name for node in listed if is_begun(node)),
    )


def said(api: client.ApiClient) -> str:
    """The version that kubeadm's configuration in the cluster names, "" where there is none."""
    from kubernetes import client
    from kubernetes.client.exceptions import ApiException

    try:
        found = client.CoreV1Api(api).read_namespaced_config_map(CONFIG, _NAMESPACE, _request_timeout=API_TIMEOUT_S)
    except ApiException as error:
        if error.status == 404:
            return ""
        raise
    lines = (found.data or {}).get(CONFIG_KEY, "").splitlines()
    told = next((line for line in lines if line.startswith("kubernetesVersion:")), "")
    return told.partition(":")[2].strip().removeprefix("v")


def proxy(api: client.ApiClient) -> str:
    """The version of kube-proxy's image, "" where there is no kube-proxy."""
    from kubernetes import client
    from kubernetes.client.exceptions import ApiException

    try:
        found = client.AppsV1Api(api).read_namespaced_daemon_set(PROXY, _NAMESPACE, _request_timeout=API_TIMEOUT_S)
    except ApiException as error:
        if error.status == 404:
            return ""
        raise
    return str(found.spec.template.spec.containers[0].image).partition("@")[0].rpartition(":")[2].removeprefix("v")
