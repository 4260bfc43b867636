"""Whether every kubelet follows the authority of Kubernetes, by what its Node says (`menagerie_host.announcing`).

Workers reach no etcd, so they report on their own Node, which they may change and no other worker may.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from cluster.pools import POOL_LABEL
from operations.access import Access

ANNOTATION = "menagerie.dev/authorities"
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""Of a whole Node the most is its images, and thousands are asked for every few seconds."""
_SHOWN = 10


class KubeletsBehindError(Exception):
    """Nodes that wait for an operator to take them along."""

    def __init__(self, cluster: str, late: Iterable[Late], again: str) -> None:
        super().__init__(
            f"{told(late)}. Everything works as it is. Workers at sites follow by ./menagerie configure {cluster}, those in "
            "the region by themselves within ten minutes; a Node whose machine is gone: kubectl delete node NAME. "
            f"Then: {again}"
        )


@dataclass(frozen=True)
class Said:
    """text: what a Node says, "" for nothing."""

    node: str
    in_region: bool
    text: str


@dataclass(frozen=True)
class Late:
    """A node that does not follow, and in what."""

    node: str
    in_region: bool
    why: str


def said(access: Access) -> tuple[Said, ...]:
    """Of every Node, whether its machine lives or not. Raises urllib3's HTTPError."""
    (text,) = access.ask(["/api/v1/nodes"], accept=_METADATA)
    found = (each["metadata"] for each in json.loads(text)["items"])
    return tuple(
        Said(each["name"], POOL_LABEL in each.get("labels", {}), each.get("annotations", {}).get(ANNOTATION, ""))
        for each in found
    )


@dataclass(frozen=True)
class Needs:
    """What must be so of a kubelet, by digests. trusted: authorities that it trusts, as whose API and as whose clients.
    alone: and no others. issuer: of its certificates, "" for any."""

    trusted: frozenset[str]
    alone: bool = False
    issuer: str = ""

    @classmethod
    def to_turn(cls, authorities: str) -> Needs:
        """Before another of these (PEM, the one that signs first) signs: it trusts all."""
        return cls(frozenset(_digests(authorities)))

    @classmethod
    def to_drop(cls, authorities: str) -> Needs:
        """Before only the one that signs is left: it trusts that one, and has certificates of it."""
        first = _digests(authorities)[0]
        return cls(frozenset({first}), issuer=first)

    @classmethod
    def as_now(cls, authorities: str) -> Needs:
        """It has followed as far as the cluster is."""
        digests = _digests(authorities)
        return cls(frozenset(digests), alone=True, issuer=digests[0])


def late(nodes: Iterable[Said], needs: Needs) -> tuple[Late, ...]:
    """Nodes of which it is not so, or not known."""
    reasons = ((each, _why(each.text, needs)) for each in nodes)
    return tuple(Late(each.node, each.in_region, why) for each, why in reasons if why)


def told(nodes: Iterable[Late]) -> str:
    """Which nodes do not follow, by the reason; nothing where all do."""
    by_reason: dict[str, list[str]] = {}
    for each in nodes:
        by_reason.setdefault(each.why, []).append(each.node)
    return "; ".join(f"{why}: {_named(sorted(names))}" for why, names in sorted(by_reason.items()))


def _digests(authorities: str) -> list[str]:
    return [each.fingerprint(SHA256()).hex() for each in x509.load_pem_x509_certificates(authorities.encode())]


def _why(text: str, needs: Needs) -> str:
    if not text:
        return "kubelets that say nothing of the authorities that they work with"
    try:
        found = json.loads(text)
        trusted = [frozenset(found[name]) for name in ("api", "clients")]
        issuers = {found[name] for name in ("client", "serving")}
    except (ValueError, KeyError, TypeError):
        return f"kubelets whose annotation {ANNOTATION} can't be read"
    if not all(needs.trusted <= each for each in trusted):
        return "kubelets that do not trust all that they must"
    if needs.alone and any(each != needs.trusted for each in trusted):
        return "kubelets that trust more than the cluster's authorities"
    if needs.issuer and issuers != {needs.issuer}:
        return "kubelets with certificates of another authority than the one that signs now, or without"
    return ""


def _named(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
