"""The cluster's keys: one authority each for Kubernetes, kubelets' serving certificates, the front proxy and every etcd.

This module decides by name what each host may read (see `Pki.for_api_server`, `Pki.for_member`, …); the provider's secret
store delivers it. Each key belongs to a key ring (`cluster.key_rings`), whose state is in the stack's configuration.
Generations are hidden from other modules: a value may hold several, the active one first.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pulumi

from cluster.key_rings import COMMON_NAMES, FORMER, RINGS, Ring, RingName, key_name, ring_key
from cluster.metrics import relay
from cluster.spec import Cluster, RoleName
from components.control_plane import metrics, metrics_keys, metrics_relay, scraper
from components.control_plane.host import scraping
from etcd import relay as etcd_relay
from etcd.members import Member, members
from network.addresses import ROLES, AddressPlan
from stacks import certificates
from stacks.certificates import Request
from stacks.pki_resources import Authority, Certificate, Secret
from stacks.protection import NAMESPACE, is_protected

Values = dict[str, pulumi.Output[str]]
"""Secret name -> value."""

ADMIN_DAYS = 30
"""An operator's certificate can't be revoked, so it is short-lived; every `up` renews it when due."""


@dataclass(frozen=True)
class Authorities:
    """The authorities of a ring. by_work: the signing one first. by_age: the oldest first."""

    by_work: tuple[Authority, ...]
    by_age: tuple[Authority, ...]

    @property
    def at_work(self) -> Authority:
        return self.by_work[0]

    @property
    def trusted(self) -> pulumi.Output[str]:
        """Return the certificates of all, PEM, the oldest first. The order stays the same when another authority starts to
        sign, so programs that read the file only at start need no restart."""
        return _joined(self.by_age)

    @property
    def signing_first(self) -> pulumi.Output[str]:
        """Return the same with the signing one first, for readers that take the first as the signer, such as kubeadm and workers."""
        return _joined(self.by_work)


def _joined(authorities: Iterable[Authority]) -> pulumi.Output[str]:
    joined: pulumi.Output[str] = pulumi.Output.all(*(authority.certificate for authority in authorities)).apply("".join)
    return joined


class Pki(pulumi.ComponentResource):
    """Every key and certificate of a cluster that kubeadm does not create on a host."""

    def __init__(self, cluster: Cluster, plan: AddressPlan) -> None:
        super().__init__("menagerie:index:Pki", f"{cluster.name}-pki")
        # Losing an authority means joining every host again.
        kept = pulumi.ResourceOptions(parent=self, protect=is_protected() and not cluster.is_lab)
        child = pulumi.ResourceOptions(parent=self)
        self.rings = rings()
        self.kubernetes = self._authority("kubernetes-ca", kept)
        self.kubelet_serving = self._authority("kubelet-serving-ca", kept)
        self.front_proxy = self._authority("front-proxy-ca", kept)
        self.etcd = {role: self._authority(_of_etcd(role), kept) for role in ROLES}
        self.service_account = self._secrets("service-account", "service-account-key", "ecdsa-key", kept)
        self.encryption = self._secrets("encryption", "encryption-key", "hex", kept)
        # Losing one means losing the backups. Created without backups too: removing one would require releasing the stack.
        self.backup_passwords = {role: Secret(f"backup-password-{role}", "hex", kept) for role in ROLES}
        self.etcd_client = Certificate(
            "etcd-client",
            self.etcd["main"].at_work,
            Request("kube-apiserver-etcd-client", usages=("client",)),
            child,
        )
        self.metrics_server = Certificate(
            "metrics-server",
            self.kubernetes.at_work,
            Request("metrics-server", dns_names=(metrics.HOST,), usages=("server",)),
            child,
        )
        client = Request(scraper.USER, dns_names=(relay.SCRAPER,), usages=("client",))
        self.scraper = Certificate("scraper", self.kubernetes.at_work, client, child)
        self.relay_of_api_servers = self._relay(relay.NAME, child, scraper.API_SERVERS)
        self.relays = {
            host.name: self._relay(f"{host.name}-{relay.NAME}", child, host.name, str(host.address))
            for host in dict.fromkeys(host for role in ROLES for host in plan.etcd[role])
        }
        admin = Request("menagerie-operator", ("kubeadm:cluster-admins",), usages=("client",), days=ADMIN_DAYS)
        self.admin = Certificate("operator", self.kubernetes.at_work, admin, child)
        admin_etcd = Request("menagerie-operator", usages=("client",), days=ADMIN_DAYS)
        self.admin_etcd = Certificate("operator-etcd", self.etcd["main"].at_work, admin_etcd, child)
        self.members = {
            member.name: self._member_certificates(role, member, child)
            for role in ROLES
            for member in members(cluster, role, plan)
        }
        self.register_outputs({})

    def _relay(self, name: str, opts: pulumi.ResourceOptions, dns_name: str, *addresses: str) -> Certificate:
        """Return the certificate of metrics-relay on one host, or on all API servers. Only the scraper verifies it."""
        request = Request(relay.NAME, dns_names=(dns_name,), addresses=addresses, usages=("server",))
        return Certificate(name, self.kubernetes.at_work, request, opts)

    def _authority(self, ring: RingName, opts: pulumi.ResourceOptions) -> Authorities:
        """Return the authorities of a ring. Protects only the active one; otherwise old ones could never be removed.

        The generation `FORMER` is not an authority itself; it stands for the authorities of `kubernetes-ca` in use.
        """
        state = self.rings[ring]
        authorities = {
            number: Authority(_named(ring, number), _named(COMMON_NAMES[ring], number), _protected(opts, number, state))
            for number in state.generations
            if number != FORMER
        }

        def of(number: int, former: str) -> tuple[Authority, ...]:
            return (authorities[number],) if number != FORMER else tuple(getattr(self.kubernetes, former))

        return Authorities(
            tuple(authority for number in state.generations for authority in of(number, "by_work")),
            tuple(authority for number in sorted(state.generations) for authority in of(number, "by_age")),
        )

    def _secrets(
        self, ring: RingName, name: str, kind: str, opts: pulumi.ResourceOptions
    ) -> tuple[tuple[int, Secret], ...]:
        """Return generation and key of each generation of a ring, the active one first.

        Former encryption keys stay in the stack but are not given to hosts: etcd snapshots hold data encrypted with them.
        """
        state = self.rings[ring]
        kept = range(1, state.newest + 1) if ring == "encryption" else state.generations
        generated = {
            number: Secret(
                _named(name, number), kind, opts if ring == "encryption" else _protected(opts, number, state)
            )
            for number in kept
        }
        return tuple((number, generated[number]) for number in state.generations)

    def _member_certificates(
        self, role: RoleName, member: Member, opts: pulumi.ResourceOptions
    ) -> Mapping[str, Certificate]:
        addresses = (str(member.address), "127.0.0.1")
        # Members use one certificate to dial each other and themselves, so a peer certificate needs both usages.
        usages: dict[str, tuple[str, ...]] = {"server": ("server",), "peer": ("server", "client")}
        return {
            kind: Certificate(
                f"{member.name}-{kind}",
                self.etcd[role].at_work,
                Request(member.name, dns_names=(member.host, "localhost"), addresses=addresses, usages=of_kind),
                opts,
            )
            for kind, of_kind in usages.items()
        }

    def for_api_server(self) -> Values:
        """Return what an API-server host may read. It signs kubelets' certificates, so it holds that CA's key."""
        service_account = [secret.value for _, secret in self.service_account]
        encryption = pulumi.Output.all(**{str(number): secret.value for number, secret in self.encryption})
        order = [str(number) for number, _ in self.encryption]
        return {
            "kubernetes-ca.crt": self.kubernetes.signing_first,
            "kubernetes-ca-signing.crt": self.kubernetes.at_work.certificate,
            "kubernetes-ca.key": self.kubernetes.at_work.private_key,
            "kubelet-serving-ca.crt": self.kubelet_serving.trusted,
            "kubelet-serving-ca-signing.crt": self.kubelet_serving.at_work.certificate,
            "kubelet-serving-ca.key": self.kubelet_serving.at_work.private_key,
            "front-proxy-ca.crt": self.front_proxy.signing_first,
            "front-proxy-ca.key": self.front_proxy.at_work.private_key,
            "service-account.key": service_account[0],
            "service-account.pub": pulumi.Output.all(*service_account).apply(
                lambda keys: "".join(map(certificates.public_key, keys))
            ),
            "etcd-client.crt": self.etcd_client.certificate,
            "etcd-client.key": self.etcd_client.private_key,
            metrics_keys.CERTIFICATE: self.metrics_server.certificate,
            metrics_keys.KEY: self.metrics_server.private_key,
            scraping.CERTIFICATE: self.scraper.certificate,
            scraping.KEY: self.scraper.private_key,
            metrics_relay.CERTIFICATE: self.relay_of_api_servers.certificate,
            metrics_relay.KEY: self.relay_of_api_servers.private_key,
            "encryption-config.yaml": encryption.apply(
                lambda keys: encryption_config({int(number): keys[number] for number in order})
            ),
        } | self._etcd_authorities()

    def for_member(self, name: str) -> Values:
        """Return what the host of an etcd member may read: its own keys and the authorities' certificates."""
        own: Values = {}
        for kind, certificate in self.members[name].items():
            own[f"{name}-{kind}.crt"] = certificate.certificate
            own[f"{name}-{kind}.key"] = certificate.private_key
        return own | self._etcd_authorities()

    def for_etcd_host(self, host: str) -> Values:
        """Return what the host of etcd members may read for its relay of metrics: its key, and the authority of the scraper."""
        certificate, key = etcd_relay.secret_names(host)
        own = self.relays[host]
        return {
            certificate: own.certificate,
            key: own.private_key,
            "kubernetes-ca.crt": self.kubernetes.signing_first,
        }

    def for_worker(self) -> Values:
        """Return what workers in the region may read: the CAs to trust when joining, and the signing CA."""
        return {
            "kubernetes-ca.crt": self.kubernetes.signing_first,
            "kubelet-serving-ca.crt": self.kubelet_serving.signing_first,
        }

    def authorities(self) -> pulumi.Output[str]:
        """Return JSON, ring -> certificates of the authorities in use whose trust can't be proved by one host alone."""
        certificates_ = {
            "kubernetes-ca": self.kubernetes.signing_first,
            "kubelet-serving-ca": self.kubelet_serving.signing_first,
            "front-proxy-ca": self.front_proxy.signing_first,
        }
        return pulumi.Output.json_dumps(certificates_)

    def _etcd_authorities(self) -> Values:
        return {f"etcd-{role}-ca.crt": authorities.trusted for role, authorities in self.etcd.items()}


def rings() -> dict[RingName, Ring]:
    """Return the state of each ring from the stack's configuration. Raises ValueError if a state is malformed."""
    config = pulumi.Config(NAMESPACE)
    return {name: Ring.of(name, config.get(ring_key(name))) for name in RINGS}


def _of_etcd(role: RoleName) -> RingName:
    return "etcd-main-ca" if role == "main" else "etcd-events-ca"


def _named(name: str, generation: int) -> str:
    """Return the name of a generation; the first one, which predates generations, has no suffix."""
    return name if generation == 1 else f"{name}-{generation}"


def _protected(opts: pulumi.ResourceOptions, generation: int, state: Ring) -> pulumi.ResourceOptions:
    return opts if generation == state.at_work else pulumi.ResourceOptions(parent=opts.parent, protect=False)


def encryption_config(keys: Mapping[int, str]) -> str:
    """Return an EncryptionConfiguration that writes secrets with secretbox and reads older plain ones.

    CIS 1.2.28 accepts aescbc, kms and secretbox as the first provider. keys: generation -> 32 bytes in hex; the first
    encrypts, all decrypt. The API server stores a key's name before the data it encrypts (`key_name`).
    """
    listed = ", ".join(
        f"{{name: {key_name(number)}, secret: {base64.b64encode(binascii.unhexlify(key)).decode()}}}"
        for number, key in keys.items()
    )
    return (
        "apiVersion: apiserver.config.k8s.io/v1\n"
        "kind: EncryptionConfiguration\n"
        "resources:\n"
        "- resources: [secrets]\n"
        "  providers:\n"
        f"  - secretbox: {{keys: [{listed}]}}\n"
        "  - identity: {}\n"
    )
