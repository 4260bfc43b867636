"""How long certificates live: those that the stack makes, those that hosts make, and those that servers show."""

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
from operations.keys.reports import Report
from stacks.certificates import RENEW_AFTER

Source = Literal["stack", "host", "handshake"]


@dataclass(frozen=True)
class Certificate:
    """name: of the resource, ``<host>:<path>``, or ``<host>:<port>``. issuer: its common name, "" where unknown.
    wrong: why there is none to see."""

    source: Source
    name: str
    begins: datetime | None = None
    ends: datetime | None = None
    issuer: str = ""
    wrong: str = ""

    @property
    def renewed_from(self) -> datetime | None:
        """Two thirds of its life."""
        return self.begins + (self.ends - self.begins) * RENEW_AFTER if self.begins and self.ends else None

    def days_left(self, now: datetime) -> int | None:
        return (self.ends - now) // timedelta(days=1) if self.ends else None

    def is_overdue(self, now: datetime) -> bool:
        """Whether something that should have renewed it has not."""
        return bool(self.wrong) or bool(self.renewed_from and now >= self.renewed_from)

    def to_json(self, now: datetime) -> dict[str, Any]:
        more = {"renewed_from": self.renewed_from, "days_left": self.days_left(now), "overdue": self.is_overdue(now)}
        return {**asdict(self), **more}


def of_stack(deployment: Mapping[str, Any]) -> Iterator[Certificate]:
    """Every certificate among a stack's resources; see `ClusterStack.deployment`."""
    for resource in deployment.get("resources", ()):
        pem = resource.get("outputs", {}).get("certificate")
        if isinstance(pem, str) and "BEGIN CERTIFICATE" in pem:
            yield _read("stack", resource["urn"].rpartition("::")[2], x509.load_pem_x509_certificate(pem.encode()))


def of_hosts(found: Iterable[Report]) -> Iterator[Certificate]:
    """Those that hosts make themselves, as they report."""
    for report in found:
        for path, (begins, ends) in report.certificates.items():
            first, last = (datetime.fromtimestamp(each, UTC) for each in (begins, ends))
            yield Certificate("host", f"{report.host}:{path}", first, last)


def shown(access: Access) -> tuple[Certificate, ...]:
    """What the API and every member of an etcd show in a handshake."""
    url = urlsplit(access.server)
    api = (url.hostname or "", url.port or 443, access.outputs.ca_pem, access.certificate, access.key)
    members = [
        (member.address, etcd.client_port, etcd.ca_pem, access.etcd_certificate, access.etcd_key)
        for etcd in access.outputs.etcds.values()
        for member in etcd.members
    ]
    with ThreadPoolExecutor(len(members) + 1) as pool:
        return tuple(pool.map(lambda each: handshake(*each), (api, *members)))


def handshake(host: str, port: int, ca_pem: str, certificate: str, key: str) -> Certificate:
    """What a server shows, verified by the authorities that it should be signed by."""
    name = f"{host}:{port}"
    try:
        return _read("handshake", name, shown_by(host, port, certificate, key, ca_pem))
    except (OSError, ValueError) as error:
        return Certificate("handshake", name, wrong=str(error))


def _read(source: Source, name: str, found: x509.Certificate) -> Certificate:
    names = found.issuer.get_attributes_for_oid(NameOID.COMMON_NAME)
    issuer = str(names[0].value) if names else ""
    return Certificate(source, name, found.not_valid_before_utc, found.not_valid_after_utc, issuer)
