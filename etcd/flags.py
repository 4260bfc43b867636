"""The command line of an etcd member.

All settings are flags; there is no configuration file, because the CIS benchmark's checks read the process list.

Left out on purpose:
  --auto-compaction-*: kube-apiserver compacts every etcd that it writes to (`etcd.apiserver`). A second
    compactor with another retention would only hide that the first one stopped.
  --auto-tls, --peer-auto-tls: certificates come from the cluster's own CAs (CIS 2.3, 2.6).
"""

from __future__ import annotations

from cluster.spec import Cluster, RoleName
from cluster.tls import CIPHER_SUITES
from etcd.members import Member, data_dir, http_port, member, members, metrics_port, settings
from network.addresses import AddressPlan

SNAPSHOT_COUNT = 10_000
"""Transactions between snapshots of raft's log. This is etcd's default since 3.6, set explicitly because it was 100000 before
and determines how much memory the log takes."""


def pki_dir(role: RoleName) -> str:
    """Return the folder of a member's certificates and keys."""
    return f"/etc/etcd/{role}/pki"


def flags(cluster: Cluster, role: RoleName, member_name: str, plan: AddressPlan) -> list[str]:
    """Return every flag of the member as --name=value, without quoting for systemd or a shell.

    Raises ValueError if the etcd has no such member.
    """
    this = member(cluster, role, member_name, plan)
    spec = settings(cluster, role)
    return [
        f"--name={this.name}",
        f"--data-dir={data_dir(cluster, role)}",
        *_addresses(cluster, role, this, plan),
        *_tls(role),
        f"--quota-backend-bytes={spec.quota}",
        f"--heartbeat-interval={spec.heartbeat_interval}",
        f"--election-timeout={spec.election_timeout}",
        f"--snapshot-count={SNAPSHOT_COUNT}",
        # 3.7 has no --experimental-* form of these.
        "--feature-gates=InitialCorruptCheck=true,CompactHashCheck=true",
        # Kubernetes uses gRPC. The gateway would also need its own client certificate.
        "--enable-grpc-gateway=false",
    ]


def _addresses(cluster: Cluster, role: RoleName, this: Member, plan: AddressPlan) -> list[str]:
    peers = ",".join(f"{other.name}={other.peer_url}" for other in members(cluster, role, plan))
    return [
        f"--listen-client-urls={this.client_url},https://127.0.0.1:{this.client_port}",
        # With HTTP on the same port, gRPC uses Go's HTTP/2 server, where a busy client starves watches
        # under TLS (etcd-io/etcd#15402).
        f"--listen-client-http-urls=https://127.0.0.1:{http_port(cluster, role)}",
        f"--advertise-client-urls={this.client_url}",
        f"--listen-peer-urls={this.peer_url}",
        f"--initial-advertise-peer-urls={this.peer_url}",
        f"--listen-metrics-urls=http://127.0.0.1:{metrics_port(cluster, role)}",
        f"--initial-cluster={peers}",
        f"--initial-cluster-token={cluster.name}-{role}",
        "--initial-cluster-state=new",
    ]


def _tls(role: RoleName) -> list[str]:
    pki = pki_dir(role)
    return [
        "--client-cert-auth=true",
        f"--trusted-ca-file={pki}/client-ca.crt",
        f"--cert-file={pki}/server.crt",
        f"--key-file={pki}/server.key",
        "--peer-client-cert-auth=true",
        f"--peer-trusted-ca-file={pki}/ca.crt",
        f"--peer-cert-file={pki}/peer.crt",
        f"--peer-key-file={pki}/peer.key",
        "--tls-min-version=TLS1.2",
        f"--cipher-suites={','.join(CIPHER_SUITES)}",
    ]
