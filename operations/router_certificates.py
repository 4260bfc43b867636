"""Certificates of edge routers: the files beside a cluster's spec, read and judged before a router is told."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Container, Iterator
from ipaddress import IPv4Address
from pathlib import Path
from typing import TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding

from cluster.errors import RefusedError
from cluster.project import ROOT
from cluster.reading import UnreadableError, read_bytes
from cluster.sites import RouterCertificate
from cluster.spec import Cluster
from network.gateway import Papers

SOON = datetime.timedelta(days=30)
"""Before a certificate's end, when it is told of."""


_Extension = TypeVar("_Extension", bound=x509.ExtensionType)


class CertificateError(RefusedError):
    """A router's certificate, or its authorities, are not there or can't be shown to a gateway."""

    code = "bad-certificate"


def folder_of(cluster: Cluster) -> Path:
    """Where the paths of its spec begin."""
    return ROOT / "inventories" / cluster.name


def of_routers(
    cluster: Cluster, only: Container[IPv4Address] | None = None
) -> Iterator[tuple[str, str, RouterCertificate]]:
    """(site, router, its settings) of those with a certificate. only: the public addresses of those that are meant."""
    for site, settings in cluster.spec.sites.items():
        for name, router in settings.vpn.routers.items() if settings.vpn else ():
            if router.certificate and (only is None or router.address in only):
                yield site, name, router.certificate


def papers(cluster: Cluster, only: Container[IPv4Address], report: Callable[[str], None]) -> dict[str, Papers]:
    """``<site>/<router>`` -> what it has, of the routers with these public addresses. `report` hears what ends soon.

    Raises CertificateError with all that is wrong.
    """
    found, wrong = {}, []
    for site, name, settings in of_routers(cluster, only):
        try:
            found[f"{site}/{name}"] = load(settings, folder_of(cluster))
        except CertificateError as error:
            wrong.append(f"{site}/{name}: {error}")
    if wrong:
        raise CertificateError("\n".join(wrong))
    for router, one in found.items():
        left = one.expires - datetime.datetime.now(datetime.UTC)
        if left < SOON:
            report(f"{router}: its certificate ends in {left.days} days; renew it with ./menagerie vpn request")
    return found


def load(settings: RouterCertificate, folder: Path) -> Papers:
    """A router's certificate and the authorities up to a root, each signed by the next.

    AWS looks for the extensions that are asked for here ("AWS Site-to-Site VPN tunnel authentication options").
    """
    now = datetime.datetime.now(datetime.UTC)
    own, *further = _read(folder / settings.file)
    if further:
        raise CertificateError(
            f"{folder / settings.file} holds {1 + len(further)} certificates; authorities go into ca"
        )
    authorities = _read(folder / settings.ca)
    for lower, upper in zip([own, *authorities], [*authorities, authorities[-1]], strict=True):
        _signed(lower, upper, "is no root and is the last in ca" if lower is upper else "isn't signed by the next")
    for one in [own, *authorities]:
        _valid(one, now)
        _has(one, x509.SubjectKeyIdentifier)
    _has(own, x509.AuthorityKeyIdentifier)
    return Papers(
        _pem(own),
        tuple(map(_pem, authorities)),
        own.subject.public_bytes(),
        min(one.not_valid_after_utc for one in [own, *authorities]),
    )


def _read(path: Path) -> list[x509.Certificate]:
    try:
        data = read_bytes(path)
    except UnreadableError as error:
        how = "make a request with ./menagerie vpn request, and have it signed"
        raise CertificateError(f"{path} can't be read ({error.reason}); {how}") from None
    if b"PRIVATE KEY" in data:
        raise CertificateError(f"{path} holds a private key, which belongs on the router alone; take it out of there")
    try:
        return x509.load_pem_x509_certificates(data)
    except ValueError:
        raise CertificateError(f"{path} holds no certificate in PEM") from None


def _name(one: x509.Certificate) -> str:
    return one.subject.rfc4514_string() or "a certificate without a subject"


def _signed(lower: x509.Certificate, upper: x509.Certificate, otherwise: str) -> None:
    try:
        lower.verify_directly_issued_by(upper)
    except (ValueError, TypeError, InvalidSignature):
        raise CertificateError(
            f"{_name(lower)} {otherwise}: {_name(upper)}; ca begins with the one that signs"
        ) from None
    if not _has(upper, x509.BasicConstraints).ca:
        raise CertificateError(f"{_name(upper)} is no authority, by its basic constraints")


def _valid(one: x509.Certificate, now: datetime.datetime) -> None:
    if now >= one.not_valid_after_utc:
        raise CertificateError(f"{_name(one)} expired on {one.not_valid_after_utc:%Y-%m-%d}; renew it")
    if now < one.not_valid_before_utc:
        raise CertificateError(f"{_name(one)} is valid from {one.not_valid_before_utc:%Y-%m-%d %H:%M} UTC on; wait")


def _has(one: x509.Certificate, kind: type[_Extension]) -> _Extension:
    try:
        return one.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        raise CertificateError(f"{_name(one)} lacks the extension {kind.__name__}, which AWS looks for") from None


def _pem(one: x509.Certificate) -> str:
    return one.public_bytes(Encoding.PEM).decode()
