"""The changes that bring a cluster in step with a directory, each with its reason. No I/O, no clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from clients.kube import Key, as_json, key_of, named
from cluster.tenancy import Leavers, Tenancy, amount
from controllers.tenancy.directory import Kind, Roster, Tenant
from controllers.tenancy.directory.names import assign
from controllers.tenancy.sync.compare import differences
from controllers.tenancy.sync.objects import ALLOWANCE, ANY, MANAGER, Object, cluster_role, quota, wanted
from controllers.tenancy.sync.seen import Seen, Space, users
from controllers.tenancy.sync.workloads import started, stopped


class Verb(StrEnum):
    """How a change is made."""

    APPLY = "apply"
    """By server-side apply: fields of others stay."""
    REBIND = "rebind"
    """A binding that somebody made anew to another role, which no binding can change: deleted, and applied."""
    PATCH = "patch"
    """A workload's number of replicas, or whether it is suspended."""


class Story(StrEnum):
    """What became of a person or a team."""

    JOINED = "joined"
    LEFT = "left"
    RETURNED = "returned"
    KEPT = "kept"


@dataclass(frozen=True)
class Change:
    """One request. body: the object, of a patch the patch. tenant: None of what is the whole cluster's."""

    verb: Verb
    key: Key
    body: Object
    reason: str
    tenant: Tenant | None = None

    @property
    def what(self) -> str:
        """``ResourceQuota team-robotics/menagerie``."""
        return named(self.key)

    def to_json(self) -> dict[str, Any]:
        """As `--json` gives it."""
        return {"verb": self.verb, **as_json(self.key), "tenant": str(self.tenant or ""), "reason": self.reason}


@dataclass(frozen=True)
class Plan:
    """changes: in the order in which they are made. stories: who came, went and came back, and their namespaces.

    conflicts: namespaces that can't be kept in step until somebody decides. notices: what somebody should know.
    """

    changes: tuple[Change, ...] = ()
    stories: tuple[tuple[Story, Tenant, str], ...] = ()
    conflicts: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class _One:
    """A namespace, what becomes of its tenant, and the day since which it is frozen, "" if it isn't."""

    name: str
    tenant: Tenant
    story: Story
    frozen: str = ""


def plan(roster: Roster, seen: Seen, settings: Tenancy, today: str) -> Plan:
    """today: the day that is written on what is frozen now. ValueError of a roster whose names clash: `assign` says how."""
    names, troubles = assign(roster.tenants(), settings)
    if troubles:
        raise ValueError("; ".join(each.message for each in troubles))
    here, conflicts = _here(names, seen)
    ones = [*here, *_gone(names, seen, today)]
    changes = [*_shared(seen)]
    for one in ones:
        try:
            changes += [*_changes(one, roster, seen, settings)]
        except Exception as error:  # noqa: BLE001
            # Whoever may write in a namespace has words in it; that of one keeps nobody else's from being looked after.
            conflicts.append(
                f"namespace {one.name} is left as it is, for something in it can't be read: {str(error)[:200]!r}"
            )
    stories = tuple((one.story, one.tenant, one.name) for one in ones if one.story is not Story.KEPT)
    return Plan(tuple(changes), stories, tuple(conflicts), tuple(_notices(roster, seen, settings, ones)))


def leaving(roster: Roster, spaces: Mapping[str, Space], settings: Tenancy) -> tuple[Space, ...]:
    """Namespaces in use that would be frozen: whose tenant is not in the directory, or would have another namespace."""
    names, _ = assign(roster.tenants(), settings)
    return tuple(
        each
        for each in spaces.values()
        if each.tenant and not each.frozen and not each.ending and names.get(each.tenant) != each.name
    )


def looked_into(roster: Roster, spaces: Mapping[str, Space], settings: Tenancy) -> tuple[str, ...]:
    """Namespaces whose workloads a plan needs: those to be stopped, and those to be started again."""
    names, _ = assign(roster.tenants(), settings)
    found = []
    for each in spaces.values():
        if each.tenant is None or each.ending:
            continue
        back = bool(each.frozen) and names.get(each.tenant) == each.name
        gone = names.get(each.tenant) != each.name
        if back or (gone and settings.leavers is Leavers.STOP and each.workload != Leavers.STOP):
            found.append(each.name)
    return tuple(sorted(found))


def _here(names: Mapping[Tenant, str], seen: Seen) -> tuple[list[_One], list[str]]:
    """(whoever is in the directory, namespaces of their names that they can't have)."""
    found, conflicts = [], []
    for tenant, name in names.items():
        space = seen.spaces.get(name)
        if space is None:
            found.append(_One(name, tenant, Story.JOINED))
        elif space.ending:
            conflicts.append(f"namespace {name} of {tenant} is being deleted; once it is gone, a run makes it anew")
        elif space.tenant is None:
            conflicts.append(
                f"namespace {name} is there, and not ours; to give it to {tenant}: "
                f"kubectl label namespace {name} app.kubernetes.io/managed-by={MANAGER}"
            )
        elif space.tenant != tenant:
            # Who gets a former person's namespace gets what is in it.
            conflicts.append(
                f"namespace {name} is of {space.tenant}, and {tenant} would take it over with all that is in it; "
                f"if they are the same: kubectl annotate --overwrite namespace {name} menagerie.dev/name={tenant.name}"
            )
        else:
            found.append(_One(name, tenant, Story.RETURNED if space.frozen else Story.KEPT))
    return found, conflicts


def _gone(names: Mapping[Tenant, str], seen: Seen, today: str) -> Iterator[_One]:
    for name, space in sorted(seen.spaces.items()):
        if space.tenant and not space.ending and names.get(space.tenant) != name:
            story = Story.KEPT if space.frozen else Story.LEFT
            yield _One(name, space.tenant, story, space.frozen or today)


def _shared(seen: Seen) -> Iterator[Change]:
    role = cluster_role()
    there = seen.objects.get(key_of(role))
    if reasons := differences(role, there) if there else ["what owners of teams may do"]:
        yield Change(Verb.APPLY, key_of(role), role, "; ".join(reasons))


def _changes(one: _One, roster: Roster, seen: Seen, settings: Tenancy) -> Iterator[Change]:
    """Of one namespace: itself first where it has to be made, last otherwise, for its marks say that the rest is done."""
    kinds = [kind for kind in seen.kinds if ANY not in kind]
    namespace, *inside = wanted(one.tenant, one.name, roster, settings, frozen=one.frozen, kinds=kinds)
    own = list(_applied(one, [namespace], seen))
    if one.frozen:
        inside.reverse()  # rights before the rest, whatever the API says to that
    if one.story is Story.JOINED:
        yield from own
    yield from _applied(one, inside, seen)
    for workload in seen.workloads.get(one.name, ()):
        stop = bool(one.frozen) and settings.leavers is Leavers.STOP
        patch = stopped(workload) if stop else started(workload) if not one.frozen else None
        if patch:
            yield Change(Verb.PATCH, key_of(workload), patch, _reason(one, []), one.tenant)
    if one.story is not Story.JOINED:
        yield from own


def _applied(one: _One, things: list[Object], seen: Seen) -> Iterator[Change]:
    for thing in things:
        key = key_of(thing)
        there = seen.objects.get(key)
        reasons = differences(thing, there) if there else [f"{key[0]} {key[2]} is missing"]
        if reasons:
            other_role = there and thing["kind"] == "RoleBinding" and there["roleRef"] != thing["roleRef"]
            yield Change(Verb.REBIND if other_role else Verb.APPLY, key, thing, _reason(one, reasons), one.tenant)


def _reason(one: _One, reasons: list[str]) -> str:
    told = {
        Story.JOINED: f"{one.tenant} joined",
        Story.LEFT: f"{one.tenant} is no longer in the directory",
        Story.RETURNED: f"{one.tenant} is back",
        Story.KEPT: "; ".join(reasons) or f"{one.tenant} is frozen since {one.frozen}",
    }
    return told[one.story]


def _notices(roster: Roster, seen: Seen, settings: Tenancy, ones: list[_One]) -> Iterator[str]:
    yield from roster.notices
    yield from _uncounted(seen)
    for one in ones:
        yield from () if one.frozen else _full(one, seen, settings)
    for team in sorted(settings.teams.only.keys() - roster.teams.keys()):
        yield f"tenancy.teams.only has {team}, which is no team of the directory"
    gone = {one.tenant.name for one in ones if one.frozen and one.tenant.kind is Kind.PERSON} | {
        id for id in roster.people if id not in roster.active
    }
    bound = users(seen.bindings)
    for id in sorted(gone):
        for place in bound.get(f"{settings.user_prefix}{id}", ()):
            yield f"{id} has left, and a binding that is not ours still names them: kubectl edit {place}"


def _uncounted(seen: Seen) -> Iterator[str]:
    for kind in sorted(kind for kind in seen.kinds if ANY in kind):
        yield f"the ClusterRole edit lets people make every kind of {kind}, and no quota counts these: name the kinds there"


def _full(one: _One, seen: Seen, settings: Tenancy) -> Iterator[str]:
    """Namespaces that have more than they may: nothing of it is taken away, and nothing is added."""
    there = seen.objects.get(("ResourceQuota", one.name, ALLOWANCE), {})
    used = (there.get("status") or {}).get("used") or {}
    key = "people" if one.tenant.kind is Kind.PERSON else f"teams.only.{one.tenant.name}"
    for name, most in quota(one.tenant, settings).items():
        if name in used and (has := _number(used[name])) is not None and has > amount(most):
            yield (
                f"namespace {one.name} has {has:,} of {name}, and may have {most}: what is there stays, no more can be made; "
                f"tenancy.{key}.quota raises it"
            )


def _number(quantity: object) -> Decimal | None:
    try:
        return amount(str(quantity))
    except ValueError:
        return None
