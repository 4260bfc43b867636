"""Remaining lifetime of certificates: the operator's, the CAs', and those that API servers and etcd members present.

Kubelets renew theirs automatically, and only the cluster sees them; if that fails, the node is NotReady.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from clients.access import Access
from operations.handshake import shown_by
from operations.status.model import StatusItem

LEFT = 1 / 6
"""Share of its lifetime below which a certificate is reported. Renewal happens at one third (`stacks.certificates`)."""


@dataclass(frozen=True)
class TlsServer:
    """A server with a certificate, and the CA that must have issued it, PEM."""

    name: str
    address: str
    port: int
    ca_pem: str


def certificates(access: Access, at: datetime | None = None) -> Iterator[StatusItem]:
    """Yield one item per kind, with the first to expire, or one item for each certificate with a problem. at:
    default is now."""
    now, cluster = at or datetime.now(UTC), access.outputs.cluster
    renew = f"./menagerie up {cluster}"
    yield from _kind("of operators", [("the API", access.certificate), ("etcd", access.etcd_certificate)], now, renew)
    authorities = {"Kubernetes": access.outputs.ca_pem}
    if access.outputs.serving_ca_pem:
        authorities["kubelets' serving certificates"] = access.outputs.serving_ca_pem
    authorities |= {f"etcd {role}": etcd.ca_pem for role, etcd in access.outputs.etcds.items()}
    yield from _kind("of authorities", authorities.items(), now, 'see docs/how-to/status.md, "Certificates"')
    api = _api_servers(access)
    yield from _shown("of API servers", api, access, now, renew)
    for role, etcd in access.outputs.etcds.items():
        members = [TlsServer(member.name, member.address, etcd.client_port, etcd.ca_pem) for member in etcd.members]
        yield from _shown(f"of etcd {role}", members, access, now, renew)


def _api_servers(access: Access) -> list[TlsServer]:
    """Return all API servers if their addresses are known; otherwise the one that the load balancer chooses."""
    outputs = access.outputs
    host, _, port = access.server.removeprefix("https://").rpartition(":")
    targets = [(server.name, server.address) for server in outputs.api_servers] or [("load balancer", host)]
    return [TlsServer(name, address, int(port), outputs.ca_pem) for name, address in targets]


def _kind(kind: str, texts: Iterable[tuple[str, str]], now: datetime, renew: str) -> Iterator[StatusItem]:
    parsed = [(name, x509.load_pem_x509_certificate(text.encode())) for name, text in texts if text]
    problems = [
        StatusItem("certificates", f"{kind}: {name}", False, problem, renew)
        for name, certificate in parsed
        if (problem := validity_problem(certificate, now))
    ]
    yield from problems
    if parsed and not problems:
        first = min((certificate.not_valid_after_utc, name) for name, certificate in parsed)
        yield StatusItem("certificates", kind, True, f"{(first[0] - now).days} days left at least ({first[1]})")


def _shown(kind: str, servers: Sequence[TlsServer], access: Access, now: datetime, renew: str) -> Iterator[StatusItem]:
    """Yield items for the servers that respond. Others show up in the health items."""
    with ThreadPoolExecutor(max(len(servers), 1)) as pool:
        results = [
            (server, certificate)
            for server, certificate in zip(
                servers, pool.map(lambda target: _handshake(target, access), servers), strict=True
            )
        ]
    shown = [(server, certificate) for server, certificate in results if certificate]
    problems = []
    for server, certificate in shown:
        problem = validity_problem(certificate, now) or _stranger(certificate, server.ca_pem)
        if problem:
            problems.append(StatusItem("certificates", f"{kind}: {server.name}", False, problem, renew))
    yield from problems
    if shown and not problems:
        end, name = min((certificate.not_valid_after_utc, server.name) for server, certificate in shown)
        yield StatusItem(
            "certificates", kind, True, f"{(end - now).days} days left at least ({name}); {len(shown)} checked"
        )


def _handshake(server: TlsServer, access: Access) -> x509.Certificate | None:
    try:
        return shown_by(server.address, server.port, access.etcd_certificate, access.etcd_key)
    except OSError:
        return None


def validity_problem(certificate: x509.Certificate, now: datetime) -> str:
    """Return what is wrong with a certificate's validity, "" if nothing is."""
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now >= ends:
        return f"expired on {ends:%Y-%m-%d %H:%M} UTC"
    if now < begins:
        return f"not valid before {begins:%Y-%m-%d %H:%M} UTC: is this machine's clock right?"
    return f"{(ends - now).days} days left, until {ends:%Y-%m-%d}" if ends - now < LEFT * (ends - begins) else ""


def _stranger(certificate: x509.Certificate, ca_pem: str) -> str:
    """Return an error if none of the CA's certificates (two during a rotation) has issued the certificate, else ""."""
    for authority in x509.load_pem_x509_certificates(ca_pem.encode()):
        try:
            certificate.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return ""
    return f"not issued by the stack's CA, but by {certificate.issuer.rfc4514_string()}"
