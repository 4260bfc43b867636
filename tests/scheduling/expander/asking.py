"""Requests like those of cluster-autoscaler, and certificates. Messages are encoded here, not by the code under test."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.strict_certificates import strict


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def field(number: int, value: bytes | str | int) -> bytes:
    """Encode a field ("Encoding" of Protocol Buffers): a tag, then a number or a length and bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def quantities(number: int, amounts: Mapping[str, str]) -> bytes:
    return b"".join(field(number, field(1, key) + field(2, field(1, amount))) for key, amount in amounts.items())


def pod(name: str, requests: Mapping[str, str], *, overhead: Mapping[str, str] | None = None) -> bytes:
    """Encode a v1.Pod, including fields that an expander skips: uid, image, nodeSelector, status."""
    meta = field(1, name) + field(3, "team-vision") + field(5, "a-uid") + field(8, field(1, 1_790_000_000))
    container = field(1, "main") + field(2, "an-image") + field(8, quantities(2, requests) + quantities(1, requests))
    spec = field(2, container) + field(7, field(1, "disk") + field(2, "ssd")) + quantities(32, overhead or {})
    return field(1, meta) + field(2, spec) + field(3, field(1, "Pending"))


def node(labels: Mapping[str, str], allocatable: Mapping[str, str]) -> bytes:
    meta = field(1, "template-node") + b"".join(
        field(11, field(1, key) + field(2, value)) for key, value in labels.items()
    )
    return (
        field(1, meta)
        + field(2, field(3, "aws:///x"))
        + field(3, quantities(1, allocatable) + quantities(2, allocatable))
    )


def option(id_: str, count: int, *pods: bytes) -> bytes:
    return field(1, id_) + field(2, count) + field(3, "debug") + b"".join(field(5, each) for each in pods)


def request(options: list[bytes], nodes: Mapping[str, bytes]) -> bytes:
    return b"".join(field(1, each) for each in options) + b"".join(
        field(3, field(1, key) + field(2, value)) for key, value in nodes.items()
    )


class Authority:
    """A CA for tests that writes its certificates to a folder."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = self._sign(self.name, self.key.public_key(), is_ca=True)
        self.file = folder / f"{name}.crt"
        self.file.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str) -> tuple[Path, Path]:
        """Issue a certificate for 127.0.0.1; return its file and that of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        files = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        certificate = self._sign(subject, key.public_key(), is_ca=False)
        files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        pem = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        files[1].write_bytes(key.private_bytes(*pem))
        return files

    def _sign(self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, is_ca: bool) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        hour = datetime.timedelta(hours=1)
        names = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self.name).public_key(key)
        builder = (
            builder.serial_number(x509.random_serial_number()).not_valid_before(now - hour).not_valid_after(now + hour)
        )
        builder = builder.add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        builder = strict(builder, key, self.key.public_key(), is_authority=is_ca)
        return builder.add_extension(x509.SubjectAlternativeName(names), critical=False).sign(self.key, hashes.SHA256())
