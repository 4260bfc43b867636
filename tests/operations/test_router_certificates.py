"""Certificates of edge routers: what is refused before a router gets it, and requests by the real openssl."""

from __future__ import annotations

import datetime
import subprocess
from collections.abc import Sequence
from ipaddress import IPv4Address
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding

from clients.remote.executor import Done, Ssh
from cluster.errors import RefusedError
from cluster.sites import RouterCertificate
from operations import gateways, router_certificates, router_requests
from operations.router_certificates import CertificateError, certificate_chains, load
from tests.vpn.authority import Signed, chain, signed

ARN = "arn:aws:acm:us-east-1:123456789012:certificate/1"
ROUTER = {IPv4Address("198.51.100.1")}
ENDS = ("203.0.113.1", "203.0.113.2")
NAMES = ("CN=end-0", "CN=end-1")


def cluster_with(build, **certificate):
    settings = {"arn": ARN, "ca": "vpn/ca.pem", "file": "vpn/e.pem", **certificate}
    router = {"address": "198.51.100.1", "host": "10.8.1.1", "certificate": settings}
    vpn = {"asn": 65010, "inside": "169.254.6.0/29", "routers": {"e": router}}
    sites = {"onprem": None, "s": {"racks": {"r1": "10.8.1.0/24"}, "vpn": vpn}}
    return build({"name": "one", "control_plane": {"cloud": "aws"}, "sites": sites}, {})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(router_certificates, "ROOT", tmp_path)
    made = tmp_path / "inventories" / "one" / "vpn"
    made.mkdir(parents=True)
    return made


def lay(folder: Path, own: str, ca: str) -> None:
    (folder / "e.pem").write_text(own)
    (folder / "ca.pem").write_text(ca)


def settings() -> RouterCertificate:
    return RouterCertificate(arn=ARN, ca="vpn/ca.pem", file="vpn/e.pem")


@pytest.fixture(scope="module")
def pki() -> Pki:
    return Pki(*chain("example"))


class Pki(NamedTuple):
    sub: Signed
    root: Signed

    @property
    def chain(self) -> str:
        return self.sub.pem + self.root.pem

    def own(self, *days: int) -> Signed:
        return signed("CN=e", self.sub, days=days or (-1, 80))


def test_a_chain_is_read_up_to_its_root_and_expires_with_its_first_certificate(folder, pki) -> None:
    own = signed("CN=s-e", pki.sub, days=(-1, 40))
    lay(folder, own.pem, pki.chain)
    certificates = load(settings(), folder.parent)
    assert certificates.authorities == (pki.sub.pem, pki.root.pem)
    assert certificates.subject == own.certificate.subject.public_bytes()
    assert certificates.expires == own.certificate.not_valid_after_utc
    lay(folder, signed("CN=s-e", pki.sub, days=(-1, 400)).pem, pki.chain)
    assert load(settings(), folder.parent).expires == pki.sub.certificate.not_valid_after_utc


def bare(subject: str, pki: Pki) -> str:
    """Return a certificate without extensions."""
    made = signed(subject, pki.sub)
    builder = x509.CertificateBuilder().subject_name(made.certificate.subject).issuer_name(pki.sub.certificate.subject)
    builder = builder.public_key(made.key.public_key()).serial_number(1)
    builder = builder.not_valid_before(made.certificate.not_valid_before_utc)
    builder = builder.not_valid_after(made.certificate.not_valid_after_utc)
    return builder.sign(pki.sub.key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


WRONG = {
    "no file": (lambda _: None, None, "can't be read .*vpn request"),
    "text": (lambda _: "text", None, "contains no PEM certificate"),
    "a key": (lambda pki: pki.own().key_pem, None, "contains a private key, which belongs only on the router"),
    "a chain": (lambda pki: pki.own().pem + pki.sub.pem, None, "has 2 certificates; put the authorities into the file in ca"),
    "expired": (lambda pki: pki.own(-9, -1).pem, None, r"CN=e expired on \d{4}-\d\d-\d\d; renew it"),
    "of tomorrow": (lambda pki: pki.own(1, 9).pem, None, "CN=e is valid from .* UTC on"),
    "of another authority": (
        lambda _: signed("CN=e", chain("other")[0]).pem, None, "CN=e isn't signed by the next: CN=sub,O=example"
    ),
    "no root": (lambda pki: pki.own().pem, lambda pki: pki.sub.pem, "CN=sub,O=example is the last in ca and not a root"),
    "the root first": (
        lambda pki: pki.own().pem, lambda pki: pki.root.pem + pki.sub.pem, "CN=e isn't signed by the next: CN=root"
    ),
    "bare": (lambda pki: bare("CN=e", pki), None, "CN=e lacks the extension SubjectKeyIdentifier, which AWS requires"),
}  # fmt: skip


@pytest.mark.parametrize(("own", "ca", "why"), WRONG.values(), ids=WRONG)
def test_certificates_that_a_gateway_would_not_accept_are_refused(folder, pki, own, ca, why) -> None:
    text = own(pki)
    lay(folder, text or "", ca(pki) if ca else pki.chain)
    if text is None:
        (folder / "e.pem").unlink()
    with pytest.raises(CertificateError, match=why):
        load(settings(), folder.parent)


def test_a_router_s_certificate_can_not_sign_others(folder, pki) -> None:
    middle = signed("CN=middle", pki.sub)
    lay(folder, signed("CN=e", middle).pem, middle.pem + pki.chain)
    with pytest.raises(CertificateError, match="CN=middle is not an authority"):
        load(settings(), folder.parent)


def test_a_certificate_that_expires_within_a_month_is_reported(folder, pki, build) -> None:
    heard: list[str] = []
    lay(folder, signed("CN=e", pki.sub, days=(-1, 20)).pem, pki.chain)
    assert set(certificate_chains(cluster_with(build), ROUTER, heard.append)) == {"s/e"}
    assert heard == ["s/e: its certificate expires in 19 days; renew it: ./menagerie vpn request one"]
    heard.clear()
    lay(folder, signed("CN=e", pki.sub, days=(-1, 60)).pem, pki.chain)
    certificate_chains(cluster_with(build), ROUTER, heard.append)
    assert heard == []


def test_files_of_routers_managed_by_others_are_not_needed(folder, build) -> None:
    assert certificate_chains(cluster_with(build), (), lambda _: None) == {}


def test_show_has_a_certificate_s_expiry_or_why_it_can_not_be_used(folder, pki, build) -> None:
    lay(folder, signed("CN=e", pki.sub).pem, pki.chain)
    one = cluster_with(build)
    (first, second) = gateways.tunnel_settings(one, {"s/e": ENDS}, {"s/e": NAMES})
    assert (first["key"], first["certificate"]["wrong"]) == (None, None)
    assert datetime.datetime.fromisoformat(first["certificate"]["expires"]) > datetime.datetime.now(datetime.UTC)
    assert [each["certificate"]["gateway_subject"] for each in (first, second)] == list(NAMES)
    (folder / "e.pem").unlink()
    (first, _) = gateways.tunnel_settings(one, {}, {})
    assert first["certificate"]["gateway_subject"] is None
    assert "can't be read" in first["certificate"]["wrong"]


def test_names_in_the_spec_override_those_of_the_cloud(folder, pki, build, monkeypatch) -> None:
    lay(folder, signed("CN=e", pki.sub).pem, pki.chain)
    monkeypatch.setattr(gateways, "_others", lambda _: [])
    monkeypatch.setattr(gateways, "gateway_addresses", lambda *_: ({"s/e": ENDS}, {}))
    with pytest.raises(RefusedError) as refused:
        gateways.plan(cluster_with(build), (), lambda _: None)
    assert refused.value.code == "unknown-gateway"
    work = gateways.plan(cluster_with(build, names=["CN=a", "CN=b"]), (), lambda _: None)
    variables = work.inventory.data["all"]["hosts"]["s-e"]
    assert 'id = "CN=b"\n      cacerts = menagerie-one-0.pem' in variables["vpn_gateway_connections"]
    assert variables["vpn_gateway_keys"] == "secrets {\n}\n"
    assert set(variables["vpn_gateway_certificates"]) == {
        "/etc/swanctl/x509/menagerie-one.pem",
        "/etc/swanctl/x509ca/menagerie-one-0.pem",
        "/etc/swanctl/x509ca/menagerie-one-1.pem",
    }
    assert "make_before_break = yes" in variables["vpn_gateway_daemon"]


class Here:
    """Runs a router's programs on this machine, below a folder."""

    def __init__(self, below: Path) -> None:
        self._below, self.asked = below, []

    def start(self, host: str, words: Sequence[str]):
        self.asked.append(host)
        command = [word.replace("/etc/swanctl", str(self._below)) for word in words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)

        class _Ended:
            def wait(self, timeout_s: float) -> Done:
                return Done(done.returncode, done.stdout + done.stderr)

            def stop(self) -> None: ...

        return _Ended()


def test_a_router_generates_its_key_once_and_reuses_it(folder, build, tmp_path) -> None:
    here = Here(tmp_path / "etc")
    (dry,) = router_requests.request(cluster_with(build), here, (), dry_run=True)
    assert (dry.file, dry.why, list(tmp_path.glob("etc/**/*"))) == (folder / "e.pem.csr", "a new key", [])
    (first,) = router_requests.request(cluster_with(build), here, ())
    assert (first.router, first.file, here.asked) == ("s/e", folder / "e.pem.csr", ["s-e", "s-e"])
    key = tmp_path / "etc" / "private" / "menagerie-one.pem"
    assert (key.stat().st_mode & 0o777, key.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    before, request = key.read_text(), x509.load_pem_x509_csr(first.file.read_bytes())
    assert request.is_signature_valid
    assert request.subject.rfc4514_string() == "CN=s-e"
    assert request.public_key().key_size == router_requests.KEY_BITS
    (again,) = router_requests.request(cluster_with(build), here, ("s/e",))
    assert x509.load_pem_x509_csr(again.file.read_bytes()).public_key() == request.public_key()
    assert key.read_text() == before
    (dry,) = router_requests.request(cluster_with(build), here, (), dry_run=True)
    assert dry.why == "its existing key"
    assert "PRIVATE KEY" not in again.file.read_text()


def test_if_a_router_fails_the_reason_is_shown_and_no_file_is_written(folder, build, tmp_path) -> None:
    (tmp_path / "etc" / "private").mkdir(parents=True)
    (tmp_path / "etc" / "private" / "menagerie-one.pem").write_text("no key")
    (outcome,) = router_requests.request(cluster_with(build), Here(tmp_path / "etc"), ())
    assert outcome.file is None
    assert outcome.why
    assert list(folder.iterdir()) == []


def test_an_unknown_router_is_not_asked(folder, build, tmp_path) -> None:
    with pytest.raises(RefusedError, match="none with these names"):
        list(router_requests.request(cluster_with(build), Here(tmp_path), ("s/other",)))


def test_a_router_is_reached_as_its_site_s_machines_are(build) -> None:
    with Ssh(cluster_with(build)) as ssh:
        assert ssh.command("s-e", ["true"])[-5:] == ("-l", "root", "10.8.1.1", "--", "true")
