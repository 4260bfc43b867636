"""What RFC 5280 wants of certificates, and Python verifies since 3.13 (`ssl.VERIFY_X509_STRICT`)."""

from __future__ import annotations

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa

PublicKey = ec.EllipticCurvePublicKey | rsa.RSAPublicKey

_SIGNS = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


def strict(
    builder: x509.CertificateBuilder, key: PublicKey, signer: PublicKey, *, is_authority: bool
) -> x509.CertificateBuilder:
    """Add the identifiers of a certificate's key and of its signer's, and an authority's usage of its key."""
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    builder = builder.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
    return builder.add_extension(_SIGNS, critical=True) if is_authority else builder
