"""metrics-relay on API servers: its unit, its settings, and what it may do in the API: read metrics of components. Pure.

It has a client certificate for the API server, the scheduler and the controller manager on its own host. All three ask an API server
whether its user may GET /metrics.
"""

from __future__ import annotations

from cluster.files import Consumer, HostFile, SecretRef
from cluster.metrics import relay
from cluster.spec import Cluster
from components.control_plane import paths
from components.control_plane.objects import Object, cluster_role, cluster_role_binding, user
from components.control_plane.ports import (
    API_PORT,
    CONTROLLER_MANAGER_PORT,
    KONNECTIVITY_ADMIN_PORT,
    SCHEDULER_PORT,
)
from components.control_plane.service_unit import Unit, kubeconfig
from etcd.members import relay_port

NAME = relay.NAME
UNIT = f"{NAME}.service"
USER = "menagerie:metrics-relay"
SETTINGS = f"{paths.CONFIG}/{NAME}.json"
CERTIFICATE, KEY = f"{NAME}.crt", f"{NAME}.key"
"""Names in the cluster's secret store, too. All API servers share them: a group creates their hosts, whose addresses nobody knows."""
_UPSTREAMS = {
    "kube-apiserver": f"https://127.0.0.1:{API_PORT}/metrics",
    "kube-scheduler": f"https://127.0.0.1:{SCHEDULER_PORT}/metrics",
    "kube-controller-manager": f"https://127.0.0.1:{CONTROLLER_MANAGER_PORT}/metrics",
    "konnectivity-server": f"http://127.0.0.1:{KONNECTIVITY_ADMIN_PORT}/metrics",
}
_UNVERIFIED = ("kube-scheduler", "kube-controller-manager")
"""They make their certificates themselves at their start, because they have no --tls-cert-file."""
_FILES = {
    "kubeconfig": kubeconfig(NAME),
    relay.CA: f"{paths.PKI}/ca.crt",
    relay.CERTIFICATE: f"{paths.PKI}/{CERTIFICATE}",
    relay.KEY: f"{paths.PKI}/{KEY}",
}
JOBS = tuple(_UPSTREAMS)
"""Scrape jobs (`cluster.metrics.jobs`)."""


def is_on(cluster: Cluster) -> bool:
    """Return whether anything in the cluster asks it."""
    return bool(relay.pool(cluster))


def secrets() -> tuple[SecretRef, ...]:
    """Return what only this program uses of the store: its certificate and its key."""
    return (
        SecretRef(CERTIFICATE, _FILES[relay.CERTIFICATE], 0o644),
        SecretRef(KEY, _FILES[relay.KEY], 0o600),
    )


def files(cluster: Cluster) -> tuple[HostFile, ...]:
    """Return its settings, which are no secret, and its program."""
    text = relay.settings("0.0.0.0", relay_port(cluster), _UPSTREAMS, _UNVERIFIED)
    return HostFile(SETTINGS, text), relay.program()


def unit() -> Unit:
    """Return its unit. Limits: pods can connect to it, and API servers must not notice."""
    return Unit(
        name=UNIT,
        description="Passes on the metrics of this host's components to the scraper",
        documentation="https://kubernetes.io/docs/concepts/cluster-administration/system-metrics/",
        words=relay.command(SETTINGS),
        user=NAME,
        credentials=tuple(_FILES.items()),
        settings=("CPUWeight=10", "MemoryMax=128M", "TasksMax=128"),
    )


def consumer() -> Consumer:
    """Return what it follows. systemd copies its keys at its start."""
    return Consumer(UNIT, tuple(_FILES.values()))


def objects() -> tuple[Object, ...]:
    """Return its rights."""
    rules = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    return cluster_role(USER, rules), cluster_role_binding(USER, USER, user(USER))
