"""A node's part in the change of its cluster's authorities: whom its kubelet trusts, and who signed its certificates.

Two bundles say so: of those whom it trusts, as whose API and as whose clients, and who sign its client certificate; and of those
who sign its serving certificate, whom it does not trust. The first certificate of a bundle is the authority that signs. Kubelets renew by themselves only near the end of a
certificate's life, so one of another authority is put aside: at its next start a kubelet asks for a new one, as whom its
bootstrap kubeconfig says, which is here the former certificate, whose requests for its own Node the cluster approves. Pods
do not notice.

Standard library alone, which reads a certificate only where it trusts it or by a function without documentation.
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
"""For the cluster to approve and sign: the approver watches, the controller manager signs at once."""


class Files(NamedTuple):
    """Where a node has its own: two kubeconfigs, the authorities, and links to the kubelet's two certificates."""

    kubeconfig: str
    bootstrap: str
    authorities: str
    client: str
    serving: str


def certificates(pem: str) -> tuple[str, ...]:
    """What tells the certificates of a bundle apart, in their order."""
    return tuple("".join(text.split()) for text in _PEM.findall(pem))


def of_kubeconfig(text: str) -> str:
    """The bundle that a kubeconfig trusts, "" where it has none that can be read."""
    found = _DATA.search(text)
    try:
        return base64.b64decode(found[2], validate=True).decode() if found else ""
    except ValueError:
        return ""


def read(path: str) -> str:
    """ "" where there is no such file."""
    try:
        with open(path) as handle:
            return handle.read()
    except FileNotFoundError:
        return ""


def are_these(ca_pem: str, files: Files) -> bool:
    """Whether the node trusts this very bundle."""
    held = (of_kubeconfig(read(files.kubeconfig)), read(files.authorities))
    return all(certificates(each) == certificates(ca_pem) for each in held)


def trust(ca_pem: str, files: Files) -> None:
    """Trust another bundle. The authorities' own file comes last: for it, units are restarted."""
    data = base64.b64encode(ca_pem.encode()).decode()
    text = _DATA.sub(lambda found: found[1] + data, read(files.kubeconfig))
    _replace(files.kubeconfig, text, 0o600)
    _replace(files.authorities, ca_pem, 0o644)


def foreign_certificates(ca_pem: str, serving_pem: str, files: Files) -> list[str]:
    """Which of the kubelet's certificates another authority signed than the first of their bundle.

    A serving certificate that is not there is one that the kubelet is asking for.
    """
    signers = {
        path: next(iter(digests(pem)), None) for path, pem in ((files.client, ca_pem), (files.serving, serving_pem))
    }
    return [path for path, signer in signers.items() if os.path.exists(path) and _issuer(path) != signer]


def renewal_was_cut_off(files: Files) -> bool:
    """Whether a renewal began and did not end. Its bootstrap kubeconfig names a certificate, that of kubeadm a token."""
    return "client-certificate:" in read(files.bootstrap)


def renew(ca_pem: str, serving_pem: str, files: Files, execute: Callable[[list[str]], object]) -> None:
    """Have the kubelet ask for certificates of the authorities that sign. Refused where the cluster gives none in time.

    Cut off anywhere, it goes on when it is called again.
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
    """Name of each certificate of a bundle -> its SHA-256 in hex, in their order. No two of a ring have the same name."""
    return {_subject(found[0]): _digest(found[0]) for found in _PEM.finditer(ca_pem)}


def issued_by(path: str, ca_pem: str) -> str:
    """Digest of that authority of a bundle which has signed the certificate of a file; "" for none of them, and no file."""
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
    """Whom a certificate's file is for: attribute -> value."""
    decoded = ssl._ssl._test_decode_cert(path)  # type: ignore[attr-defined]
    return dict(part[0] for part in decoded["subject"])


def _replace(path: str, text: str, mode: int) -> None:
    handle, partial = tempfile.mkstemp(dir=os.path.dirname(path))
    with os.fdopen(handle, "w") as stream:
        stream.write(text)
    os.chmod(partial, mode)
    os.replace(partial, path)
