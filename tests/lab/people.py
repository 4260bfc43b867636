"""People of the lab: client certificates that the cluster itself issues, and the API's answers to their holders."""

from __future__ import annotations

import base64
import json
from http import HTTPMethod, HTTPStatus
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from kubernetes import client

from clients.rest import Rest
from clients.waiting import wait_until

SIGNER = "kubernetes.io/kube-apiserver-client"


class Person:
    """A person with a certificate for an hour, which an administrator has approved."""

    def __init__(self, api: client.ApiClient, name: str, folder: Path) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
        certificate, secret = folder / f"{name}.crt", folder / f"{name}.key"
        plain = serialization.NoEncryption()
        secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
        certificate.write_text(_issued(api, f"person-{name}", request.public_bytes(serialization.Encoding.PEM)))
        own = client.Configuration(host=api.configuration.host)
        own.ssl_ca_cert, own.cert_file, own.key_file = api.configuration.ssl_ca_cert, str(certificate), str(secret)
        self._configuration = own

    def tries(self, method: str, path: str, body: Any, **headers: str) -> tuple[int, str]:
        """Send a request; return the HTTP status and the API's error message, "" if it succeeds."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        api = client.ApiClient(self._configuration)
        for name, value in headers.items():
            api.set_default_header(name.replace("_", "-"), value)
        answer = Rest(api).send(HTTPMethod(method), path, body, kind)
        refused = answer.status >= HTTPStatus.BAD_REQUEST
        return answer.status, json.loads(answer.data)["message"] if refused else ""


def _issued(api: client.ApiClient, name: str, request: bytes) -> str:
    certificates = client.CertificatesV1Api(api)
    spec = client.V1CertificateSigningRequestSpec(
        request=base64.b64encode(request).decode(),
        signer_name=SIGNER,
        usages=["client auth"],
        expiration_seconds=3600,
    )
    certificates.create_certificate_signing_request(
        client.V1CertificateSigningRequest(metadata=client.V1ObjectMeta(name=name), spec=spec)
    )
    try:
        request_ = certificates.read_certificate_signing_request(name)
        approved = client.V1CertificateSigningRequestCondition(type="Approved", status="True", reason="Test")
        request_.status = client.V1CertificateSigningRequestStatus(conditions=[approved])
        certificates.replace_certificate_signing_request_approval(name, request_)

        def text() -> str:
            return certificates.read_certificate_signing_request(name).status.certificate or ""

        wait_until(lambda: "" if text() else f"{name} has not been issued", 60, lambda _: None)
        return base64.b64decode(text()).decode()
    finally:
        certificates.delete_certificate_signing_request(name)
