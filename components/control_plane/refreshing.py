"""How an API-server host switches to newer keys while it runs.

kube-apiserver reloads automatically: its serving certificate, the authorities of clients and of the front proxy, its client
certificates for etcd, kubelets and aggregated APIs, and the encryption keys (k8s.io/apiserver, dynamiccertificates and
encryptionconfig). It reads only at its start: etcd's authorities, the keys of service accounts, and in Kubernetes 1.35 the
authorities of kubelets (client-go reloads them from 1.36 on, ClientsAllowCARotation). The controller manager reads at its start
what it publishes in every namespace as kube-root-ca.crt. The other programs read their kubeconfigs at their start, and systemd
copies credentials then.
"""

from __future__ import annotations

from cluster.files import Consumer, Refresh
from cluster.spec import Cluster
from components.control_plane import audit_log, gangs, joining, paths
from components.control_plane.objects import Object, cluster_role, cluster_role_binding, user
from etcd.members import members
from etcd.refreshing import etcdctl, lock
from network.addresses import AddressPlan

USER = "menagerie:refresh"
KUBECONFIG = "menagerie-refresh"
_API_SERVER = "kube-apiserver.service"
_SETTLE_S = 30
"""Load balancers re-admit a host after a few probes: AWS after two, 10 s apart."""


def refresh(cluster: Cluster, plan: AddressPlan) -> Refresh:
    """Return the refresh of API-server hosts, the same for all. They take turns with a lock in etcd main, which they need anyway."""
    program = etcdctl(members(cluster, "main", plan), paths.ETCD_CA, paths.ETCD_CERTIFICATE, paths.ETCD_KEY)
    several = cluster.spec.control_plane.api_servers > 1
    keys, authority = f"{paths.PKI}/sa.key", f"{paths.PKI}/ca.crt"
    api_server = Consumer(
        _API_SERVER,
        (paths.ETCD_CA, paths.SERVING_CA, authority, f"{paths.PKI}/sa.pub", keys),
        lock=lock(program, _API_SERVER),
        ready=_python("serving"),
        settle_s=_SETTLE_S if several else 0,
    )
    encryption = Consumer(
        _API_SERVER, (f"{paths.KUBERNETES}/encryption-config.yaml",), loaded=(*_python("serving"), "encryption")
    )
    serving = (f"{paths.PKI}/apiserver.crt", f"{paths.PKI}/apiserver.key")
    authorities = Consumer(
        _API_SERVER,
        (authority, f"{paths.PKI}/front-proxy-ca.crt", *serving),
        loaded=(*_python("serving"), "authorities"),
    )
    others = (
        Consumer(
            "kube-controller-manager.service",
            (_conf("controller-manager"), keys, authority, paths.SIGNING_CA, paths.SERVING_SIGNING_CA),
        ),
        Consumer("kube-scheduler.service", (_conf("scheduler"),)),
        Consumer("konnectivity-server.service", (_conf("konnectivity-server"), *serving)),
        Consumer("kubelet-csr-approver.service", (_conf("kubelet-csr-approver"),)),
        Consumer("audit-log.service", (audit_log.PATH,)),
        Consumer(f"{joining.NAME}.service", tuple(joining.credentials(cluster).values())),
        Consumer("host-report.service", (_conf("host-report"),)),
        Consumer("node-labels.service", (_conf("node-labels"),)),
        *((Consumer("node-preflight.service", (_conf("node-preflight"),)),) if cluster.spec.checked_workers else ()),
        *((Consumer(f"{gangs.NAME}.service", (_conf(gangs.NAME),)),) if cluster.spec.scheduling.gangs else ()),
        *((Consumer("join-tokens.service", (_conf("join-tokens"),)),) if cluster.spec.cloud_workers else ()),
    )
    return Refresh((api_server, encryption, authorities, *others), program, "main", renew=_python("renewal"))


def objects() -> tuple[Object, ...]:
    """Return its rights: reading an API server's metrics, which tell the encryption keys in use, and nothing else."""
    rules = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    return cluster_role(USER, rules), cluster_role_binding(USER, USER, user(USER))


def _conf(name: str) -> str:
    return f"{paths.KUBERNETES}/{name}.conf"


def _python(module: str) -> tuple[str, ...]:
    return ("/usr/bin/env", f"PYTHONPATH={paths.LIBRARY}", "/usr/bin/python3", "-sB", "-m", f"menagerie_host.{module}")
