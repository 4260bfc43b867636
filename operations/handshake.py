"""Reads a server's certificate, for any protocol over TLS."""

from __future__ import annotations

import socket
import ssl

from cryptography import x509

from clients.secret_file import secret_files

ANSWER_S = 5.0


def shown_by(host: str, port: int, certificate: str, key: str, ca_pem: str | None = None) -> x509.Certificate:
    """Do a TLS handshake with our client certificate (PEM) and return the server's certificate.

    etcd members log an error for clients without one. ca_pem: authorities that must have signed it for this host; None
    verifies nothing, so that expired certificates can be read. Sends no data. Raises OSError (ssl's errors are OSErrors)
    if there is no certificate.
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
        if not (der := connection.getpeercert(binary_form=True)):
            raise OSError(f"{host}:{port} presents no certificate")
    return x509.load_der_x509_certificate(der)
