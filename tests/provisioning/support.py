"""Fake machines: their addresses are on this machine (127.0.0.0/8), their certificates are generated here."""

from __future__ import annotations

import datetime
import hashlib
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from cluster.pools import HostsFile
from cluster.spec import Cluster, ClusterSpec
from tests.strict_certificates import strict

SPECS = Path(__file__).parents[1] / "specs"
LOGIN = "menagerie:se:cret"
KEYS = [f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{letter * 42}{end}" for letter, end in zip("ABC", "AAA", strict=True)]
"""Host keys of a valid form."""


def cluster(**replaced: str) -> Cluster:
    """tests/specs/valid-provisioning.yaml, with values of sjc1's provisioning replaced (null removes one)."""
    spec = yaml.safe_load((SPECS / "valid-provisioning.yaml").read_text())
    provisioning = spec["sites"]["sjc1"]["provisioning"]
    for key, value in replaced.items():
        provisioning[key] = yaml.safe_load(value)
    hosts = (SPECS / "hosts-lynx.yaml").read_text()
    return _built(spec, hosts)


def local_cluster(port: int, **replaced: str) -> Cluster:
    """Return the same with machines and BMCs at addresses of this machine; BMCs at `port`."""
    spec = yaml.safe_load(_local((SPECS / "valid-provisioning.yaml").read_text()))
    provisioning = spec["sites"]["sjc1"]["provisioning"]
    provisioning["bmc"]["port"] = port
    for key, value in replaced.items():
        provisioning[key] = yaml.safe_load(value)
    return _built(spec, _local((SPECS / "hosts-lynx.yaml").read_text()))


def _built(spec: dict[str, object], hosts: str) -> Cluster:
    return Cluster(
        spec=ClusterSpec.model_validate(spec),
        hosts={"gpu": HostsFile.model_validate(yaml.safe_load(hosts)).hosts},
    )


def _local(text: str) -> str:
    for rack in ("1", "2", "254"):
        text = text.replace(f"10.9.{rack}.", f"127.9.{rack}.")
    return text


@dataclass(frozen=True)
class Certificate:
    """PEM files of a certificate and its key; sha256 of the certificate."""

    path: Path
    key: Path
    sha256: str


def certificate(
    folder: Path, name: str, address: IPv4Address | None = None, ca: Certificate | None = None
) -> Certificate:
    """Create a certificate for an address, or without one an authority's. Self-signed, or signed by `ca`."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    issuer, signer = subject, key
    if ca:
        issuer = x509.load_pem_x509_certificate(ca.path.read_bytes()).subject
        loaded = serialization.load_pem_private_key(ca.key.read_bytes(), None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        signer = loaded
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=address is None, path_length=None), critical=True)
    )
    if address:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.IPAddress(address)]), critical=False)
    builder = strict(builder, key.public_key(), signer.public_key(), is_authority=address is None)
    made = builder.sign(signer, hashes.SHA256())
    files = Certificate(
        folder / f"{name}.pem",
        folder / f"{name}.key",
        hashlib.sha256(made.public_bytes(serialization.Encoding.DER)).hexdigest(),
    )
    files.path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files
