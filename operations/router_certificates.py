"""Certificates of edge routers: reads the files next to a cluster's spec and checks them before a router gets them."""

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
from network.gateway import CertificateChain

SOON = datetime.timedelta(days=30)
"""How long before a certificate's expiry to warn."""


_Extension = TypeVar("_Extension", bound=x509.ExtensionType)


class CertificateError(RefusedError):
    """A router's certificate or its authorities are missing, or a gateway would not accept them."""

    code = "bad-certificate"


def folder_of(cluster: Cluster) -> Path:
    """Return the folder to which paths in the cluster's spec are relative."""
    return ROOT / "inventories" / cluster.name


def of_routers(
    cluster: Cluster, only: Container[IPv4Address] | None = None
) -> Iterator[tuple[str, str, RouterCertificate]]:
    """Yield (site, router, settings) of routers with a certificate. only: their public addresses, None for all."""
    for site, settings in cluster.spec.sites.items():
        for name, router in settings.vpn.routers.items() if settings.vpn else ():
            if router.certificate and (only is None or router.address in only):
                yield site, name, router.certificate


def certificate_chains(
    cluster: Cluster, only: Container[IPv4Address], report: Callable[[str], None]
) -> dict[str, CertificateChain]:
    """Return ``<site>/<router>`` -> certificates, for the routers with these public addresses.

    report: gets warnings about certificates that expire soon. Raises CertificateError with all errors.
    """
    papers_by_router, errors = {}, []
    for site, name, settings in of_routers(cluster, only):
        try:
            papers_by_router[f"{site}/{name}"] = load(settings, folder_of(cluster))
        except CertificateError as error:
            errors.append(f"{site}/{name}: {error}")
    if errors:
        raise CertificateError("\n".join(errors))
    for router, entry in papers_by_router.items():
        left = entry.expires - datetime.datetime.now(datetime.UTC)
        if left < SOON:
            report(
                f"{router}: its certificate expires in {left.days} days; renew it: ./menagerie vpn request {cluster.name}"
            )
    return papers_by_router


def load(settings: RouterCertificate, folder: Path) -> CertificateChain:
    """Load a router's certificate and its authorities up to a root, each signed by the next. folder: see `folder_of`.

    AWS requires the extensions that are checked here ("AWS Site-to-Site VPN tunnel authentication options").
    """
    now = datetime.datetime.now(datetime.UTC)
    leaf, *further = _read(folder / settings.file, folder.name)
    if further:
        raise CertificateError(
            f"{folder / settings.file} has {1 + len(further)} certificates; put the authorities into the file in ca"
        )
    authorities = _read(folder / settings.ca, folder.name)
    for lower, upper in zip([leaf, *authorities], [*authorities, authorities[-1]], strict=True):
        _signed(lower, upper, "is the last in ca and not a root" if lower is upper else "isn't signed by the next")
    for certificate in [leaf, *authorities]:
        _valid(certificate, now)
        _has(certificate, x509.SubjectKeyIdentifier)
    _has(leaf, x509.AuthorityKeyIdentifier)
    return CertificateChain(
        _pem(leaf),
        tuple(map(_pem, authorities)),
        leaf.subject.public_bytes(),
        min(certificate.not_valid_after_utc for certificate in [leaf, *authorities]),
    )


def _read(path: Path, cluster: str) -> list[x509.Certificate]:
    try:
        data = read_bytes(path)
    except UnreadableError as error:
        way_out = f"create a request with ./menagerie vpn request {cluster}, and have it signed"
        raise CertificateError(f"{path} can't be read ({error.reason}); {way_out}") from None
    if b"PRIVATE KEY" in data:
        raise CertificateError(
            f"{path} contains a private key, which belongs only on the router; remove it from the file"
        )
    try:
        return x509.load_pem_x509_certificates(data)
    except ValueError:
        raise CertificateError(f"{path} contains no PEM certificate") from None


def _name(certificate: x509.Certificate) -> str:
    return certificate.subject.rfc4514_string() or "a certificate without a subject"


def _signed(lower: x509.Certificate, upper: x509.Certificate, otherwise: str) -> None:
    try:
        lower.verify_directly_issued_by(upper)
    except (ValueError, TypeError, InvalidSignature):
        raise CertificateError(
            f"{_name(lower)} {otherwise}: {_name(upper)}; ca must start with the issuer of the certificate"
        ) from None
    if not _has(upper, x509.BasicConstraints).ca:
        raise CertificateError(f"{_name(upper)} is not an authority, according to its basic constraints")


def _valid(certificate: x509.Certificate, now: datetime.datetime) -> None:
    if now >= certificate.not_valid_after_utc:
        raise CertificateError(f"{_name(certificate)} expired on {certificate.not_valid_after_utc:%Y-%m-%d}; renew it")
    if now < certificate.not_valid_before_utc:
        raise CertificateError(
            f"{_name(certificate)} is valid from {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC on; wait until then"
        )


def _has(certificate: x509.Certificate, kind: type[_Extension]) -> _Extension:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        raise CertificateError(
            f"{_name(certificate)} lacks the extension {kind.__name__}, which AWS requires"
        ) from None


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()
