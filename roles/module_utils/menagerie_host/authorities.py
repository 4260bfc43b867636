"""A node's part when its cluster's authorities change: which its kubelet trusts, and which signed its certificates.

There are two bundles. The kubelet trusts one for its API and for clients, and its authorities sign the client
certificate. The other's authorities sign the serving certificate; the kubelet does not trust them. The first
certificate of a bundle is the authority that signs. A kubelet renews a certificate only near its end, so the link to
one of another authority is removed: at its next start the kubelet requests a new one with the identity of its
bootstrap kubeconfig. Here that is the former certificate, and the cluster approves its requests for its own Node. Pods
do not notice.

Standard library only. It reads certificates that it trusts; for others there is only an undocumented function.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import ssl
import tempfile
import time
from collections.abc import Callable
from typing import NamedTuple

from . import Refused

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----\s+([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----")
_DATA = re.compile(r"(certificate-authority-data: *)(\S+)")
PATIENCE_S = 120
"""Time for the cluster to approve and sign: the approver watches, and the controller manager signs at once."""


class Files(NamedTuple):
    """Paths of a node's own files: two kubeconfigs, the authorities, and links to the kubelet's two certificates."""

    kubeconfig: str
    bootstrap: str
    authorities: str
    client: str
    serving: str


def certificates(pem: str) -> tuple[str, ...]:
    """Return the base64 of each certificate of a bundle, in order, to compare them."""
    return tuple("".join(text.split()) for text in _PEM.findall(pem))


def of_kubeconfig(text: str) -> str:
    """Return the bundle that a kubeconfig trusts, "" if it has none that can be read."""
    match = _DATA.search(text)
    try:
        return base64.b64decode(match[2], validate=True).decode() if match else ""
    except ValueError:
        return ""


def read(path: str) -> str:
    """Return a file's text, "" without the file."""
    try:
        with open(path) as handle:
            return handle.read()
    except FileNotFoundError:
        return ""


def are_these(ca_pem: str, files: Files) -> bool:
    """Return whether the node trusts exactly this bundle."""
    held = (of_kubeconfig(read(files.kubeconfig)), read(files.authorities))
    return all(certificates(each) == certificates(ca_pem) for each in held)


def trust(ca_pem: str, files: Files) -> None:
    """Trust another bundle. The authorities' own file is written last: units restart when it changes."""
    data = base64.b64encode(ca_pem.encode()).decode()
    text = _DATA.sub(lambda match: match[1] + data, read(files.kubeconfig))
    _replace(files.kubeconfig, text, 0o600)
    _replace(files.authorities, ca_pem, 0o644)


def foreign_certificates(ca_pem: str, serving_pem: str, files: Files) -> list[str]:
    """Return the kubelet's certificates that were not signed by the first authority of their bundle.

    A missing serving certificate does not count: the kubelet is requesting it.
    """
    signers = {
        path: next(iter(digests(pem)), None) for path, pem in ((files.client, ca_pem), (files.serving, serving_pem))
    }
    return [path for path, signer in signers.items() if os.path.exists(path) and _issuer(path) != signer]


def renewal_was_cut_off(files: Files) -> bool:
    """Return whether a renewal was interrupted. Its bootstrap kubeconfig has a certificate; kubeadm's has a token."""
    return "client-certificate:" in read(files.bootstrap)


def renew(ca_pem: str, serving_pem: str, files: Files, execute: Callable[[list[str]], object]) -> None:
    """Have the kubelet request certificates of the signing authorities. Refused if the cluster issues none in time.

    The next call resumes an interrupted renewal.
    """
    execute(["systemctl", "stop", "kubelet.service"])
    if files.client in foreign_certificates(ca_pem, serving_pem, files):
        former = read(files.kubeconfig).replace(files.client, os.path.realpath(files.client))
        _replace(files.bootstrap, former, 0o600)
    for path in foreign_certificates(ca_pem, serving_pem, files):
        os.unlink(path)
    execute(["systemctl", "start", "kubelet.service"])
    deadline = time.monotonic() + PATIENCE_S
    while missing := _not_given(ca_pem, serving_pem, files):
        if time.monotonic() > deadline:
            raise Refused(
                f"the kubelet got no new certificate within {PATIENCE_S} s: {', '.join(missing)}; run it again"
            )
        time.sleep(1)
    if os.path.exists(files.bootstrap):
        os.unlink(files.bootstrap)


def _not_given(ca_pem: str, serving_pem: str, files: Files) -> list[str]:
    missing = [path for path in (files.client, files.serving) if not os.path.exists(path)]
    return missing or foreign_certificates(ca_pem, serving_pem, files)


def digests(ca_pem: str) -> dict[object, str]:
    """Return each certificate's name -> its SHA-256 in hex, in the bundle's order. Names are unique in a key ring."""
    return {_subject(match[0]): _digest(match[0]) for match in _PEM.finditer(ca_pem)}


def issued_by(path: str, ca_pem: str) -> str:
    """Return the digest of the bundle's authority that signed a certificate; "" if none did, or without the file."""
    return digests(ca_pem).get(_issuer(path), "") if os.path.exists(path) else ""


def _digest(pem: str) -> str:
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()


def _subject(pem: str) -> object:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=pem)
    return context.get_ca_certs()[0]["subject"]


def _issuer(path: str) -> object:
    return ssl._ssl._test_decode_cert(path)["issuer"]  # type: ignore[attr-defined]


def subject_of(path: str) -> dict[str, str]:
    """Return the subject of a certificate's file: attribute -> value."""
    decoded = ssl._ssl._test_decode_cert(path)  # type: ignore[attr-defined]
    return dict(part[0] for part in decoded["subject"])


def _replace(path: str, text: str, mode: int) -> None:
    handle, partial = tempfile.mkstemp(dir=os.path.dirname(path))
    with os.fdopen(handle, "w") as stream:
        stream.write(text)
    os.chmod(partial, mode)
    os.replace(partial, path)
