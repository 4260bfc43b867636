"""Where each scrape job's endpoints listen, and whether a Prometheus in the cluster reaches them today."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cluster.metrics.jobs import JOBS
from cluster.metrics.model import Job
from cluster.spec import Cluster
from components.control_plane import metrics_relay
from components.control_plane.gpu import EXPORTER_PORT
from components.control_plane.ports import KONNECTIVITY_HEALTH_PORT
from components.flows.table import KUBELET_PORT
from etcd import relay
from etcd.members import relay_port
from network.addresses import ROLES

_LOOPBACK = "listens on 127.0.0.1 of its host"
_CLOSED = "firewalls of hosts drop its port"
_NO_RELAY = "no relay runs on control-plane hosts, because no pool can have a host for the scraper"
_SECRET = "with the certificate in Secret menagerie-monitoring/scraper"
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
    """Return job -> its endpoint. A kubelet asks for a token or certificate with the right nodes/metrics.

    `components.monitoring.targets` has the addresses of those on control-plane hosts.
    """
    closed, port = "" if metrics_relay.is_on(cluster) else _NO_RELAY, relay_port(cluster)
    return {
        **{
            job: Endpoint("https", port, f"/metrics/{job}", closed, _SECRET)
            for job in (*metrics_relay.JOBS, *map(relay.job, ROLES))
        },
        "node": Endpoint("http", 9100, closed=_CLOSED, needs=_YOURS),
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
