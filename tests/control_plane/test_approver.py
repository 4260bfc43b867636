"""kubelet-csr-approver, on real requests."""

from __future__ import annotations

import base64
import ipaddress

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from hypothesis import example, given
from hypothesis import strategies as st

from control_plane.host import csr
from control_plane.host.api import ApiError
from control_plane.host.approver import Approver, refusal

RANGES = [ipaddress.IPv4Network("10.78.1.0/24"), ipaddress.IPv4Network("10.78.2.0/24")]
OWN = (x509.DNSName("worker-1"), x509.IPAddress(ipaddress.ip_address("10.78.1.11")))


def request(common_name="system:node:worker-1", organizations=("system:nodes",), names=OWN, extra=(), key=None):
    """A request in PEM as a kubelet would write it, but for the arguments."""
    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    subject.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    for extension in extra:
        builder = builder.add_extension(extension, critical=False)
    signed = builder.sign(key or ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM)


def spec(pem=None, **changes):
    return {
        "signerName": "kubernetes.io/kubelet-serving",
        "username": "system:node:worker-1",
        "groups": ["system:nodes", "system:authenticated"],
        "usages": ["digital signature", "server auth"],
        "request": base64.b64encode(pem or request()).decode(),
    } | changes


def address(text):
    return x509.IPAddress(ipaddress.ip_address(text))


def test_a_node_gets_its_own_name_and_addresses():
    assert refusal(spec(), RANGES) is None


def test_an_rsa_kubelet_may_ask_for_key_encipherment():
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    usages = ["digital signature", "key encipherment", "server auth"]
    assert refusal(spec(request(key=key), usages=usages), RANGES) is None


REFUSED = {
    "another node's name in the subject": (spec(request(common_name="system:node:worker-2")), "in the name of"),
    "another node's name": (spec(request(names=(*OWN, x509.DNSName("worker-2")))), "asks for the names worker-2"),
    "a wildcard": (spec(request(names=(x509.DNSName("*.worker-1"),))), "asks for the names"),
    "an address elsewhere": (spec(request(names=(*OWN, address("10.99.0.1")))), "10.99.0.1, outside"),
    "a service address": (spec(request(names=(address("10.201.0.1"),))), "outside"),
    "IPv6": (spec(request(names=(*OWN, address("fd00::1")))), "other than"),
    "a URI": (spec(request(names=(*OWN, x509.UniformResourceIdentifier("spiffe://x")))), "other than"),
    "an email address": (spec(request(names=(*OWN, x509.RFC822Name("a@b")))), "other than"),
    "no names": (spec(request(names=())), "no name and no address"),
    "another organization": (spec(request(organizations=("system:masters",))), "organizations system:masters"),
    "one organization too many": (spec(request(organizations=("system:nodes", "system:masters"))), "organizations"),
    "no organization": (spec(request(organizations=())), "organizations none"),
    "further extensions": (
        spec(request(extra=(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]),))),
        "an extension other than",
    ),
    "a CA": (spec(request(extra=(x509.BasicConstraints(ca=True, path_length=None),))), "an extension other than"),
    "client auth": (spec(usages=["digital signature", "server auth", "client auth"]), "usages"),
    "no usages": (spec(usages=[]), "usages"),
    "no group": (spec(groups=["system:authenticated"]), "not in the group"),
    "a person": (spec(username="alice"), "no node"),
    "a node without a name": (spec(username="system:node:"), "no node"),
    "another signer": (spec(signerName="kubernetes.io/kube-apiserver-client"), "signer"),
    "no request": (spec(request="bm90IGEgcmVxdWVzdA=="), "unreadable"),
    "two requests": (spec(request() + request()), "unreadable"),
    "bad base64": (spec(request="%"), "unreadable"),
}


@pytest.mark.parametrize(("asked", "reason"), REFUSED.values(), ids=REFUSED)
def test_anything_else_is_refused_with_the_reason(asked, reason):
    assert reason in (refusal(asked, RANGES) or "")


def test_a_name_that_openssl_would_print_as_two_names_is_one_foreign_name():
    sly = x509.DNSName("worker-1, IP Address:10.78.1.11")
    assert "asks for the names" in (refusal(spec(request(names=(sly,))), RANGES) or "")


@given(st.binary(max_size=200))
@example(b"\x30\x80")
@example(b"\x30\x84\xff\xff\xff\xff")
def test_nonsense_is_refused_and_never_crashes_the_approver(data):
    pem = (
        "-----BEGIN CERTIFICATE REQUEST-----\n"
        + base64.b64encode(data).decode()
        + "\n-----END CERTIFICATE REQUEST-----\n"
    )
    assert "unreadable" in (refusal(spec(pem.encode()), RANGES) or "")


@given(st.integers(0, 400), st.integers(0, 255))
def test_a_request_with_one_changed_byte_never_gains_a_name(position, value):
    good = request()
    der = bytearray(base64.b64decode(b"".join(good.splitlines()[1:-1])))
    der[position % len(der)] = value
    pem = b"-----BEGIN CERTIFICATE REQUEST-----\n" + base64.b64encode(der) + b"\n-----END CERTIFICATE REQUEST-----\n"
    if refusal(spec(pem), RANGES) is None:
        found = csr.parse(pem.decode())
        assert (found.common_name, set(found.dns_names) - {"worker-1"}) == ("system:node:worker-1", set())


class FakeApi:
    def __init__(self, status=0):
        self.calls, self.status = [], status

    def call(self, method, path, body=None, kind="", timeout_s=0):
        self.calls.append((method, path, body))
        if self.status:
            raise ApiError(self.status, "no")


def listed(**changes):
    return {"metadata": {"name": "csr-1", "uid": "u1"}, "spec": spec(**changes), "status": {}}


def test_an_approval_is_sent_once_the_request_is_found_good():
    api = FakeApi()
    Approver(api, RANGES).decide(listed())
    ((method, path, body),) = api.calls
    assert (method, path.rsplit("/", 2)[1:]) == ("PUT", ["csr-1", "approval"])
    assert body["status"]["conditions"][0]["type"] == "Approved"


def test_what_somebody_decided_is_left_alone():
    api = FakeApi()
    decided = listed() | {"status": {"conditions": [{"type": "Denied"}]}}
    Approver(api, RANGES).decide(decided)
    assert api.calls == []


def test_losing_the_race_against_another_host_is_no_error():
    Approver(FakeApi(status=409), RANGES).decide(listed())


def test_a_refusal_of_the_api_is_an_error():
    with pytest.raises(ApiError):
        Approver(FakeApi(status=403), RANGES).decide(listed())


def test_a_bad_request_is_told_once(capsys):
    approver = Approver(FakeApi(), RANGES)
    for _ in range(3):
        approver.decide(listed(username="alice"))
    assert capsys.readouterr().out.count("left pending") == 1
