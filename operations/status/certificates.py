"""Certificates by the life that is left: the operator's own, the CAs', and what API servers and members show.

Kubelets renew theirs by themselves and show them to nobody outside; one that failed to is a node that is NotReady.
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
from operations.status.model import Item

LEFT = 1 / 6
"""Of its life, below which a certificate is told of. What renews it does so at a third (`stacks.certificates`)."""


@dataclass(frozen=True)
class Server:
    """Who shows a certificate, and the CA that it must be of, PEM."""

    name: str
    address: str
    port: int
    ca_pem: str


def certificates(access: Access, at: datetime | None = None) -> Iterator[Item]:
    """A line a kind, with the one that ends first; each that is not well on a line of its own. at: now, without it."""
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
        members = [Server(each.name, each.address, etcd.client_port, etcd.ca_pem) for each in etcd.members]
        yield from _shown(f"of etcd {role}", members, access, now, renew)


def _api_servers(access: Access) -> list[Server]:
    """Each, where they are known by address; otherwise the one that a load balancer chooses."""
    outputs = access.outputs
    host, _, port = access.server.removeprefix("https://").rpartition(":")
    known = [(each.name, each.address) for each in outputs.api_servers] or [("load balancer", host)]
    return [Server(name, address, int(port), outputs.ca_pem) for name, address in known]


def _kind(kind: str, texts: Iterable[tuple[str, str]], now: datetime, renew: str) -> Iterator[Item]:
    found = [(name, x509.load_pem_x509_certificate(text.encode())) for name, text in texts if text]
    wrong = [
        Item("certificates", f"{kind}: {name}", False, told, renew)
        for name, each in found
        if (told := ailment(each, now))
    ]
    yield from wrong
    if found and not wrong:
        first = min((each.not_valid_after_utc, name) for name, each in found)
        yield Item("certificates", kind, True, f"{(first[0] - now).days} days left at least, of {first[1]}")


def _shown(kind: str, servers: Sequence[Server], access: Access, now: datetime, renew: str) -> Iterator[Item]:
    """Those of servers that answer; that one does not is told where its health is."""
    with ThreadPoolExecutor(max(len(servers), 1)) as pool:
        found = [
            (server, each)
            for server, each in zip(servers, pool.map(lambda s: _handshake(s, access), servers), strict=True)
        ]
    shown = [(server, each) for server, each in found if each]
    wrong = []
    for server, each in shown:
        told = ailment(each, now) or _stranger(each, server.ca_pem)
        if told:
            wrong.append(Item("certificates", f"{kind}: {server.name}", False, told, renew))
    yield from wrong
    if shown and not wrong:
        end, name = min((each.not_valid_after_utc, server.name) for server, each in shown)
        yield Item("certificates", kind, True, f"{(end - now).days} days left at least, of {name}; {len(shown)} seen")


def _handshake(server: Server, access: Access) -> x509.Certificate | None:
    try:
        return shown_by(server.address, server.port, access.etcd_certificate, access.etcd_key)
    except OSError:
        return None


def ailment(certificate: x509.Certificate, now: datetime) -> str:
    """Why a certificate is to be seen to, "" where it is not."""
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now >= ends:
        return f"expired on {ends:%Y-%m-%d %H:%M} UTC"
    if now < begins:
        return f"valid from {begins:%Y-%m-%d %H:%M} UTC only: is this machine's clock right?"
    return f"{(ends - now).days} days left, until {ends:%Y-%m-%d}" if ends - now < LEFT * (ends - begins) else ""


def _stranger(certificate: x509.Certificate, ca_pem: str) -> str:
    """While an authority changes for another, the stack knows two."""
    for authority in x509.load_pem_x509_certificates(ca_pem.encode()):
        try:
            certificate.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return ""
    return f"not of the CA that the stack knows, but of {certificate.issuer.rfc4514_string()}"
