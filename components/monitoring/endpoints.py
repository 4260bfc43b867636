"""Where each scrape job's endpoints listen, and whether a Prometheus in the cluster reaches them today."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cluster.metrics.jobs import JOBS
from cluster.metrics.model import Job
from cluster.spec import Cluster
from components.control_plane.gpu import EXPORTER_PORT
from components.control_plane.ports import API_PORT, KONNECTIVITY_HEALTH_PORT, NODE_METRICS_PORT
from components.flows.table import KUBELET_PORT
from components.monitoring.identity import SAN
from etcd.members import metrics_port

_LOOPBACK = "listens on 127.0.0.1 of its host"
_CLOSED = "firewalls of hosts drop its port"
_BALANCED = "workers reach API servers through the load balancer, which picks one for each connection"
_YOURS = "you install it"


@dataclass(frozen=True)
class Endpoint:
    """Where a job's endpoints listen. closed: why nothing reaches them, "" if a pod does. needs: what you do for it, or ""."""

    scheme: str
    port: int
    path: str = "/metrics"
    closed: str = ""
    needs: str = ""

    @property
    def where(self) -> str:
        return f"{self.scheme} :{self.port}{self.path}"


def endpoints(cluster: Cluster) -> Mapping[str, Endpoint]:
    """Return job -> its endpoint.

    A kubelet asks for a token or certificate with the right nodes/metrics, a node for the certificate of `identity.SAN`.
    """
    return {
        "kube-apiserver": Endpoint("https", API_PORT, closed=_BALANCED),
        "kube-scheduler": Endpoint("https", 10259, closed=_LOOPBACK),
        "kube-controller-manager": Endpoint("https", 10257, closed=_LOOPBACK),
        "konnectivity-server": Endpoint("http", 8095, closed=_LOOPBACK),
        "etcd-main": Endpoint("http", metrics_port(cluster, "main"), closed=_LOOPBACK),
        "etcd-events": Endpoint("http", metrics_port(cluster, "events"), closed=_LOOPBACK),
        "node": Endpoint("https", NODE_METRICS_PORT, needs=f"a client certificate for {SAN}"),
        "kubelet": Endpoint("https", KUBELET_PORT),
        "kubelet-resources": Endpoint("https", KUBELET_PORT, "/metrics/resource"),
        "cadvisor": Endpoint("https", KUBELET_PORT, "/metrics/cadvisor"),
        "konnectivity-agent": Endpoint("http", KONNECTIVITY_HEALTH_PORT, closed=_LOOPBACK),
        "gpu": Endpoint("http", EXPORTER_PORT, closed=_CLOSED),
        "kube-state-metrics": Endpoint("http", 8080, needs=_YOURS),
        "coredns": Endpoint("http", 9153),
        # `controllers.manifests.PORT`; a test compares them.
        "controllers": Endpoint("http", 9810),
        "autoscaler": Endpoint("http", 9810, needs="you run `autoscaler run --metrics ADDRESS:9810`"),
        "ceph": Endpoint("http", 9283, closed=_CLOSED),
    }


def open_jobs(cluster: Cluster) -> tuple[Job, ...]:
    """Return the jobs whose endpoints a Prometheus in the cluster reaches."""
    places = endpoints(cluster)
    return tuple(job for job in JOBS if not places[job.name].closed)
