"""X.509: authorities and the certificates they sign. Keys are ECDSA P-256; all text is PEM."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_DAYS = 3650  # kubeadm also gives its authorities ten years
RENEW_AFTER = 2 / 3  # of a certificate's lifetime, so one or two missed runs do no harm
# Hosts' clocks may be slightly behind the signer's.
BACKDATE = datetime.timedelta(minutes=5)
_USAGES = {"server": ExtendedKeyUsageOID.SERVER_AUTH, "client": ExtendedKeyUsageOID.CLIENT_AUTH}


@dataclass(frozen=True)
class Signed:
    """A certificate and its private key, both PEM."""

    certificate: str
    private_key: str = field(repr=False)


@dataclass(frozen=True)
class Request:
    """The content of a certificate to be issued.

    usages: any of "server" and "client". days: its lifetime.
    """

    common_name: str
    organizations: tuple[str, ...] = ()
    dns_names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    usages: tuple[str, ...] = ("server", "client")
    days: int = 365


def new_key() -> str:
    """Return a new ECDSA P-256 private key, PKCS#8 PEM."""
    return _pem(ec.generate_private_key(ec.SECP256R1()))


def public_key(private_key: str) -> str:
    """Return the public half of a private key, SubjectPublicKeyInfo PEM."""
    return (
        _load_key(private_key)
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode()
    )


def new_authority(common_name: str) -> Signed:
    """Return a new self-signed certificate authority that may sign only leaf certificates."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(common_name, ())
    builder = (
        _builder(name, name, key.public_key(), CA_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(authority=True), critical=True)
    )
    return Signed(_cert_pem(builder.sign(key, hashes.SHA256())), _pem(key))


def issue(authority: Signed, request: Request) -> Signed:
    """Return a new key and a certificate for it, signed by `authority`."""
    issuer = x509.load_pem_x509_certificate(authority.certificate.encode())
    key = ec.generate_private_key(ec.SECP256R1())
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in request.dns_names]
    names += [x509.IPAddress(ipaddress.ip_address(address)) for address in request.addresses]
    builder = (
        _builder(_name(request.common_name, request.organizations), issuer.subject, key.public_key(), request.days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([_USAGES[usage] for usage in request.usages]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key()),  # type: ignore[arg-type]
            critical=False,
        )
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return Signed(_cert_pem(builder.sign(_load_key(authority.private_key), hashes.SHA256())), _pem(key))


def is_due(certificate: str, now: datetime.datetime) -> bool:
    """Whether a certificate has used up `RENEW_AFTER` of its lifetime at `now` (UTC)."""
    parsed = x509.load_pem_x509_certificate(certificate.encode())
    life = parsed.not_valid_after_utc - parsed.not_valid_before_utc
    return now >= parsed.not_valid_before_utc + life * RENEW_AFTER


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATE)
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _name(common_name: str, organizations: Iterable[str]) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, value) for value in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _load_key(pem: str) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem.encode(), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"expected an ECDSA key, got {type(key).__name__}")
    return key


def _pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def _cert_pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
