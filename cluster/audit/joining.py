"""Whether a host that joins can become another than itself: who approves certificates of nodes, and which tokens there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from cluster.audit.evidence import Evidence
from cluster.audit.lists import Object, by_lists
from cluster.audit.model import Finding
from cluster.audit.rights import gives, granted_by, key_of
from cluster.files import JOIN_TOKEN_FOR

_APPROVED = "certificatesigningrequests/nodeclient"
"""Whoever may create it has the controller manager approve a client certificate of any node ("Certificate Signing Requests",
approval by the controller manager)."""
_EVERYBODY = ("system:authenticated", "system:unauthenticated", "system:anonymous")
_LIFE_S = 3600
_SLACK_S = 300
"""The controller manager deletes what has expired, and the operator's clock may differ."""


@by_lists("cluster roles", "cluster role bindings")
def no_token_approves_itself(
    evidence: Evidence, roles: Iterable[Object], bindings: Iterable[Object]
) -> Iterator[Finding]:
    rules = {key_of(role): role.get("rules") or () for role in roles}
    for binding in bindings:
        if gives(rules.get(granted_by(binding), ()), ("create",), (_APPROVED,)):
            for subject in binding.get("subjects") or ():
                if _may_bear_a_token(subject["name"]):
                    way_out = f"kubectl delete clusterrolebinding {binding['metadata']['name']}"
                    yield Finding(
                        f"{subject['kind']} {subject['name']}", False, f"may become any node; run '{way_out}'"
                    )


@by_lists("bootstrap tokens")
def tokens_name_one_node(evidence: Evidence, secrets: Iterable[Object]) -> Iterator[Finding]:
    """By their labels and age: an audit reads no token."""
    for secret in secrets:
        if wrong := _wrong(secret["metadata"], evidence.now):
            name = secret["metadata"]["name"]
            yield Finding(
                f"Secret kube-system/{name}", False, f"{wrong}; run 'kubectl -n kube-system delete secret {name}'"
            )


def _wrong(metadata: Object, now: float) -> str:
    made = datetime.fromisoformat(metadata["creationTimestamp"]).timestamp()
    if now - made > _LIFE_S + _SLACK_S:
        return f"is {(now - made) / 3600:.1f} hours old, and tokens to join by end after one"
    if not (metadata.get("labels") or {}).get(JOIN_TOKEN_FOR):
        return "says nothing of the node that it is for: it was made by hand, or by a release whose tokens were for any"
    return ""


def _may_bear_a_token(name: str) -> bool:
    return name.startswith("system:bootstrap") or name in _EVERYBODY
