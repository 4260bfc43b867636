"""Section 5.1 of the benchmark: who may do what, by the API's roles and bindings. One finding per subject to check."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from cluster.audit.evidence import Evidence
from cluster.audit.lists import Decision, Object, by_lists
from cluster.audit.model import Finding

MADE_BY_US = ("system:", "kubeadm:", "menagerie:")
"""Prefixes of roles and bindings that Kubernetes, kubeadm and `components/control_plane/` create."""
_BOOTSTRAPPING = "kubernetes.io/bootstrapping"
ADMIN = "cluster-admin"
_ROLES, _BINDINGS = ("cluster roles", "roles"), ("cluster role bindings", "role bindings")


def who_may(verbs: tuple[str, ...], *resources: str) -> Decision:
    """Return a decision that finds who may do one of `verbs` with one of `resources`, without Kubernetes' subjects and ours.

    API groups are ignored: the names of these resources are unique.
    """

    @by_lists(*_ROLES, *_BINDINGS)
    def decide(
        evidence: Evidence,
        cluster_roles: Iterable[Object],
        roles: Iterable[Object],
        cluster_bindings: Iterable[Object],
        bindings: Iterable[Object],
    ) -> Iterator[Finding]:
        rules = {key_of(role): role.get("rules") or () for role in chain(cluster_roles, roles)}
        for binding in chain(cluster_bindings, bindings):
            granted = rules.get(granted_by(binding), ())
            if not _ours(binding) and gives(granted, verbs, resources):
                yield from _subjects(binding)

    return decide


@by_lists(*_BINDINGS)
def cluster_admins(evidence: Evidence, *bindings: Iterable[Object]) -> Iterator[Finding]:
    for binding in chain(*bindings):
        if binding["roleRef"]["name"] == ADMIN and not _ours(binding):
            yield from _subjects(binding)


@by_lists(*_BINDINGS)
def masters(evidence: Evidence, *bindings: Iterable[Object]) -> Iterator[Finding]:
    for binding in chain(*bindings):
        if not _ours(binding):
            yield from (each for each in _subjects(binding) if each.subject == "Group system:masters")


@by_lists(*_ROLES)
def wildcards(evidence: Evidence, *roles: Iterable[Object]) -> Iterator[Finding]:
    for role in chain(*roles):
        starred = any(
            "*" in (rule.get(what) or ()) for rule in role.get("rules") or () for what in ("verbs", "resources")
        )
        if starred and not _ours(role):
            yield Finding(_named(role), False, "has * among its verbs or resources")


def default_accounts(evidence: Evidence) -> Iterator[Finding]:
    """Find default service accounts that are bound or mounted."""
    yield from _bound_default_accounts(evidence)
    yield from _used_default_accounts(evidence)


@by_lists(*_BINDINGS)
def _bound_default_accounts(evidence: Evidence, *bindings: Iterable[Object]) -> Iterator[Finding]:
    for binding in chain(*bindings):
        yield from (
            each
            for each in _subjects(binding)
            if each.subject.startswith("ServiceAccount ") and each.subject.endswith("/default")
        )


@by_lists("pods")
def _used_default_accounts(evidence: Evidence, pods: Iterable[Object]) -> Iterator[Finding]:
    used = {
        pod["metadata"]["namespace"]
        for pod in pods
        if pod["spec"].get("serviceAccountName", "default") == "default" and mounts_token(pod)
    }
    yield from (
        Finding(f"namespace {name}", False, "pods mount the token of its default account") for name in sorted(used)
    )


def mounts_token(pod: Object) -> bool:
    """Return whether a pod has a token from the API server, which is then among its volumes."""
    return any(
        "serviceAccountToken" in source
        for volume in pod["spec"].get("volumes") or ()
        for source in (volume.get("projected") or {}).get("sources") or ()
    )


def _subjects(binding: Object) -> Iterator[Finding]:
    for subject in binding.get("subjects") or ():
        space = f"{subject['namespace']}/" if subject.get("namespace") else ""
        yield Finding(f"{subject['kind']} {space}{subject['name']}", False, f"through {_named(binding)}")


def gives(rules: Iterable[Object], verbs: tuple[str, ...], resources: tuple[str, ...]) -> bool:
    """Return whether rules grant one of the verbs on one of the resources."""
    # "Using RBAC Authorization": */scale is the subresource of everything.
    names = {"*", *resources, *(f"*/{each.partition('/')[2]}" for each in resources if "/" in each)}
    return any(
        names & set(rule.get("resources") or ()) and {*verbs, "*"} & set(rule.get("verbs") or ()) for rule in rules
    )


def _ours(thing: Object) -> bool:
    metadata = thing["metadata"]
    return metadata["name"].startswith(MADE_BY_US) or _BOOTSTRAPPING in (metadata.get("labels") or {})


def granted_by(binding: Object) -> tuple[str, str]:
    """Return the `key_of` of the bound role."""
    reference = binding["roleRef"]
    space = binding["metadata"].get("namespace", "") if reference["kind"] == "Role" else ""
    return space, reference["name"]


def key_of(role: Object) -> tuple[str, str]:
    """Return namespace and name."""
    return role["metadata"].get("namespace", ""), role["metadata"]["name"]


def _named(thing: Object) -> str:
    space = thing["metadata"].get("namespace")
    kind = ("role" if "roleRef" not in thing else "binding") + (f" {space}/" if space else " ")
    return f"{kind}{thing['metadata']['name']}"
