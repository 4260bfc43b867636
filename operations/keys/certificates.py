"""Lifetimes of certificates: those in the stack, those created on hosts, and those that servers present."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.x509.oid import NameOID

from clients.access import Access
from operations.handshake import shown_by
from operations.keys.reports import KeyReport
from stacks.certificates import RENEW_AFTER

Source = Literal["stack", "host", "handshake"]


@dataclass(frozen=True)
class Certificate:
    """name: of the resource, ``<host>:<path>``, or ``<host>:<port>``. issuer: its common name, "" if unknown. wrong: why the
    certificate could not be read."""

    source: Source
    name: str
    begins: datetime | None = None
    ends: datetime | None = None
    issuer: str = ""
    wrong: str = ""

    @property
    def renewed_from(self) -> datetime | None:
        """When it should be renewed: after two thirds of its lifetime."""
        return self.begins + (self.ends - self.begins) * RENEW_AFTER if self.begins and self.ends else None

    def days_left(self, now: datetime) -> int | None:
        return (self.ends - now) // timedelta(days=1) if self.ends else None

    def is_overdue(self, now: datetime) -> bool:
        """Return whether it should have been renewed by now, or could not be read."""
        return bool(self.wrong) or bool(self.renewed_from and now >= self.renewed_from)

    def to_json(self, now: datetime) -> dict[str, Any]:
        more = {"renewed_from": self.renewed_from, "days_left": self.days_left(now), "overdue": self.is_overdue(now)}
        return {**asdict(self), **more}


def of_stack(deployment: Mapping[str, Any]) -> Iterator[Certificate]:
    """Yield every certificate in a stack's resources; see `ClusterStack.deployment`."""
    for resource in deployment.get("resources", ()):
        pem = resource.get("outputs", {}).get("certificate")
        if isinstance(pem, str) and "BEGIN CERTIFICATE" in pem:
            yield _read("stack", resource["urn"].rpartition("::")[2], x509.load_pem_x509_certificate(pem.encode()))


def of_hosts(host_reports: Iterable[KeyReport]) -> Iterator[Certificate]:
    """Yield the certificates that hosts created themselves, from their reports."""
    for report in host_reports:
        for path, (begins, ends) in report.certificates.items():
            first, last = (datetime.fromtimestamp(timestamp, UTC) for timestamp in (begins, ends))
            yield Certificate("host", f"{report.host}:{path}", first, last)


def shown(access: Access) -> tuple[Certificate, ...]:
    """Return the certificates that the API and every etcd member present in a handshake."""
    url = urlsplit(access.server)
    api = (url.hostname or "", url.port or 443, access.outputs.ca_pem, access.certificate, access.key)
    members = [
        (member.address, etcd.client_port, etcd.ca_pem, access.etcd_certificate, access.etcd_key)
        for etcd in access.outputs.etcds.values()
        for member in etcd.members
    ]
    with ThreadPoolExecutor(len(members) + 1) as pool:
        return tuple(pool.map(lambda target: handshake(*target), (api, *members)))


def handshake(host: str, port: int, ca_pem: str, certificate: str, key: str) -> Certificate:
    """Return the certificate that a server presents, verified with the authorities that must have signed it."""
    name = f"{host}:{port}"
    try:
        return _read("handshake", name, shown_by(host, port, certificate, key, ca_pem))
    except (OSError, ValueError) as error:
        return Certificate("handshake", name, wrong=str(error))


def _read(source: Source, name: str, certificate: x509.Certificate) -> Certificate:
    names = certificate.issuer.get_attributes_for_oid(NameOID.COMMON_NAME)
    issuer = str(names[0].value) if names else ""
    return Certificate(source, name, certificate.not_valid_before_utc, certificate.not_valid_after_utc, issuer)
