"""What a server of ours needs for TLS, from files that an operator names."""

from __future__ import annotations

import ssl
from pathlib import Path

from cluster.errors import RefusedError


class PairError(RefusedError):
    """Two files are not a certificate and its key."""

    code = "bad-certificate"


def server_context(certificate: Path, key: Path, name: str) -> ssl.SSLContext:
    """Return what a server needs, from two files in PEM. name: of the server, for a sample. Raises PairError if they are not a pair."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # Without a password OpenSSL would ask for that of an encrypted key at the terminal.
        context.load_cert_chain(certificate, key, password="")
    except OSError as error:
        raise PairError(
            f"{certificate} and {key} are not a certificate and its key without a passphrase, both in PEM: "
            f"{error.strerror or error}; to make a pair for a try: openssl req -x509 -newkey ed25519 -nodes -days 30 "
            f"-subj /CN={name} -addext subjectAltName=IP:<address> -keyout {name}.key -out {name}.crt"
        ) from None
    return context
