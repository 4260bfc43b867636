"""kubelet-csr-approver, on real requests. test_serving_certificates.py runs it on a real control plane."""

from __future__ import annotations

import base64
import ipaddress
import json

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from hypothesis import example, given
from hypothesis import strategies as st

from components.control_plane.host import csr
from components.control_plane.host.api import WATCH_S, ApiError
from components.control_plane.host.approver import AGAIN_S, LIST, Approver, Reserved, read
from components.control_plane.host.claims import Claims, Refused
from components.control_plane.host.following import NotYet
from components.control_plane.serving import settings
from network.addresses import plan

RESERVED = Reserved(["api.horus.internal"], ["api", "etcd-main"], ["horus.internal", "cluster.local"])
HOSTS = {"worker-1": "10.78.1.11", "worker-2": "10.78.1.12"}
REGION = (ipaddress.IPv4Network("10.40.128.0/17"),)
OWN = (x509.DNSName("worker-1"), x509.IPAddress(ipaddress.ip_address("10.78.1.11")))


def request(common_name="system:node:worker-1", organizations=("system:nodes",), names=OWN, extra=(), key=None):
    """Return a request in PEM like a kubelet's, changed by the arguments."""
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


def node(name, *addresses, uid=None):
    reported = [{"type": "InternalIP", "address": each} for each in addresses]
    return {"metadata": {"name": name, "uid": uid or f"uid-{name}"}, "status": {"addresses": reported}}


class FakeApi:
    """An API with a spec's hosts, records of workers, and Nodes.

    status: of refused writes, to every path with `refused` in it. listed, coming: requests.
    """

    def __init__(self, status=0, nodes=(), records=None, listed=(), coming=(), refused=""):
        self.calls, self.status, self.refused = [], status, refused
        self.listed, self.coming, self.watched_s = list(listed), list(coming), []
        self.nodes, self.records = {each["metadata"]["name"]: each for each in nodes}, dict(records or {})

    def call(self, method, path, body=None, kind="", timeout_s=0):
        if method == "GET":
            return self.read(path)
        self.calls.append((method, path, body))
        if self.status and self.refused in path:
            raise ApiError(self.status, "no")
        if path.endswith("/workers"):
            self.records = body["data"]
        return None

    def watch(self, path, version, wait_s):
        self.watched_s.append(wait_s)
        yield from self.coming

    def approved(self):
        return [path.split("/")[-2] for _, path, _ in self.calls if path.endswith("/approval")]

    def read(self, path):
        if path.startswith(LIST):
            return {"items": self.listed, "metadata": {"resourceVersion": "1"}}
        if path.endswith("/hosts"):
            return {"metadata": {}, "data": {"hosts.json": json.dumps(HOSTS)}}
        if path.endswith("/workers"):
            return {"metadata": {"resourceVersion": "7"}, "data": self.records}
        if path.endswith("/nodes"):
            return {"items": list(self.nodes.values())}
        name = path.rpartition("/")[2]
        if name not in self.nodes:
            raise ApiError(404, "no such Node")
        return self.nodes[name]


def refusal(request_spec, api=None, ranges=REGION):
    """Return why a request is refused or not decided yet; None if it is granted."""
    try:
        Claims(api or FakeApi(), ranges).settle(*read(request_spec, RESERVED))
    except (Refused, NotYet) as reason:
        return str(reason)
    return None


def of(name, *addresses):
    """Return a node's request for its name and these addresses."""
    names = (x509.DNSName(name), *(address(each) for each in addresses))
    return spec(request(common_name=f"system:node:{name}", names=names), username=f"system:node:{name}")


def test_a_node_gets_its_own_name_and_addresses():
    assert refusal(spec()) is None


def test_a_kubelet_with_an_rsa_key_may_request_key_encipherment():
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    usages = ["digital signature", "key encipherment", "server auth"]
    assert refusal(spec(request(key=key), usages=usages)) is None


REFUSED = {
    "another node's name in the subject": (spec(request(common_name="system:node:worker-2")), "in the name of"),
    "another node's name": (spec(request(names=(*OWN, x509.DNSName("worker-2")))), "asks for the names worker-2"),
    "a wildcard": (spec(request(names=(x509.DNSName("*.worker-1"),))), "asks for the names"),
    "an address elsewhere": (spec(request(names=(*OWN, address("10.99.0.1")))), "asks for 10.99.0.1"),
    "its neighbour's address": (spec(request(names=(address("10.78.1.12"),))), "worker-1 has 10.78.1.11 in the spec"),
    "a service address": (spec(request(names=(address("10.201.0.1"),))), "asks for 10.201.0.1"),
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
    "a person": (spec(username="alice"), "not a node"),
    "a node without a name": (spec(username="system:node:"), "not a node"),
    "another signer": (spec(signerName="kubernetes.io/kube-apiserver-client"), "signer"),
    "no request": (spec(request="bm90IGEgcmVxdWVzdA=="), "unreadable"),
    "two requests": (spec(request() + request()), "unreadable"),
    "bad base64": (spec(request="%"), "unreadable"),
}


@pytest.mark.parametrize(("request_spec", "reason"), REFUSED.values(), ids=REFUSED)
def test_any_other_request_is_refused_with_the_reason(request_spec, reason):
    assert reason in (refusal(request_spec) or "")


def test_a_name_that_openssl_would_print_as_two_names_is_one_foreign_name():
    sly = x509.DNSName("worker-1, IP Address:10.78.1.11")
    assert "asks for the names" in (refusal(spec(request(names=(sly,)))) or "")


@given(st.binary(max_size=200))
@example(b"\x30\x80")
@example(b"\x30\x84\xff\xff\xff\xff")
def test_nonsense_is_refused_and_never_crashes_the_approver(data):
    pem = (
        "-----BEGIN CERTIFICATE REQUEST-----\n"
        + base64.b64encode(data).decode()
        + "\n-----END CERTIFICATE REQUEST-----\n"
    )
    assert "unreadable" in (refusal(spec(pem.encode())) or "")


@given(st.integers(0, 400), st.integers(0, 255))
def test_a_request_with_one_changed_byte_never_gains_a_name(position, value):
    good = request()
    der = bytearray(base64.b64decode(b"".join(good.splitlines()[1:-1])))
    der[position % len(der)] = value
    pem = b"-----BEGIN CERTIFICATE REQUEST-----\n" + base64.b64encode(der) + b"\n-----END CERTIFICATE REQUEST-----\n"
    if refusal(spec(pem)) is None:
        parsed = csr.parse(pem.decode())
        assert (parsed.common_name, set(parsed.dns_names) - {"worker-1"}) == ("system:node:worker-1", set())


def approver(api):
    return Approver(api, RESERVED, Claims(api, REGION))


def listed(name="csr-1", **changes):
    return {"metadata": {"name": name, "uid": f"u-{name}"}, "spec": spec(**changes), "status": {}}


def test_a_valid_request_is_approved():
    api = FakeApi()
    approver(api).decide(listed())
    ((method, path, body),) = api.calls
    assert (method, path.rsplit("/", 2)[1:]) == ("PUT", ["csr-1", "approval"])
    assert body["status"]["conditions"][0]["type"] == "Approved"


def test_a_decided_request_is_left_alone():
    api = FakeApi()
    decided = listed() | {"status": {"conditions": [{"type": "Denied"}]}}
    approver(api).decide(decided)
    assert api.calls == []


def test_losing_the_race_against_another_host_is_no_error():
    approver(FakeApi(status=409)).decide(listed())


@pytest.mark.parametrize("status", [403, 409, 422, 500])
def test_a_request_that_the_api_refuses_to_approve_does_not_stop_others(status, capsys):
    api = FakeApi(status, listed=[listed(), listed("csr-2")], coming=[listed(), listed("csr-3")], refused="/csr-1/")
    deciding = approver(api)
    deciding.follow()
    deciding.follow()
    assert {"csr-2", "csr-3"} <= set(api.approved())
    # Another host's approver was faster.
    lost = status == 409
    assert api.watched_s == [WATCH_S if lost else AGAIN_S] * 2
    assert capsys.readouterr().out.count(f"csr-1: HTTP {status}: no\n") == (0 if lost else 1)


def test_an_unreadable_request_does_not_stop_others():
    api = FakeApi(listed=[listed() | {"spec": None}, listed("csr-2")])
    approver(api).follow()
    assert api.approved() == ["csr-2"]


def test_a_request_that_arrives_before_its_node_is_checked_again_soon():
    early = listed() | {"spec": of("a", A)}
    api = FakeApi(coming=[early, listed("csr-2")])
    approver(api).follow()
    assert (api.watched_s, api.approved()) == ([WATCH_S], []), "the watch ends, and the list has both"
    api.listed, api.coming = [early, listed("csr-2")], []
    approver(api).follow()
    assert (api.watched_s, api.approved()) == ([WATCH_S, AGAIN_S], ["csr-2"])


class Lost(FakeApi):
    """An API that becomes unreachable during a write."""

    def call(self, method, path, body=None, kind="", timeout_s=0):
        if method == "PUT":
            raise ConnectionRefusedError
        return super().call(method, path, body)


@pytest.mark.parametrize(
    ("api", "error"), [(Lost(listed=[listed()]), OSError), (FakeApi(401, listed=[listed()]), ApiError)]
)
def test_an_api_that_does_not_answer_or_authenticate_ends_the_round(api, error):
    with pytest.raises(error):
        approver(api).follow()
    assert api.watched_s == []


def test_a_bad_request_is_reported_once(capsys):
    deciding = approver(FakeApi())
    for _ in range(3):
        deciding.decide(listed(username="alice"))
    assert capsys.readouterr().out.count("left pending") == 1


@pytest.mark.parametrize(
    "name",
    ["api.horus.internal", "API.horus.internal", "x.horus.internal", "kubernetes", "localhost", "kubernetes.default.svc",
     "x.y.svc.cluster.local", "api-1", "etcd-main-3", "10.40.0.4", "horus.internal."],
)  # fmt: skip
def test_no_node_has_a_name_of_the_control_plane(name):
    assert "is a name of the control plane" in (refusal(of(name)) or "")


def test_the_names_of_the_control_plane_are_those_of_its_certificates_its_hosts_and_its_zone(build):
    cluster = build(
        {"control_plane": {"cloud": "azure", "region": "r", "machine": "m"}, "network": {"nodes": "10.40.0.0/16"}}
    )
    names = settings(cluster, plan(cluster))
    reserved = Reserved(names["names"], names["kinds"], names["zones"])
    for name in ("api.lab.internal", "kubernetes.default.svc", "api-1", "etcd-events-2", str(plan(cluster).service_ip)):
        assert reserved.has(name), name
    assert not [host.name for _, host in cluster.host_list() if reserved.has(host.name)]
    assert not reserved.has("ip-10-40-32-5.eu-west-1.compute.internal"), "as AWS calls its machines"


A, B = "10.40.128.5", "10.40.128.6"


@pytest.mark.parametrize(
    ("request_spec", "nodes", "records", "reason"),
    [
        (of("a", A), [node("a", A)], {}, None),
        (of("a"), [], {}, None),
        (of("a", A), [], {}, "there is no Node a yet"),
        (of("a", A), [node("a", B)], {}, "does not report"),
        (of("a", A, B), [node("a", A, B)], {}, "has one address"),
        (of("a", "10.40.0.4"), [node("a", "10.40.0.4")], {}, "is not in a range of workers"),
        (of("a", "10.78.1.12"), [node("a", "10.78.1.12")], {}, "is not in a range of workers"),
        # A node keeps its address, whatever it reports, and however many others claim it.
        (of("a", B), [node("a", B)], {"a": f"uid-a {A}"}, f"it has had {A} since it joined"),
        (of("a", A), [node("a"), node("b", A)], {"a": f"uid-a {A}"}, None),
        # A new Node of the same name is another machine.
        (of("a", B), [node("a", B, uid="2")], {"a": f"uid-a {A}"}, None),
        # Two nodes without a record claim the address: its owner is unknown.
        (of("a", A), [node("a", A), node("b", A)], {}, f"{A} is b's"),
        (of("a", A), [node("a", A), node("b", B)], {"b": f"uid-b {A}"}, f"{A} is b's"),
        # Claims of a node with another address, or of a deleted Node, do not block the owner.
        (of("a", A), [node("a", A), node("b", A, B)], {"b": f"uid-b {B}"}, None),
        (of("a", A), [node("a", A)], {"b": f"uid-b {A}"}, None),
    ],
)
def test_a_worker_in_the_region_gets_only_the_address_that_it_had_first(request_spec, nodes, records, reason):
    refused_because = refusal(request_spec, FakeApi(nodes=nodes, records=records))
    assert refused_because is None if reason is None else reason in (refused_because or "")


def test_a_claim_is_written_with_the_version_that_was_read_before_anything_is_approved():
    api = FakeApi(nodes=[node("a", A), node("c", B)], records={"gone": f"uid {B}", "c": f"uid-c {B}"})
    approver(api).decide(listed() | {"spec": of("a", A)})
    (_, path, body), (_, approval, _) = api.calls
    assert (path.rpartition("/")[2], approval.rpartition("/")[2]) == ("workers", "approval")
    assert body["metadata"]["resourceVersion"] == "7"
    assert body["data"] == {"a": f"uid-a {A}", "c": f"uid-c {B}"}


def test_if_another_approver_was_faster_nothing_is_approved_and_the_request_is_checked_again():
    api = FakeApi(status=409, nodes=[node("a", A)])
    with pytest.raises(NotYet, match="another approver"):
        approver(api).decide(listed() | {"spec": of("a", A)})
    assert [path.rpartition("/")[2] for _, path, _ in api.calls] == ["workers"]


def test_a_cluster_without_workers_in_the_region_grants_only_names_of_its_spec():
    refused_because = refusal(of("a", A), FakeApi(nodes=[node("a", A)]), ranges=())
    assert refused_because == "the cluster does not know the host a; run ./menagerie configure"
