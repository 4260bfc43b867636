"""Whether a joining host can impersonate another: who approves certificates of nodes, and which tokens exist."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from cluster.audit.evidence import Evidence
from cluster.audit.lists import Object, by_lists
from cluster.audit.model import Finding
from cluster.audit.rights import gives, granted_by, key_of
from cluster.files import JOIN_TOKEN_FOR

_APPROVED = "certificatesigningrequests/nodeclient"
"""With the right to create it, the controller manager approves a client certificate for any node ("Certificate Signing
Requests", approval by the controller manager)."""
_EVERYBODY = ("system:authenticated", "system:unauthenticated", "system:anonymous")
_LIFE_S = 3600
_SLACK_S = 300
"""For the controller manager to delete expired tokens, and for a difference of the operator's clock."""


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
                        f"{subject['kind']} {subject['name']}", False, f"can impersonate any node; run '{way_out}'"
                    )


@by_lists("bootstrap tokens")
def tokens_name_one_node(evidence: Evidence, secrets: Iterable[Object]) -> Iterator[Finding]:
    """Check labels and age: an audit doesn't read tokens."""
    for secret in secrets:
        if wrong := _wrong(secret["metadata"], evidence.now):
            name = secret["metadata"]["name"]
            yield Finding(
                f"Secret kube-system/{name}", False, f"{wrong}; run 'kubectl -n kube-system delete secret {name}'"
            )


def _wrong(metadata: Object, now: float) -> str:
    created = datetime.fromisoformat(metadata["creationTimestamp"]).timestamp()
    if now - created > _LIFE_S + _SLACK_S:
        return f"is {(now - created) / 3600:.1f} hours old, but join tokens expire after one"
    if not (metadata.get("labels") or {}).get(JOIN_TOKEN_FOR):
        return (
            "doesn't say which node it is for: it was created by hand, or by a release whose tokens were for any node"
        )
    return ""


def _may_bear_a_token(name: str) -> bool:
    return name.startswith("system:bootstrap") or name in _EVERYBODY
