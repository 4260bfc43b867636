"""kube-apiserver: its unit, its flags, and the keys that it follows while it runs.

It reloads automatically: its serving certificate, the authorities of clients and of the front proxy, its client certificates
for etcd, kubelets and aggregated APIs, and the encryption keys (k8s.io/apiserver, dynamiccertificates and encryptionconfig). It
reads only at its start: etcd's authorities, the keys of service accounts, and in Kubernetes 1.35 the authorities of kubelets
(client-go reloads them from 1.36 on, ClientsAllowCARotation).
"""

from __future__ import annotations

from cluster import releases
from cluster.files import Consumer
from cluster.spec import Cluster
from components.control_plane import gangs, konnectivity, paths, sizing
from components.control_plane.flags import TLS, Flags
from components.control_plane.ports import API_PORT
from components.control_plane.service_unit import Unit, command, standalone
from etcd import apiserver
from etcd.refreshing import lock
from network.addresses import AddressPlan

UNIT = "kube-apiserver.service"
ADVERTISED = "ADVERTISED_ADDRESS"
"""Variable of the unit, set by kubeadm-phases: on AWS the load balancer has a different address in each zone."""

UNREACHABLE_S = 300
"""Kubernetes' default: pods of an unreachable node are evicted after five minutes."""
UNREACHABLE_BEHIND_TUNNEL_S = 24 * 3600
"""For workers at a site, "unreachable" mostly means that the tunnel is cut while their jobs still run. Evicted pods would be
killed when the tunnel is back, so they get a day. If a machine is really dead, delete its Node. A pod that needs a shorter
time sets its own tolerations."""
_SETTLE_S = 30
"""Load balancers re-admit a host after a few probes: AWS after two, 10 s apart."""
_LISTS = ("feature-gates", "runtime-config")
"""Flags that several tables may have."""


def unit(cluster: Cluster, plan: AddressPlan) -> Unit:
    """Return its unit."""
    return Unit(
        name=UNIT,
        description="Kubernetes API server",
        words=command("kube-apiserver", flags(cluster, plan)),
        type="notify",
        groups=(konnectivity.ACCOUNT,),
        # systemd stops units in reverse order: audit-log stops later, so it also ships the last entries.
        after=("kubeadm-phases.service", "konnectivity-server.service", "audit-log.service"),
        settings=(
            f"EnvironmentFile={paths.ADVERTISED}",
            "LogsDirectory=kubernetes/audit",
            "LogsDirectoryMode=0700",
            "TimeoutStartSec=2min",
            # The shutdown delay plus the longest request.
            "TimeoutStopSec=90s",
        ),
        hidden=(f"{paths.PKI}/ca.key", f"{paths.PKI}/front-proxy-ca.key", paths.SERVING_KEY),
    )


def consumers(cluster: Cluster, etcdctl: tuple[str, ...]) -> tuple[Consumer, ...]:
    """Return what it follows. etcdctl: the command for the lock in etcd main, with which hosts restart in turn."""
    several = cluster.spec.control_plane.api_servers > 1
    keys, authority = f"{paths.PKI}/sa.key", f"{paths.PKI}/ca.crt"
    serving = (f"{paths.PKI}/apiserver.crt", f"{paths.PKI}/apiserver.key")
    return (
        Consumer(
            UNIT,
            (paths.ETCD_CA, paths.SERVING_CA, authority, f"{paths.PKI}/sa.pub", keys),
            lock=lock(etcdctl, UNIT),
            ready=standalone("serving"),
            settle_s=_SETTLE_S if several else 0,
        ),
        Consumer(UNIT, (f"{paths.KUBERNETES}/encryption-config.yaml",), loaded=(*standalone("serving"), "encryption")),
        Consumer(
            UNIT,
            (authority, f"{paths.PKI}/front-proxy-ca.crt", *serving),
            loaded=(*standalone("serving"), "authorities"),
        ),
    )


def service_account_issuer(cluster: Cluster) -> str:
    """Return the issuer of service-account tokens. Never change it on a running cluster."""
    return f"https://kubernetes.default.svc.{cluster.spec.network.domain}"


def flags(cluster: Cluster, plan: AddressPlan) -> Flags:
    """Return the flags of kube-apiserver: CIS 1.2, 3.2.1, and the etcds of the cluster."""
    return _joined(
        _serving(cluster, plan),
        _identity(cluster),
        _admission(cluster),
        _audit(),
        _etcd(cluster, plan),
        _towards_nodes(),
        sizing.flags("kube-apiserver", sizing.most_nodes(cluster)),
        gangs.flags(cluster, "kube-apiserver"),
    )


def _joined(*tables: Flags) -> Flags:
    """Merge tables of flags. Lists that occur in several are concatenated. Raises ValueError if another flag occurs twice."""
    merged: Flags = {}
    for flag, value in ((flag, value) for table in tables for flag, value in table.items()):
        if flag in merged and flag not in _LISTS:
            raise ValueError(f"{flag} is {merged[flag]} and {value}")
        merged[flag] = f"{merged[flag]},{value}" if flag in merged else value
    return merged


def _serving(cluster: Cluster, plan: AddressPlan) -> Flags:
    several = cluster.spec.control_plane.api_servers > 1
    return {
        # Workers reach the load balancer and nothing behind it, so the `kubernetes` Service must point to it.
        # All hosts behind one of its addresses share a lease and an endpoint.
        "advertise-address": f"${{{ADVERTISED}}}",
        "secure-port": str(API_PORT),
        "tls-cert-file": f"{paths.PKI}/apiserver.crt",
        "tls-private-key-file": f"{paths.PKI}/apiserver.key",
        **TLS,
        "service-cluster-ip-range": str(cluster.spec.network.services),
        "profiling": "false",
        # CIS 1.2.20: Kubernetes' default, made explicit. With a longer one, slow clients hold flow-control seats.
        "request-timeout": "60s",
        # Longer than any load balancer takes to notice: AWS probes every 10 s and needs two failures.
        "shutdown-delay-duration": "25s",
        "shutdown-send-retry-after": "true",
        # Rebalances long-lived HTTP/2 connections across the hosts after one was replaced.
        **({"goaway-chance": "0.001"} if several else {}),
    }


def _identity(cluster: Cluster) -> Flags:
    issuer = service_account_issuer(cluster)
    return {
        "authentication-config": f"{paths.CONFIG}/authentication.yaml",
        "client-ca-file": f"{paths.PKI}/ca.crt",
        "enable-bootstrap-token-auth": "true",
        "authorization-mode": "Node,RBAC",
        "requestheader-client-ca-file": f"{paths.PKI}/front-proxy-ca.crt",
        "requestheader-allowed-names": "front-proxy-client",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-username-headers": "X-Remote-User",
        "proxy-client-cert-file": f"{paths.PKI}/front-proxy-client.crt",
        "proxy-client-key-file": f"{paths.PKI}/front-proxy-client.key",
        "service-account-issuer": issuer,
        "service-account-key-file": f"{paths.PKI}/sa.pub",
        "service-account-signing-key-file": f"{paths.PKI}/sa.key",
        "service-account-lookup": "true",
        "service-account-extend-token-expiration": "false",
        "api-audiences": f"{issuer},{konnectivity.AUDIENCE}",
    }


def _admission(cluster: Cluster) -> Flags:
    early = releases.EARLY.get(releases.minor(cluster.spec.kubernetes.version), {})
    at_a_site = any(pool.site for pool in cluster.spec.pools.values())
    return {
        # AlwaysPullImages (CIS 1.2.11) is left out: research images are 17 GB, and every start would contact the registry.
        "enable-admission-plugins": "NodeRestriction,EventRateLimit,DenyServiceExternalIPs",
        "admission-control-config-file": f"{paths.CONFIG}/admission.yaml",
        "default-unreachable-toleration-seconds": str(UNREACHABLE_BEHIND_TUNNEL_S if at_a_site else UNREACHABLE_S),
        "allow-privileged": "true",
        **early,
    }


def _audit() -> Flags:
    # All limits are explicit because 1.36 changed the defaults. They bound what waits on the host; the bucket stores the logs
    # (audit_log.py).
    return {
        "audit-policy-file": f"{paths.CONFIG}/audit-policy.yaml",
        "audit-log-path": paths.AUDIT_LOG,
        "audit-log-maxage": "30",
        "audit-log-maxbackup": "20",
        "audit-log-maxsize": "200",
        "audit-log-compress": "true",
    }


def _etcd(cluster: Cluster, plan: AddressPlan) -> Flags:
    named = dict(flag.removeprefix("--").split("=", 1) for flag in apiserver.flags(cluster, plan))
    return named | {
        "etcd-cafile": paths.ETCD_CA,
        "etcd-certfile": paths.ETCD_CERTIFICATE,
        "etcd-keyfile": paths.ETCD_KEY,
        "encryption-provider-config": f"{paths.KUBERNETES}/encryption-config.yaml",
        "encryption-provider-config-automatic-reload": "true",
    }


def _towards_nodes() -> Flags:
    return {
        "egress-selector-config-file": f"{paths.CONFIG}/egress.yaml",
        "kubelet-certificate-authority": paths.SERVING_CA,
        "kubelet-client-certificate": f"{paths.PKI}/apiserver-kubelet-client.crt",
        "kubelet-client-key": f"{paths.PKI}/apiserver-kubelet-client.key",
        # Node names need not resolve anywhere.
        "kubelet-preferred-address-types": "InternalIP,Hostname",
        # No kube-proxy runs on this host, so connect to webhooks and aggregated APIs at their pods' addresses.
        "enable-aggregator-routing": "true",
    }
