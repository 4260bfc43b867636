"""What pages in the cluster get from `controllers apply`: their port, and their certificate as a file with the chain and the key."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path

from clients.secret_file import secret_files
from clients.tls import PairError, server_context
from cluster.errors import RefusedError

TLS = "certificate.pem"
"""The file's name. Without it the pages are served on loopback alone."""
PORT = 9811
"""Of the pods, for the pages."""
_NAME = "web"


def checked_pair(text: str, secret: str) -> Mapping[str, str]:
    """Return file -> its text. text: of the stored secret. Errors: raises RefusedError if it is no pair; never shows it."""
    with secret_files(text) as (path,):
        try:
            server_context(path, path, _NAME)
        except PairError:
            raise RefusedError(
                f"the secret {secret} is not a certificate and its key without a passphrase, both in PEM; store one after the "
                f"other: cat web.crt web.key | ./menagerie secret <cluster> {secret}",
                code="bad-certificate",
            ) from None
    return {TLS: text}


class Certificate:
    """The certificate in a folder of delivered files. A kubelet replaces the files when the Secret changes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / TLS
        self._text = self._path.read_bytes()
        self.context: ssl.SSLContext = server_context(self._path, self._path, _NAME)

    def renew(self) -> bool:
        """Use what the file has now, for new connections. Return whether it has changed. Raises PairError; the former one stays."""
        text = self._path.read_bytes()
        if text == self._text:
            return False
        server_context(self._path, self._path, _NAME)  # a half that loads would leave the context with another's key
        self.context.load_cert_chain(self._path, password="")
        self._text = text
        return True
