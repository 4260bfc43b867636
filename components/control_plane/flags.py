"""Flags of the programs on an API-server host, as tables: flag name without dashes -> value.

CIS numbers are those of the Kubernetes benchmark 1.12; tests/control_plane/test_cis.py has one test each.
They stand on the command line, where kube-bench looks for them. ``${...}`` is expanded by systemd.
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
"""Variable of the unit, which kubeadm-phases sets: the load balancer has an address in each zone on AWS."""

UNREACHABLE_S = 300
"""Kubernetes' own default: pods of an unreachable node are given up after five minutes."""
UNREACHABLE_BEHIND_TUNNEL_S = 24 * 3600
"""Where workers stand at a site, "unreachable" mostly means that the tunnel is cut and their jobs
run on. Evicted pods would be killed when the tunnel comes back, so they get a day. A machine that
really died is told by deleting its Node; a pod that wants less says so in its own tolerations."""

_TLS = {"tls-cipher-suites": ",".join(CIPHER_SUITES), "tls-min-version": "VersionTLS12"}


def service_account_issuer(cluster: Cluster) -> str:
    """Issuer of service-account tokens; never change it on a running cluster."""
    return f"https://kubernetes.default.svc.{cluster.spec.network.domain}"


def api_server(cluster: Cluster, plan: AddressPlan) -> Flags:
    """Flags of kube-apiserver: CIS 1.2, 3.2.1, and the etcds of the cluster."""
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
    """One table: what two say of a list comes together. ValueError for any other flag that two say something of."""
    made: Flags = {}
    for flag, value in ((flag, value) for table in tables for flag, value in table.items()):
        if flag in made and flag not in _LISTS:
            raise ValueError(f"{flag} is {made[flag]} and {value}")
        made[flag] = f"{made[flag]},{value}" if flag in made else value
    return made


def _serving(cluster: Cluster, plan: AddressPlan) -> Flags:
    several = cluster.spec.control_plane.api_servers > 1
    return {
        # Workers reach the load balancer and nothing behind it, so that is what the `kubernetes`
        # Service must lead to. All hosts of one of its addresses share a lease and an endpoint.
        "advertise-address": f"${{{ADVERTISED}}}",
        "secure-port": str(API_PORT),
        "tls-cert-file": f"{paths.PKI}/apiserver.crt",
        "tls-private-key-file": f"{paths.PKI}/apiserver.key",
        **_TLS,
        "service-cluster-ip-range": str(cluster.spec.network.services),
        "profiling": "false",
        # CIS 1.2.20: Kubernetes' default, written down; a longer one holds the flow-control seats of slow clients.
        "request-timeout": "60s",
        # Longer than any load balancer takes to notice: AWS probes every 10 s and wants two failures.
        "shutdown-delay-duration": "25s",
        "shutdown-send-retry-after": "true",
        # Spreads long-lived HTTP/2 connections over the hosts again after one was replaced.
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
        # AlwaysPullImages (CIS 1.2.11) is left out: research images are 17 GB, and every start would ask the registry.
        "enable-admission-plugins": "NodeRestriction,EventRateLimit,DenyServiceExternalIPs",
        "admission-control-config-file": f"{paths.CONFIG}/admission.yaml",
        "default-unreachable-toleration-seconds": str(UNREACHABLE_BEHIND_TUNNEL_S if at_a_site else UNREACHABLE_S),
        "allow-privileged": "true",
        **early,
    }


def _audit() -> Flags:
    # All limits are written out: 1.36 changed their defaults. They bound what waits on the host; the bucket keeps it (audit_log.py).
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
        # Names of nodes need not resolve anywhere.
        "kubelet-preferred-address-types": "InternalIP,Hostname",
        # No kube-proxy runs on this host: webhooks and aggregated APIs are dialled at their pods.
        "enable-aggregator-routing": "true",
    }


def controller_manager(cluster: Cluster) -> Flags:
    """Flags of kube-controller-manager: CIS 1.3."""
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
        # Finished pods of batch jobs stay readable, and no longer crowd main's database than this.
        "terminated-pod-gc-threshold": "5000",
        **sizing.flags("kube-controller-manager", sizing.most_nodes(cluster)),
    }


def _signers() -> Flags:
    """Who signs what. No authority signs for `kubernetes.io/legacy-unknown`, which the API gives to no request any more.

    The flag for all of them together excludes those of each (cmd/kube-controller-manager, csrsigningcontroller options).
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
    """Flags of kube-scheduler: CIS 1.4. config: its configuration, which says the rest.

    That file decides about profiling too; kube-bench looks for the flag.
    """
    return {"config": config, **_elected(kubeconfig), **gangs.flags(cluster, "kube-scheduler")}


def _elected(kubeconfig: str) -> Flags:
    """What the controller manager and the scheduler share: one of each is at work, and serves its own host only."""
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
    """Flags of konnectivity's server. `credentials` is the folder of its certificate, key and kubeconfig."""
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
        # The agent on the wanted node, then any: a node without one is still reached.
        "proxy-strategies": "destHost,default",
        "kubeconfig": f"{credentials}/kubeconfig",
        "authentication-audience": KONNECTIVITY_AUDIENCE,
        "agent-namespace": "kube-system",
        "agent-service-account": "konnectivity-agent",
        # A tunnel through NAT must not look idle: Azure forgets a flow after 4 minutes.
        "keepalive-time": "1m",
        "v": "1",
    }
