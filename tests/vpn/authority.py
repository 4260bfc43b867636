"""A private authority like an operator's: a root, an intermediate, and certificates with the fields that AWS checks."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

NOW = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
_SHORT = {
    "C": NameOID.COUNTRY_NAME,
    "ST": NameOID.STATE_OR_PROVINCE_NAME,
    "L": NameOID.LOCALITY_NAME,
    "O": NameOID.ORGANIZATION_NAME,
    "OU": NameOID.ORGANIZATIONAL_UNIT_NAME,
    "CN": NameOID.COMMON_NAME,
}


@dataclass(frozen=True)
class Signed:
    certificate: x509.Certificate
    key: rsa.RSAPrivateKey

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        plain = serialization.NoEncryption()
        return self.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain).decode()


def signed(subject: str, by: Signed | None, *, ca: bool = False, days: tuple[int, int] = (-1, 90), key=None) -> Signed:
    """Sign a certificate. subject: C first. by: None for a root. days: start and end of its validity, from now."""
    own = key or rsa.generate_private_key(65537, 2048)
    parts = [part.split("=") for part in subject.split(", ")]
    name = x509.Name([x509.NameAttribute(_SHORT[short], value) for short, value in parts])
    signer, issuer = (by.key, by.certificate.subject) if by else (own, name)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(own.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW + datetime.timedelta(days=days[0]))
        .not_valid_after(NOW + datetime.timedelta(days=days[1]))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(own.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    return Signed(builder.sign(signer, hashes.SHA256()), own)


@cache
def chain(name: str) -> tuple[Signed, Signed]:
    """Return (the signing authority, its root)."""
    root = signed(f"O={name}, CN=root", None, ca=True)
    return signed(f"O={name}, CN=sub", root, ca=True), root
