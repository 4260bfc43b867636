"""The annotation in which a node announces its kubelet's authorities."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import ssl
from typing import ClassVar

import pytest

from stacks.certificates import Request, issue, new_authority
from tests.roles.serving import serving

FIRST, SECOND, SERVING = map(new_authority, ("kubernetes", "kubernetes-2", "kubelet-serving"))
ANNOTATION = "menagerie.dev/authorities"


def digest(authority):
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(authority.certificate)).hexdigest()


class Node(http.server.BaseHTTPRequestHandler):
    """An API with one Node, which identifies the kubelet by its certificate. annotations: None for no Node."""

    annotations: ClassVar[dict[str, str] | None] = {}
    requests: ClassVar[list[tuple[str, str, str]]] = []

    def answer(self, status):
        names = dict(part[0] for part in self.request.getpeercert()["subject"])
        self.requests.append((self.command, self.path, names["commonName"]))
        self.send_response(404 if self.annotations is None and status == 200 else status)
        self.end_headers()
        self.wfile.write(json.dumps({"metadata": {"annotations": self.annotations}}).encode())

    def do_GET(self):
        self.answer(200)

    def do_PATCH(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.headers["Content-Type"] == "application/merge-patch+json"
        self.annotations.update(body["metadata"]["annotations"])
        self.answer(200)

    def log_message(self, *_):
        pass


@pytest.fixture
def api(tmp_path):
    """Provide (host:port, the handler's class) of an API that requires client certificates."""
    server = issue(FIRST, Request("api", addresses=("127.0.0.1",)))
    (tmp_path / "server.pem").write_text(server.certificate + server.private_key)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=FIRST.certificate + SECOND.certificate)
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_cert_chain(tmp_path / "server.pem")
    handler = type("Api", (Node,), {"annotations": {}, "requests": []})
    with serving(handler, tls) as endpoint:
        yield endpoint, handler


@pytest.fixture
def node(host, tmp_path):
    """Return a function that writes a node's files, with certificates of these authorities."""

    def made(bundle=(FIRST,), client=FIRST, serving=SERVING):
        files = host("authorities").Files(
            *(str(tmp_path / name) for name in ("conf", "boot", "ca", "client", "serving"))
        )
        pem = "".join(authority.certificate for authority in bundle)
        data = base64.b64encode(pem.encode()).decode()
        (tmp_path / "conf").write_text(f"- cluster:\n    certificate-authority-data: {data}\n")
        (tmp_path / "ca").write_text(pem)
        for name, authority in (("client", client), ("serving", serving)):
            (tmp_path / name).unlink(missing_ok=True)
            if authority:
                signed = issue(authority, Request("system:node:w1", ("system:nodes",)))
                (tmp_path / name).write_text(signed.certificate + signed.private_key)
        return files

    return made


@pytest.fixture
def announcing(host):
    return host("announcing")


def test_trusted_and_signing_authorities_are_announced_by_digest(announcing, node):
    both = sorted([digest(FIRST), digest(SECOND)])
    bundle = FIRST.certificate + SERVING.certificate
    assert json.loads(announcing.record(node((SECOND, FIRST), FIRST, SERVING), bundle)) == {
        "api": both,
        "clients": both,
        "servers": sorted([digest(FIRST), digest(SERVING)]),
        "client": digest(FIRST),
        "serving": digest(SERVING),
    }


def test_a_missing_or_untrusted_certificate_is_announced_without_a_signer(announcing, node):
    for signer in (None, FIRST):
        announced = json.loads(announcing.record(node((SECOND,), FIRST, signer), SERVING.certificate))
        assert (announced["client"], announced["serving"]) == ("", "")


def test_the_annotation_is_written_as_the_kubelet_and_only_when_it_differs(announcing, node, api):
    endpoint, served = api
    assert announcing.converge(endpoint, node(), SERVING.certificate, False) == [
        "record which authorities it works with"
    ]
    assert served.requests == [(verb, "/api/v1/nodes/w1", "system:node:w1") for verb in ("GET", "PATCH")]
    assert json.loads(served.annotations[ANNOTATION])["api"] == [digest(FIRST)]
    assert announcing.converge(endpoint, node(), SERVING.certificate, False) == []
    assert announcing.converge(endpoint, node((FIRST, SECOND)), SERVING.certificate, False) == [
        "record which authorities it works with"
    ]
    assert [verb for verb, _, _ in served.requests] == ["GET", "PATCH", "GET", "GET", "PATCH"]


def test_a_dry_run_reads_and_never_writes(announcing, node, api):
    endpoint, served = api
    assert announcing.converge(endpoint, node(), SERVING.certificate, True) == [
        "record which authorities it works with"
    ]
    assert [verb for verb, _, _ in served.requests] == ["GET"]
    assert served.annotations == {}


def test_a_join_waits_for_a_pending_serving_certificate(announcing, node, api, monkeypatch):
    endpoint, served = api
    files = node(serving=None)
    monkeypatch.setattr(announcing.time, "sleep", lambda _: node())
    announcing.converge(endpoint, files, SERVING.certificate, False, patience_s=60)
    assert json.loads(served.annotations[ANNOTATION])["serving"] == digest(SERVING)


def test_a_kubelet_without_its_node_gets_advice_to_create_it(announcing, node, api):
    endpoint, served = api
    served.annotations = None
    with pytest.raises(announcing.Refused, match="no Node w1.*systemctl restart kubelet"):
        announcing.converge(endpoint, node(), SERVING.certificate, False)


def test_an_api_that_refuses_or_does_not_answer_is_named_in_the_error(announcing, node, api, monkeypatch):
    endpoint, served = api
    monkeypatch.setattr(served, "do_GET", lambda self: self.answer(403))
    with pytest.raises(announcing.Refused, match=rf"https://{endpoint}: GET of Node w1: 403"):
        announcing.converge(endpoint, node(), SERVING.certificate, False)
    with pytest.raises(announcing.Refused, match="CERTIFICATE_VERIFY_FAILED"):
        announcing.converge(endpoint, node((SECOND,), SECOND), SERVING.certificate, False)
