"""Certificates: what the authorities sign, and when a certificate is reissued."""

from __future__ import annotations

import datetime
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from stacks import certificates
from stacks.certificates import Request, Signed


@pytest.fixture(scope="module")
def authority() -> Signed:
    return certificates.new_authority("etcd-main")


def _openssl_verify(tmp_path: Path, authority: Signed, leaf: Signed, purpose: str) -> int:
    (tmp_path / "ca.pem").write_text(authority.certificate)
    (tmp_path / "leaf.pem").write_text(leaf.certificate)
    command = [
        "openssl",
        "verify",
        "-CAfile",
        str(tmp_path / "ca.pem"),
        "-purpose",
        purpose,
        str(tmp_path / "leaf.pem"),
    ]
    return subprocess.run(command, capture_output=True, check=False).returncode


def test_a_certificate_is_trusted_by_its_authority_for_its_usages_only(tmp_path: Path, authority: Signed) -> None:
    leaf = certificates.issue(authority, Request("kube-apiserver-etcd-client", usages=("client",)))
    assert _openssl_verify(tmp_path, authority, leaf, "sslclient") == 0
    assert _openssl_verify(tmp_path, authority, leaf, "sslserver") != 0


def test_another_authority_does_not_trust_the_certificate(tmp_path: Path, authority: Signed) -> None:
    events = certificates.new_authority("etcd-events")
    leaf = certificates.issue(events, Request("client", usages=("client",)))
    assert _openssl_verify(tmp_path, authority, leaf, "sslclient") != 0


def test_a_certificate_contains_what_was_requested(authority: Signed) -> None:
    request = Request("etcd-main-1", ("a-group",), ("etcd-main-1", "localhost"), ("10.77.0.21", "127.0.0.1"))
    parsed = x509.load_pem_x509_certificate(certificates.issue(authority, request).certificate.encode())
    names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    usages = set(parsed.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    assert names.get_values_for_type(x509.DNSName) == ["etcd-main-1", "localhost"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["10.77.0.21", "127.0.0.1"]
    assert parsed.subject.rfc4514_string() == "CN=etcd-main-1,O=a-group"
    assert usages == {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}


def test_a_leaf_certificate_cannot_sign(authority: Signed) -> None:
    parsed = x509.load_pem_x509_certificate(certificates.issue(authority, Request("leaf")).certificate.encode())
    assert parsed.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False
    assert parsed.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign is False


@pytest.mark.parametrize(("age_days", "due"), [(0, False), (59, False), (61, True), (91, True)])
def test_a_certificate_is_due_after_two_thirds_of_its_lifetime(authority: Signed, age_days: int, due: bool) -> None:
    leaf = certificates.issue(authority, Request("leaf", days=90))
    now = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=age_days)
    assert certificates.is_due(leaf.certificate, now) is due


def test_a_public_key_belongs_to_its_private_key() -> None:
    assert certificates.public_key(certificates.new_key()).startswith("-----BEGIN PUBLIC KEY-----")
    assert certificates.public_key(key := certificates.new_key()) == certificates.public_key(key)
