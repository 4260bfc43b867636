"""The units of an API-server host, and their order.

No unit has an [Install] section: menagerie-boot starts them, in order, at every boot.
"""

from __future__ import annotations

from cluster.files import HostFile
from cluster.spec import Cluster
from components.control_plane import (
    audit_log,
    controller_manager,
    gangs,
    join_tokens,
    joining,
    konnectivity,
    kube_apiserver,
    kubeadm,
    manifests,
    metrics_keys,
    metrics_relay,
    nodes,
    preflight,
    reports,
    scheduler,
    serving,
)
from components.control_plane.service_unit import Unit, render
from network.addresses import AddressPlan

ORDER = (
    "kubeadm-phases.service",
    "konnectivity-server.service",
    "audit-log.service",
    "kube-apiserver.service",
    "kube-controller-manager.service",
    "kube-scheduler.service",
    "kubelet-csr-approver.service",
    f"{joining.NAME}.service",
    "node-labels.service",
    "node-preflight.service",
    "gangs.service",
    "metrics-keys.service",
    "metrics-relay.service",
    "cluster-bootstrap.service",
    "host-report.service",
    "join-tokens.service",
)
"""The order in which menagerie-boot starts them. join-tokens only runs with workers in the region, node-preflight only if some
workers join tainted, gangs only if the spec has gangs on, and metrics-relay only with hosts for the scraper."""


def files(cluster: Cluster, plan: AddressPlan) -> tuple[HostFile, ...]:
    """Return every unit as a file with mode 0600 (CIS 1.1.1, 1.1.3, 1.1.5)."""
    return tuple(HostFile(f"/etc/systemd/system/{unit.name}", render(unit), 0o600) for unit in units(cluster, plan))


def units(cluster: Cluster, plan: AddressPlan) -> tuple[Unit, ...]:
    """Return the units, in the order of `ORDER`."""
    return (
        kubeadm.unit(),
        konnectivity.unit(cluster),
        audit_log.unit(),
        kube_apiserver.unit(cluster, plan),
        controller_manager.unit(cluster),
        scheduler.unit(cluster),
        serving.unit(),
        joining.unit(cluster),
        nodes.unit(),
        *((preflight.unit(),) if cluster.spec.checked_workers else ()),
        *((gangs.unit(),) if cluster.spec.scheduling.gangs else ()),
        metrics_keys.unit(),
        *((metrics_relay.unit(),) if metrics_relay.is_on(cluster) else ()),
        manifests.unit(),
        reports.unit(),
        *((join_tokens.unit(),) if cluster.spec.cloud_workers else ()),
    )


def accounts(cluster: Cluster, plan: AddressPlan) -> tuple[str, ...]:
    """Return the users that units run as."""
    return tuple(dict.fromkeys(unit.user for unit in units(cluster, plan) if unit.user))
