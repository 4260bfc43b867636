"""Checks that every kubelet uses the current authorities of Kubernetes and of serving certificates, by an annotation on its
Node (`menagerie_host.announcing`).

Workers can't reach the etcds, so they report on their own Node, which no other worker may change.
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
"""Only metadata: most of a Node object is its list of images, and thousands of Nodes are read every few seconds."""
_LISTS: Mapping[RingName, tuple[str, ...]] = {"kubernetes-ca": ("api", "clients"), "kubelet-serving-ca": ("servers",)}
RINGS = frozenset(_LISTS)
"""Key rings that involve kubelets."""
_SHOWN = 10


def behind(cluster: str, late: Iterable[LaggingNode], again: str) -> FailedError:
    """Return the error for nodes that need an operator to follow."""
    return FailedError(
        f"{describe(late)}. The cluster keeps working. Update workers at sites: ./menagerie configure {cluster}. Workers in "
        "the region follow automatically within ten minutes. If a Node's machine is gone: kubectl delete node NAME. "
        f"Then run: {again}",
        code="kubelets-behind",
    )


@dataclass(frozen=True)
class KubeletReport:
    """A Node's report. text: the annotation, "" if there is none."""

    node: str
    in_region: bool
    text: str


@dataclass(frozen=True)
class LaggingNode:
    """A node that does not follow, and why."""

    node: str
    in_region: bool
    why: str


def kubelet_reports(access: Access) -> tuple[KubeletReport, ...]:
    """Return the report of every Node, whether its machine is alive or not. Raises urllib3's HTTPError."""
    (text,) = access.ask(["/api/v1/nodes"], accept=_METADATA)
    metadata = (item["metadata"] for item in json.loads(text)["items"])
    return tuple(
        KubeletReport(
            item["name"], POOL_LABEL in item.get("labels", {}), item.get("annotations", {}).get(ANNOTATION, "")
        )
        for item in metadata
    )


@dataclass(frozen=True)
class Needs:
    """Requirements for a kubelet's report; authorities are digests. lists: the lists in the report that must contain `known`.
    alone: and nothing else. issuers: certificate -> the authority that must have issued it."""

    lists: tuple[str, ...]
    known: frozenset[str]
    alone: bool = False
    issuers: Mapping[str, str] = field(default_factory=dict)

    @property
    def trusts(self) -> bool:
        """Whether this concerns the authorities that the kubelet trusts, not only those that sign for it."""
        return "api" in self.lists

    @classmethod
    def to_turn(cls, ring: RingName, authorities: Mapping[str, str]) -> Needs:
        """Return what must hold before another authority of a ring signs: all are known. authorities: ring -> PEM,
        signer first."""
        return cls(_LISTS[ring], frozenset(_digests(authorities[ring])))

    @classmethod
    def to_drop(cls, ring: RingName, authorities: Mapping[str, str]) -> Needs:
        """Return what must hold before only the signer is left: it is known, and the certificates are issued by
        current signers."""
        return cls(_LISTS[ring], frozenset(_digests(authorities[ring])[:1]), issuers=_issuers(ring, authorities))

    @classmethod
    def as_now(cls, ring: RingName, authorities: Mapping[str, str]) -> Needs:
        """Return what holds when a kubelet has followed to the cluster's current state."""
        return cls(
            _LISTS[ring], frozenset(_digests(authorities[ring])), alone=True, issuers=_issuers(ring, authorities)
        )


def _issuers(ring: RingName, authorities: Mapping[str, str]) -> dict[str, str]:
    """Return the issuers to check. For `kubernetes-ca` this includes the serving certificate: `kubernetes-ca` may have issued it
    while the other ring is carried over."""
    serving = {"serving": _digests(authorities["kubelet-serving-ca"])[0]}
    return serving | ({"client": _digests(authorities[ring])[0]} if ring == "kubernetes-ca" else {})


def late(nodes: Iterable[KubeletReport], needs: Needs) -> tuple[LaggingNode, ...]:
    """Return the nodes that do not meet the requirements, or whose state is unknown."""
    reasons = ((node, _why(node.text, needs)) for node in nodes)
    return tuple(LaggingNode(node.node, node.in_region, why) for node, why in reasons if why)


def describe(nodes: Iterable[LaggingNode]) -> str:
    """Return which nodes do not follow, grouped by reason; "" if all do."""
    by_reason: dict[str, list[str]] = {}
    for node in nodes:
        by_reason.setdefault(node.why, []).append(node.node)
    return "; ".join(f"{why}: {_named(sorted(names))}" for why, names in sorted(by_reason.items()))


def _digests(authorities: str) -> list[str]:
    return [
        certificate.fingerprint(SHA256()).hex() for certificate in x509.load_pem_x509_certificates(authorities.encode())
    ]


def _why(text: str, needs: Needs) -> str:
    if not text:
        return "kubelets that do not report their authorities"
    try:
        report = json.loads(text)
        shared.check("the kubelets' report on authorities", report.get(shared.KEY))
        if "servers" in needs.lists and "servers" not in report and "serving" in report:
            # A worker of an older release would renew a serving certificate from any authority but kubernetes-ca
            # again and again.
            return "kubelets of an older release, which do not report the signers of their serving certificates"
        known_lists = [frozenset(report[name]) for name in needs.lists]
        issued = {name: str(report[name]) for name in needs.issuers}
    except shared.NewerDataError:
        return "kubelets of a newer Menagerie, which this checkout does not understand: use a newer checkout"
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"kubelets whose annotation {ANNOTATION} can't be read"
    if not all(needs.known <= digests for digests in known_lists):
        return (
            "kubelets that do not trust all required authorities"
            if needs.trusts
            else "kubelets that do not know the next signer"
        )
    if needs.alone and any(digests != needs.known for digests in known_lists):
        return (
            "kubelets that trust more than the cluster's authorities"
            if needs.trusts
            else "kubelets that know a former signer"
        )
    if issued != needs.issuers:
        return "kubelets without certificates of the current signer"
    return ""


def _named(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
