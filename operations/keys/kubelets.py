"""Whether every kubelet follows the authorities of Kubernetes and of serving certificates, by what its Node says
(`menagerie_host.announcing`).

Workers reach no etcd, so they report on their own Node, which they may change and no other worker may.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from clients.access import Access
from cluster import shared
from cluster.errors import FailedError
from cluster.key_rings import RingName
from cluster.pools import POOL_LABEL

ANNOTATION = "menagerie.dev/authorities"
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""Of a whole Node the most is its images, and thousands are asked for every few seconds."""
_LISTS: Mapping[RingName, tuple[str, ...]] = {"kubernetes-ca": ("api", "clients"), "kubelet-serving-ca": ("servers",)}
RINGS = frozenset(_LISTS)
"""Those that kubelets have a part in."""
_SHOWN = 10


def behind(cluster: str, late: Iterable[Late], again: str) -> FailedError:
    """Nodes that wait for an operator to take them along."""
    return FailedError(
        f"{told(late)}. Everything works as it is. Workers at sites follow by ./menagerie configure {cluster}, those in "
        "the region by themselves within ten minutes; a Node whose machine is gone: kubectl delete node NAME. "
        f"Then: {again}",
        code="kubelets-behind",
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
    """What must be so of a kubelet, by digests. lists: of what its Node says, the lists that must hold `known`. alone: and nothing
    else. issuers: which of its certificates must be of which authority."""

    lists: tuple[str, ...]
    known: frozenset[str]
    alone: bool = False
    issuers: Mapping[str, str] = field(default_factory=dict)

    @property
    def trusts(self) -> bool:
        """Whether it is about whom the kubelet trusts, not about who signs for it alone."""
        return "api" in self.lists

    @classmethod
    def to_turn(cls, ring: RingName, authorities: Mapping[str, str]) -> Needs:
        """Before another authority of a ring signs: it knows all. authorities: ring -> PEM, the one that signs first."""
        return cls(_LISTS[ring], frozenset(_digests(authorities[ring])))

    @classmethod
    def to_drop(cls, ring: RingName, authorities: Mapping[str, str]) -> Needs:
        """Before only the one that signs is left: it knows that one, and has certificates of those that sign."""
        return cls(_LISTS[ring], frozenset(_digests(authorities[ring])[:1]), issuers=_issuers(ring, authorities))

    @classmethod
    def as_now(cls, ring: RingName, authorities: Mapping[str, str]) -> Needs:
        """It has followed as far as the cluster is."""
        return cls(
            _LISTS[ring], frozenset(_digests(authorities[ring])), alone=True, issuers=_issuers(ring, authorities)
        )


def _issuers(ring: RingName, authorities: Mapping[str, str]) -> dict[str, str]:
    """Of a rotation of `kubernetes-ca` also the serving certificate, which may be of it while the other ring is carried over."""
    serving = {"serving": _digests(authorities["kubelet-serving-ca"])[0]}
    return serving | ({"client": _digests(authorities[ring])[0]} if ring == "kubernetes-ca" else {})


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
        shared.check("what kubelets say of authorities", found.get(shared.KEY))
        if "servers" in needs.lists and "servers" not in found and "serving" in found:
            # An older release's worker would make a certificate of another authority than kubernetes-ca anew for ever.
            return "kubelets of an older release, which say nothing of who may sign their serving certificates"
        held = [frozenset(found[name]) for name in needs.lists]
        issued = {name: str(found[name]) for name in needs.issuers}
    except shared.NewerDataError:
        return "kubelets of a newer Menagerie, of which this checkout knows too little: use a newer one"
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"kubelets whose annotation {ANNOTATION} can't be read"
    if not all(needs.known <= each for each in held):
        return (
            "kubelets that do not trust all that they must"
            if needs.trusts
            else "kubelets that do not know who is to sign"
        )
    if needs.alone and any(each != needs.known for each in held):
        return (
            "kubelets that trust more than the cluster's authorities"
            if needs.trusts
            else "kubelets that know a former signer"
        )
    if issued != needs.issuers:
        return "kubelets with certificates of another authority than the one that signs now, or without"
    return ""


def _named(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
