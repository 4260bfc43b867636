"""The cluster as a sync sees it: our objects, and what conflicts with them. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from clients.objects import Key, key_of
from cluster.tenancy import TEAM_LABEL, TENANT_LABEL, Tenancy
from controllers.tenancy.directory import Tenant, TenantKind
from controllers.tenancy.sync.compare import is_ours
from controllers.tenancy.sync.objects import FROZEN_LABEL, NAME, PERSON_LABEL, WORKLOAD, Object


@dataclass(frozen=True)
class Space:
    """A namespace. tenant: None if it was never ours. frozen: since which day, "" if it isn't. ending: it is being deleted."""

    name: str
    tenant: Tenant | None = None
    frozen: str = ""
    workload: str = ""
    ending: bool = False


@dataclass(frozen=True)
class Sizes:
    """The size of a directory, and since when (UTC, ISO 8601)."""

    people: int
    teams: int
    memberships: int
    since: str = field(default="", compare=False)


@dataclass(frozen=True)
class TenancyState:
    """One look at the cluster.

    spaces: every namespace. objects: those that are compared with the desired ones. bindings: not ours; they may name users.
    workloads: namespace -> Deployments and the like, for the namespaces that were looked into. last: sizes at the last sync.
    kinds: kinds of objects that people may create, besides those with a default quota, as quotas count them.
    """

    spaces: Mapping[str, Space] = field(default_factory=dict)
    objects: Mapping[Key, Object] = field(default_factory=dict)
    bindings: tuple[Object, ...] = ()
    workloads: Mapping[str, tuple[Object, ...]] = field(default_factory=dict)
    last: Sizes | None = None
    kinds: tuple[str, ...] = ()

    def active(self) -> frozenset[Tenant]:
        """Return the tenants with a namespace that is not frozen."""
        return frozenset(each.tenant for each in self.spaces.values() if each.tenant and not each.frozen)


def space_of(namespace: Object, settings: Tenancy) -> Space:
    """Read a namespace as the API returns it."""
    metadata = namespace["metadata"]
    name, annotations = metadata["name"], metadata.get("annotations") or {}
    return Space(
        name,
        _tenant(metadata, settings) if is_ours(namespace) else None,
        annotations.get(FROZEN_LABEL, ""),
        annotations.get(WORKLOAD, ""),
        "deletionTimestamp" in metadata,
    )


def _tenant(metadata: Mapping[str, Any], settings: Tenancy) -> Tenant:
    """Return whose namespace it is, even if somebody removed some of its labels or annotations."""
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    kind = labels.get(TENANT_LABEL)
    if kind not in set(TenantKind):
        of_team = TEAM_LABEL in labels or metadata["name"].startswith(settings.teams.prefix or "\0")
        kind = TenantKind.TEAM if of_team and PERSON_LABEL not in labels else TenantKind.PERSON
    prefix = settings.people.prefix if kind == TenantKind.PERSON else settings.teams.prefix
    return Tenant(TenantKind(kind), annotations.get(NAME) or metadata["name"].removeprefix(prefix))


def users(bindings: Iterable[Object]) -> Mapping[str, tuple[str, ...]]:
    """Return user -> the bindings that name them, in kubectl's words."""
    by_user: dict[str, list[str]] = {}
    for binding in bindings:
        kind, inside, name = key_of(binding)
        for subject in binding.get("subjects") or ():
            if subject.get("kind") == "User":
                by_user.setdefault(subject["name"], []).append(
                    f"{kind.lower()} {name}" + (f" -n {inside}" if inside else "")
                )
    return {user: tuple(sorted(places)) for user, places in by_user.items()}
