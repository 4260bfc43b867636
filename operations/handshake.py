"""The certificate that a server shows, whatever it serves."""

from __future__ import annotations

import socket
import ssl

from cryptography import x509

from clients.secret_file import secret_files

ANSWER_S = 5.0


def shown_by(host: str, port: int, certificate: str, key: str, ca_pem: str | None = None) -> x509.Certificate:
    """Shake hands, with a certificate of ours (PEM): a member of an etcd logs an error for who has none.

    ca_pem: the authorities that must have signed it, for this host. None verifies nothing, so that one which has expired can be
    looked at; nothing is sent. OSError, of which ssl's errors are, where there is none to see.
    """
    context = ssl.create_default_context(cadata=ca_pem) if ca_pem else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not ca_pem:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with secret_files(certificate, key) as (certificate_file, key_file):
        context.load_cert_chain(certificate_file, key_file)
    with (
        socket.create_connection((host, port), timeout=ANSWER_S) as plain,
        context.wrap_socket(plain, server_hostname=host) as connection,
    ):
        if not (shown := connection.getpeercert(binary_form=True)):
            raise OSError(f"{host}:{port} shows no certificate")
    return x509.load_der_x509_certificate(shown)
