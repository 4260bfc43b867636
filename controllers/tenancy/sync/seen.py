"""What the cluster has of ours, and what stands in our way. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from clients.kube import Key, key_of
from cluster.tenancy import TEAM_LABEL, TENANT_LABEL, Tenancy
from controllers.tenancy.directory import Kind, Tenant
from controllers.tenancy.sync.compare import is_ours
from controllers.tenancy.sync.objects import FROZEN_LABEL, NAME, PERSON_LABEL, WORKLOAD, Object


@dataclass(frozen=True)
class Space:
    """A namespace. tenant: None where it was never ours. frozen: the day, "" where it isn't."""

    name: str
    tenant: Tenant | None = None
    frozen: str = ""
    workload: str = ""
    ending: bool = False


@dataclass(frozen=True)
class Sizes:
    """How much a directory held, and since when (UTC, ISO 8601)."""

    people: int
    teams: int
    memberships: int
    since: str = field(default="", compare=False)


@dataclass(frozen=True)
class Seen:
    """One look at the cluster.

    spaces: every namespace. objects: those that ours are compared with. bindings: of others, with users in them.
    workloads: namespace -> Deployments and the like, of those that were looked into. last: of the last sync.
    kinds: what people may make beside what has a default, as quotas count it.
    """

    spaces: Mapping[str, Space] = field(default_factory=dict)
    objects: Mapping[Key, Object] = field(default_factory=dict)
    bindings: tuple[Object, ...] = ()
    workloads: Mapping[str, tuple[Object, ...]] = field(default_factory=dict)
    last: Sizes | None = None
    kinds: tuple[str, ...] = ()

    def active(self) -> frozenset[Tenant]:
        """Whoever had a namespace and was not frozen."""
        return frozenset(each.tenant for each in self.spaces.values() if each.tenant and not each.frozen)


def space_of(namespace: Object, settings: Tenancy) -> Space:
    """A namespace as the API gives it."""
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
    """Whose it is, also where somebody took marks away from it."""
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    kind = labels.get(TENANT_LABEL)
    if kind not in set(Kind):
        of_team = TEAM_LABEL in labels or metadata["name"].startswith(settings.teams.prefix or "\0")
        kind = Kind.TEAM if of_team and PERSON_LABEL not in labels else Kind.PERSON
    prefix = settings.people.prefix if kind == Kind.PERSON else settings.teams.prefix
    return Tenant(Kind(kind), annotations.get(NAME) or metadata["name"].removeprefix(prefix))


def users(bindings: Iterable[Object]) -> Mapping[str, tuple[str, ...]]:
    """User -> the bindings that name them, as kubectl does."""
    found: dict[str, list[str]] = {}
    for each in bindings:
        kind, inside, name = key_of(each)
        for subject in each.get("subjects") or ():
            if subject.get("kind") == "User":
                found.setdefault(subject["name"], []).append(
                    f"{kind.lower()} {name}" + (f" -n {inside}" if inside else "")
                )
    return {user: tuple(sorted(places)) for user, places in found.items()}
