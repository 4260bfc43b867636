"""The cluster's keys: one authority each for Kubernetes, the front proxy and every etcd.

What each host may read is decided here, by name (see `Pki.for_api_server`, `Pki.for_member`); how
it gets there is the provider's secret store.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

import pulumi

from cluster.spec import Cluster, RoleName
from etcd.members import Member, members
from network.addresses import ROLES, AddressPlan
from stacks import certificates
from stacks.certificates import Request
from stacks.pki_resources import Authority, Certificate, Secret
from stacks.protection import is_protected

Values = dict[str, pulumi.Output[str]]
"""Secret name -> value."""

ADMIN_DAYS = 30
"""An operator's certificate can't be revoked, so it is short-lived; every `up` renews it in time."""


class Pki(pulumi.ComponentResource):
    """Every key and certificate of a cluster that does not come from kubeadm on a host."""

    def __init__(self, cluster: Cluster, plan: AddressPlan) -> None:
        super().__init__("menagerie:index:Pki", f"{cluster.name}-pki")
        # Losing an authority means joining every host anew.
        kept = pulumi.ResourceOptions(parent=self, protect=is_protected() and not cluster.is_lab)
        child = pulumi.ResourceOptions(parent=self)
        self.kubernetes = Authority("kubernetes-ca", "kubernetes", kept)
        self.front_proxy = Authority("front-proxy-ca", "front-proxy", kept)
        self.etcd = {role: Authority(f"etcd-{role}-ca", f"etcd-{role}", kept) for role in ROLES}
        self.service_account = Secret("service-account-key", "ecdsa-key", kept)
        self.encryption = Secret("encryption-key", "hex", kept)
        self.etcd_client = Certificate(
            "etcd-client", self.etcd["main"], Request("kube-apiserver-etcd-client", usages=("client",)), child
        )
        admin = Request("menagerie-operator", ("kubeadm:cluster-admins",), usages=("client",), days=ADMIN_DAYS)
        self.admin = Certificate("operator", self.kubernetes, admin, child)
        admin_etcd = Request("menagerie-operator", usages=("client",), days=ADMIN_DAYS)
        self.admin_etcd = Certificate("operator-etcd", self.etcd["main"], admin_etcd, child)
        self.members = {
            member.name: self._member_certificates(role, member, child)
            for role in ROLES
            for member in members(cluster, role, plan)
        }
        self.register_outputs({})

    def _member_certificates(
        self, role: RoleName, member: Member, opts: pulumi.ResourceOptions
    ) -> Mapping[str, Certificate]:
        addresses = (str(member.address), "127.0.0.1")
        # Members dial each other and themselves with one certificate, so a peer's needs both usages.
        usages: dict[str, tuple[str, ...]] = {"server": ("server",), "peer": ("server", "client")}
        return {
            kind: Certificate(
                f"{member.name}-{kind}",
                self.etcd[role],
                Request(member.name, dns_names=(member.host, "localhost"), addresses=addresses, usages=of_kind),
                opts,
            )
            for kind, of_kind in usages.items()
        }

    def for_api_server(self) -> Values:
        """What an API-server host may read. It signs kubelets' certificates, so it holds that CA's key."""
        key = self.service_account.value
        return {
            "kubernetes-ca.crt": self.kubernetes.certificate,
            "kubernetes-ca.key": self.kubernetes.private_key,
            "front-proxy-ca.crt": self.front_proxy.certificate,
            "front-proxy-ca.key": self.front_proxy.private_key,
            "service-account.key": key,
            "service-account.pub": key.apply(certificates.public_key),
            "etcd-client.crt": self.etcd_client.certificate,
            "etcd-client.key": self.etcd_client.private_key,
            "encryption-config.yaml": self.encryption.value.apply(encryption_config),
        } | self._etcd_authorities()

    def for_member(self, name: str) -> Values:
        """What the host of an etcd member may read: its own keys and the authorities' certificates."""
        own: Values = {}
        for kind, certificate in self.members[name].items():
            own[f"{name}-{kind}.crt"] = certificate.certificate
            own[f"{name}-{kind}.key"] = certificate.private_key
        return own | self._etcd_authorities()

    def for_worker(self) -> Values:
        """What workers in the region may read: whom to trust when they join."""
        return {"kubernetes-ca.crt": self.kubernetes.certificate}

    def _etcd_authorities(self) -> Values:
        return {f"etcd-{role}-ca.crt": authority.certificate for role, authority in self.etcd.items()}


def encryption_config(key_hex: str) -> str:
    """EncryptionConfiguration that writes secrets with secretbox and reads older plain ones.

    CIS 1.2.28 accepts aescbc, kms and secretbox as the first provider. `key_hex` is 32 bytes in hex.
    """
    key = base64.b64encode(binascii.unhexlify(key_hex)).decode()
    return (
        "apiVersion: apiserver.config.k8s.io/v1\n"
        "kind: EncryptionConfiguration\n"
        "resources:\n"
        "- resources: [secrets]\n"
        "  providers:\n"
        f"  - secretbox: {{keys: [{{name: key-1, secret: {key}}}]}}\n"
        "  - identity: {}\n"
    )
