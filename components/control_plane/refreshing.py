"""How an API-server host switches to newer keys while it runs.

Each program's file says what it follows (`kube_apiserver.consumers`, ...): kube-apiserver reloads most keys itself. The others
read their kubeconfigs at their start, and systemd copies credentials then.
"""

from __future__ import annotations

from cluster.files import Refresh
from cluster.spec import Cluster
from components.control_plane import (
    audit_log,
    controller_manager,
    gangs,
    join_tokens,
    joining,
    konnectivity,
    kube_apiserver,
    metrics_keys,
    metrics_relay,
    nodes,
    paths,
    preflight,
    reports,
    scheduler,
    serving,
)
from components.control_plane.objects import Object, cluster_role, cluster_role_binding, user
from components.control_plane.service_unit import consumer, standalone
from etcd.members import members
from etcd.refreshing import etcdctl
from network.addresses import AddressPlan

USER = "menagerie:refresh"
KUBECONFIG = "menagerie-refresh"


def refresh(cluster: Cluster, plan: AddressPlan) -> Refresh:
    """Return the refresh of API-server hosts, the same for all. They take turns with a lock in etcd main, which they need anyway."""
    program = etcdctl(members(cluster, "main", plan), paths.ETCD_CA, paths.ETCD_CERTIFICATE, paths.ETCD_KEY)
    consumers = (
        *kube_apiserver.consumers(cluster, program),
        controller_manager.consumer(),
        scheduler.consumer(),
        konnectivity.consumer(),
        consumer(serving.NAME),
        audit_log.consumer(),
        joining.consumer(cluster),
        consumer(reports.NAME),
        consumer(nodes.NAME),
        metrics_keys.consumer(),
        *((metrics_relay.consumer(),) if metrics_relay.is_on(cluster) else ()),
        *((consumer(preflight.NAME),) if cluster.spec.checked_workers else ()),
        *((consumer(gangs.NAME),) if cluster.spec.scheduling.gangs else ()),
        *((consumer(join_tokens.NAME),) if cluster.spec.cloud_workers else ()),
    )
    return Refresh(consumers, program, "main", renew=standalone("renewal"))


def objects() -> tuple[Object, ...]:
    """Return its rights: reading an API server's metrics, which tell the encryption keys in use, and nothing else."""
    rules = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    return cluster_role(USER, rules), cluster_role_binding(USER, USER, user(USER))
