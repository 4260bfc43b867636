"""The cluster's keys: one authority each for Kubernetes, kubelets' serving certificates, the front proxy and every etcd.

What each host may read is decided here, by name (see `Pki.for_api_server`, `Pki.for_member`); how
it gets there is the provider's secret store. Each key belongs to a ring (`cluster.key_rings`), whose state is in the
stack's configuration. Outside of this module nobody knows of generations: a value may hold several, the one at work first.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pulumi

from cluster.key_rings import FORMER, RINGS, Ring, RingName, key_name
from cluster.spec import Cluster, RoleName
from etcd.members import Member, members
from network.addresses import ROLES, AddressPlan
from stacks import certificates
from stacks.certificates import Request
from stacks.pki_resources import Authority, Certificate, Secret
from stacks.protection import NAMESPACE, is_protected

Values = dict[str, pulumi.Output[str]]
"""Secret name -> value."""

COMMON_NAMES: Mapping[RingName, str] = {
    "kubernetes-ca": "kubernetes",
    "kubelet-serving-ca": "kubelet-serving",
    "front-proxy-ca": "front-proxy",
    "etcd-main-ca": "etcd-main",
    "etcd-events-ca": "etcd-events",
}
"""Of the first authority of a ring; that of a later generation ends in its number."""

ADMIN_DAYS = 30
"""An operator's certificate can't be revoked, so it is short-lived; every `up` renews it in time."""


@dataclass(frozen=True)
class Authorities:
    """Those of a ring. by_work: the one that signs first. by_age: the oldest first."""

    by_work: tuple[Authority, ...]
    by_age: tuple[Authority, ...]

    @property
    def at_work(self) -> Authority:
        return self.by_work[0]

    @property
    def trusted(self) -> pulumi.Output[str]:
        """Certificates of all, PEM, the oldest first: so the text stays as it is when another one signs, and who reads it
        at its start only needs no restart."""
        return _joined(self.by_age)

    @property
    def signing_first(self) -> pulumi.Output[str]:
        """The same for what takes the first of several for the one that signs, as kubeadm and workers do."""
        return _joined(self.by_work)


def _joined(authorities: Iterable[Authority]) -> pulumi.Output[str]:
    joined: pulumi.Output[str] = pulumi.Output.all(*(each.certificate for each in authorities)).apply("".join)
    return joined


class Pki(pulumi.ComponentResource):
    """Every key and certificate of a cluster that does not come from kubeadm on a host."""

    def __init__(self, cluster: Cluster, plan: AddressPlan) -> None:
        super().__init__("menagerie:index:Pki", f"{cluster.name}-pki")
        # Losing an authority means joining every host anew.
        kept = pulumi.ResourceOptions(parent=self, protect=is_protected() and not cluster.is_lab)
        child = pulumi.ResourceOptions(parent=self)
        self.rings = rings()
        self.kubernetes = self._authority("kubernetes-ca", kept)
        self.kubelet_serving = self._authority("kubelet-serving-ca", kept)
        self.front_proxy = self._authority("front-proxy-ca", kept)
        self.etcd = {role: self._authority(_of_etcd(role), kept) for role in ROLES}
        self.service_account = self._secrets("service-account", "service-account-key", "ecdsa-key", kept)
        self.encryption = self._secrets("encryption", "encryption-key", "hex", kept)
        # Losing one means losing the backups. There also without any: to take one away again, it had to be released.
        self.backup_passwords = {role: Secret(f"backup-password-{role}", "hex", kept) for role in ROLES}
        self.etcd_client = Certificate(
            "etcd-client",
            self.etcd["main"].at_work,
            Request("kube-apiserver-etcd-client", usages=("client",)),
            child,
        )
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

    def _authority(self, ring: RingName, opts: pulumi.ResourceOptions) -> Authorities:
        """The authorities of a ring. Only the one at work is protected, or none could ever go.

        The generation `FORMER` is no authority of its own, but those of `kubernetes-ca` that are in use.
        """
        state = self.rings[ring]
        made = {
            number: Authority(_named(ring, number), _named(COMMON_NAMES[ring], number), _protected(opts, number, state))
            for number in state.generations
            if number != FORMER
        }

        def of(number: int, former: str) -> tuple[Authority, ...]:
            return (made[number],) if number != FORMER else tuple(getattr(self.kubernetes, former))

        return Authorities(
            tuple(each for number in state.generations for each in of(number, "by_work")),
            tuple(each for number in sorted(state.generations) for each in of(number, "by_age")),
        )

    def _secrets(
        self, ring: RingName, name: str, kind: str, opts: pulumi.ResourceOptions
    ) -> tuple[tuple[int, Secret], ...]:
        """Generation and key of a ring, the one at work first.

        Encryption keys of former generations stay in the stack, and in no host's reach: snapshots of etcd hold what they
        encrypted.
        """
        state = self.rings[ring]
        kept = range(1, state.newest + 1) if ring == "encryption" else state.generations
        made = {
            number: Secret(
                _named(name, number), kind, opts if ring == "encryption" else _protected(opts, number, state)
            )
            for number in kept
        }
        return tuple((number, made[number]) for number in state.generations)

    def _member_certificates(
        self, role: RoleName, member: Member, opts: pulumi.ResourceOptions
    ) -> Mapping[str, Certificate]:
        addresses = (str(member.address), "127.0.0.1")
        # Members dial each other and themselves with one certificate, so a peer's needs both usages.
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
        """What an API-server host may read. It signs kubelets' certificates, so it holds that CA's key."""
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
            "encryption-config.yaml": encryption.apply(
                lambda keys: encryption_config({int(number): keys[number] for number in order})
            ),
        } | self._etcd_authorities()

    def for_member(self, name: str) -> Values:
        """What the host of an etcd member may read: its own keys and the authorities' certificates."""
        own: Values = {}
        for kind, certificate in self.members[name].items():
            own[f"{name}-{kind}.crt"] = certificate.certificate
            own[f"{name}-{kind}.key"] = certificate.private_key
        return own | self._etcd_authorities()

    def for_worker(self) -> Values:
        """What workers in the region may read: whom to trust when they join, and who signs."""
        return {
            "kubernetes-ca.crt": self.kubernetes.signing_first,
            "kubelet-serving-ca.crt": self.kubelet_serving.signing_first,
        }

    def authorities(self) -> pulumi.Output[str]:
        """JSON, ring -> certificates of those authorities in use that no host alone proves to be trusted."""
        told = {
            "kubernetes-ca": self.kubernetes.signing_first,
            "kubelet-serving-ca": self.kubelet_serving.signing_first,
            "front-proxy-ca": self.front_proxy.signing_first,
        }
        return pulumi.Output.json_dumps(told)

    def _etcd_authorities(self) -> Values:
        return {f"etcd-{role}-ca.crt": authorities.trusted for role, authorities in self.etcd.items()}


def rings() -> dict[RingName, Ring]:
    """The state of each ring, from the stack's configuration. ValueError where there is none of that kind."""
    config = pulumi.Config(NAMESPACE)
    return {name: Ring.of(name, config.get(ring_key(name))) for name in RINGS}


def ring_key(name: RingName) -> str:
    """Key of a ring's state in the stack's configuration, in `NAMESPACE`."""
    return f"ring-{name}"


def _of_etcd(role: RoleName) -> RingName:
    return "etcd-main-ca" if role == "main" else "etcd-events-ca"


def _named(name: str, generation: int) -> str:
    """Of the first generation, which was there before there were others, the name alone."""
    return name if generation == 1 else f"{name}-{generation}"


def _protected(opts: pulumi.ResourceOptions, generation: int, state: Ring) -> pulumi.ResourceOptions:
    return opts if generation == state.at_work else pulumi.ResourceOptions(parent=opts.parent, protect=False)


def encryption_config(keys: Mapping[int, str]) -> str:
    """EncryptionConfiguration that writes secrets with secretbox and reads older plain ones.

    CIS 1.2.28 accepts aescbc, kms and secretbox as the first provider. keys: generation -> 32 bytes in hex; the first
    encrypts, all decrypt. The API server writes a key's name before what it encrypts (`key_name`).
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
