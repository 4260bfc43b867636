"""Flags of the programs on an API-server host, as tables: flag name without dashes -> value.

CIS numbers are those of the Kubernetes benchmark 1.12; tests/control_plane/test_cis.py has one test for each.
Flags are on the command line because kube-bench looks there. systemd expands ``${...}``.
"""

from __future__ import annotations

from cluster import releases
from cluster.spec import Cluster
from cluster.tls import CIPHER_SUITES
from components.control_plane import gangs, paths, sizing
from components.control_plane.ports import API_PORT, KONNECTIVITY_PORT
from etcd import apiserver
from network.addresses import AddressPlan

Flags = dict[str, str]

KONNECTIVITY_AUDIENCE = "system:konnectivity-server"
KONNECTIVITY_USER = "system:konnectivity-server"

ADVERTISED = "ADVERTISED_ADDRESS"
"""Variable of the unit, set by kubeadm-phases: on AWS the load balancer has a different address in each zone."""

UNREACHABLE_S = 300
"""Kubernetes' default: pods of an unreachable node are evicted after five minutes."""
UNREACHABLE_BEHIND_TUNNEL_S = 24 * 3600
"""For workers at a site, "unreachable" mostly means that the tunnel is cut while their jobs still run. Evicted pods would be
killed when the tunnel is back, so they get a day. If a machine is really dead, delete its Node. A pod that needs a shorter
time sets its own tolerations."""

_TLS = {"tls-cipher-suites": ",".join(CIPHER_SUITES), "tls-min-version": "VersionTLS12"}


def service_account_issuer(cluster: Cluster) -> str:
    """Return the issuer of service-account tokens. Never change it on a running cluster."""
    return f"https://kubernetes.default.svc.{cluster.spec.network.domain}"


def api_server(cluster: Cluster, plan: AddressPlan) -> Flags:
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


_LISTS = ("feature-gates", "runtime-config")


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
        **_TLS,
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
        "api-audiences": f"{issuer},{KONNECTIVITY_AUDIENCE}",
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


def controller_manager(cluster: Cluster) -> Flags:
    """Return the flags of kube-controller-manager: CIS 1.3."""
    network = cluster.spec.network
    kubeconfig = f"{paths.KUBERNETES}/controller-manager.conf"
    return {
        **_elected(kubeconfig),
        "controllers": "*,bootstrapsigner,tokencleaner",
        "use-service-account-credentials": "true",
        "cluster-name": cluster.name,
        "allocate-node-cidrs": "true",
        "cluster-cidr": str(network.pods),
        "node-cidr-mask-size": str(network.node_prefix),
        "service-cluster-ip-range": str(network.services),
        "client-ca-file": f"{paths.PKI}/ca.crt",
        "requestheader-client-ca-file": f"{paths.PKI}/front-proxy-ca.crt",
        "root-ca-file": f"{paths.PKI}/ca.crt",
        "service-account-private-key-file": f"{paths.PKI}/sa.key",
        **_signers(),
        "feature-gates": ",".join(
            ["RotateKubeletServerCertificate=true", *gangs.flags(cluster, "kube-controller-manager").values()]
        ),
        # Finished pods of batch jobs stay readable, but only so many: they take up room in etcd main.
        "terminated-pod-gc-threshold": "5000",
        **sizing.flags("kube-controller-manager", sizing.most_nodes(cluster)),
    }


def _signers() -> Flags:
    """Return the flags that assign an authority to each signer.

    None is for `kubernetes.io/legacy-unknown`, which the API no longer assigns to requests. The flag for all signers excludes
    the flags for single ones (cmd/kube-controller-manager, csrsigningcontroller options).
    """
    of_clients = (paths.SIGNING_CA, f"{paths.PKI}/ca.key")
    signers = {
        "kubelet-client": of_clients,
        "kube-apiserver-client": of_clients,
        "kubelet-serving": (paths.SERVING_SIGNING_CA, paths.SERVING_KEY),
    }
    files = {
        f"cluster-signing-{signer}-{kind}-file": path
        for signer, pair in signers.items()
        for kind, path in zip(("cert", "key"), pair, strict=True)
    }
    return files


def scheduler(cluster: Cluster, config: str, kubeconfig: str) -> Flags:
    """Return the flags of kube-scheduler: CIS 1.4. config: path of its configuration file, which has all other settings.

    The file also turns profiling off; the flag is there because kube-bench looks for it.
    """
    return {"config": config, **_elected(kubeconfig), **gangs.flags(cluster, "kube-scheduler")}


def _elected(kubeconfig: str) -> Flags:
    """Return the flags that the controller manager and the scheduler share: leader election, and serving on loopback only."""
    return {
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "bind-address": "127.0.0.1",
        **_TLS,
        "profiling": "false",
        "leader-elect": "true",
    }


def konnectivity_server(cluster: Cluster, credentials: str) -> Flags:
    """Return the flags of konnectivity's server. credentials: the folder of its certificate, key and kubeconfig."""
    return {
        "mode": "grpc",
        "uds-name": paths.KONNECTIVITY_SOCKET,
        "server-port": "0",
        "agent-port": str(KONNECTIVITY_PORT),
        "admin-bind-address": "127.0.0.1",
        "health-bind-address": "127.0.0.1",
        "cluster-cert": f"{credentials}/apiserver.crt",
        "cluster-key": f"{credentials}/apiserver.key",
        "cipher-suites": ",".join(CIPHER_SUITES),
        "server-count": str(cluster.spec.control_plane.api_servers),
        # First the agent on the target node, then any agent, so that a node without one stays reachable.
        "proxy-strategies": "destHost,default",
        "kubeconfig": f"{credentials}/kubeconfig",
        "authentication-audience": KONNECTIVITY_AUDIENCE,
        "agent-namespace": "kube-system",
        "agent-service-account": "konnectivity-agent",
        # A tunnel through NAT must not look idle: Azure drops a flow after 4 minutes.
        "keepalive-time": "1m",
        "v": "1",
    }
