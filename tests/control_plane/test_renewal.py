"""Which certificates of an API-server host are renewed, and when."""

from __future__ import annotations

import base64
import datetime
import hashlib
import json

import pytest
from cryptography import x509

from components.control_plane.host import leaf, phases, renewal, serving
from components.control_plane.host.der import Malformed
from stacks import certificates
from stacks.certificates import Request, issue, new_authority

AUTHORITY, NEWER = new_authority("kubernetes"), new_authority("kubernetes-2")
LEAF = issue(AUTHORITY, Request("kube-apiserver", addresses=("10.0.0.1",), days=300))


@pytest.mark.parametrize(
    "pem",
    [AUTHORITY.certificate, LEAF.certificate, LEAF.certificate + AUTHORITY.certificate],
    ids=["authority", "leaf", "both"],
)
def test_a_certificate_is_parsed_like_in_the_library(pem):
    expected, certificate = x509.load_pem_x509_certificate(pem.encode()), leaf.first(pem)
    lives = (expected.not_valid_before_utc.timestamp(), expected.not_valid_after_utc.timestamp())
    assert (certificate.begins, certificate.ends) == lives
    assert (certificate.issuer == certificate.subject) == (expected.issuer == expected.subject)


def test_a_year_after_2049_is_parsed_too():
    far = issue(AUTHORITY, Request("x", days=365 * 40))
    assert (
        leaf.first(far.certificate).ends
        == x509.load_pem_x509_certificate(far.certificate.encode()).not_valid_after_utc.timestamp()
    )


@pytest.mark.parametrize(
    "text",
    ["", "no PEM", LEAF.private_key, LEAF.certificate.replace(LEAF.certificate.splitlines()[3], ""),
     "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"],
    ids=["nothing", "text", "key", "cut", "empty"],
)  # fmt: skip
def test_anything_else_is_not_a_certificate(text):
    with pytest.raises(ValueError):
        leaf.first(text)
    assert issubclass(Malformed, ValueError)


@pytest.mark.parametrize(("share", "due"), [(0.1, False), (0.66, False), (0.67, True), (1.5, True)])
def test_renewal_is_due_after_two_thirds_of_the_lifetime_as_in_the_stack(share, due):
    certificate, signer = leaf.first(LEAF.certificate), leaf.first(AUTHORITY.certificate)
    now = certificate.begins + (certificate.ends - certificate.begins) * share
    assert certificate.is_due(signer, now) == due
    assert certificates.is_due(LEAF.certificate, datetime.datetime.fromtimestamp(now, datetime.UTC)) == due


def test_renewal_is_due_when_another_authority_signs():
    certificate = leaf.first(LEAF.certificate)
    assert certificate.is_due(leaf.first(NEWER.certificate + AUTHORITY.certificate), certificate.begins)
    assert not certificate.is_due(leaf.first(AUTHORITY.certificate + NEWER.certificate), certificate.begins)


def test_only_missing_or_damaged_certificates_are_due(tmp_path, monkeypatch):
    for module in (renewal, phases):
        monkeypatch.setattr(module, "PKI", tmp_path / "pki")
        monkeypatch.setattr(module, "KUBERNETES", tmp_path)
    (tmp_path / "pki").mkdir()
    for name in ("ca", "front-proxy-ca"):
        (tmp_path / "pki" / f"{name}.crt").write_text(AUTHORITY.certificate)
    for name in ("apiserver", "front-proxy-client"):
        (tmp_path / "pki" / f"{name}.crt").write_text(LEAF.certificate)
    (tmp_path / "scheduler.conf").write_text("client-certificate-data: bm8gY2VydGlmaWNhdGU=\n")
    settings = {"users": {"join-tokens": "menagerie:join-tokens"}}
    now = leaf.first(LEAF.certificate).begins + 1
    assert renewal.due(settings, now) == ["apiserver-kubelet-client", "controller-manager", "scheduler", "join-tokens"]


def test_a_kubeconfig_is_renewed_when_another_authority_is_trusted(tmp_path, monkeypatch):
    for module in (renewal, phases):
        monkeypatch.setattr(module, "PKI", tmp_path)
        monkeypatch.setattr(module, "KUBERNETES", tmp_path)
    for name, text in {"ca": AUTHORITY, "front-proxy-ca": AUTHORITY, **dict.fromkeys(phases.LEAVES, LEAF)}.items():
        (tmp_path / f"{name}.crt").write_text(text.certificate)

    def encoded(pem):
        return base64.b64encode(pem.encode()).decode()

    login = f"    client-certificate-data: {encoded(LEAF.certificate)}\n"
    kubeadms = f"    certificate-authority-data: {encoded(AUTHORITY.certificate)}\n    server: https://h:6443\n" + login
    for name in phases.COMPONENTS:
        (tmp_path / f"{name}.conf").write_text(phases.trusting_all(kubeadms))
    now = leaf.first(LEAF.certificate).begins + 1
    assert renewal.due({"users": {}}, now) == []
    (tmp_path / "ca.crt").write_text(AUTHORITY.certificate + NEWER.certificate)
    assert renewal.due({"users": {}}, now) == list(phases.COMPONENTS)
    both = phases.trusting_all(kubeadms)
    assert f"certificate-authority-data: {encoded(AUTHORITY.certificate + NEWER.certificate)}\n" in both
    assert both.replace(encoded(AUTHORITY.certificate + NEWER.certificate), encoded(AUTHORITY.certificate)) == kubeadms


METRICS = (
    'apiserver_encryption_config_controller_automatic_reloads_total{apiserver_id_hash="sha256:1",status="success"} 1\n'
    'apiserver_encryption_config_controller_last_config_info{apiserver_id_hash="sha256:1",hash="sha256:%s"} 1\n'
)


def test_an_api_server_uses_the_encryption_keys_whose_hash_it_reports():
    config = json.dumps({"a": 1}).encode()
    assert serving.wrong_encryption(METRICS % hashlib.sha256(config).hexdigest(), config) == ""
    assert "works with encryption keys of hash sha256:00" in serving.wrong_encryption(METRICS % "00", config)
    assert "of hash unknown" in serving.wrong_encryption("", config)
