"""Plans the changes that reconcile a cluster with a directory, each with its reason. No I/O, no clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from kubernetes.utils.quantity import parse_quantity

from clients.objects import Key, as_json, key_of, named
from cluster.tenancy import Leavers, Tenancy
from controllers.tenancy.directory import Roster, Tenant, TenantKind
from controllers.tenancy.directory.names import assign
from controllers.tenancy.sync.compare import differences
from controllers.tenancy.sync.objects import ALLOWANCE, ANY, MANAGER, Object, cluster_role, desired_objects, quota
from controllers.tenancy.sync.state import Space, TenancyState, users
from controllers.tenancy.sync.workloads import started, stopped


class ChangeVerb(StrEnum):
    """How a change is made."""

    APPLY = "apply"
    """By server-side apply: fields of other managers stay."""
    REBIND = "rebind"
    """Delete and apply a binding that somebody re-created with another role: the role of a binding can't be changed."""
    PATCH = "patch"
    """Patch a workload's number of replicas, or whether it is suspended."""


class Story(StrEnum):
    """What happened to a person or a team."""

    JOINED = "joined"
    LEFT = "left"
    RETURNED = "returned"
    KEPT = "kept"


@dataclass(frozen=True)
class TenancyChange:
    """One request. body: the object, or the patch. tenant: None for cluster-wide objects."""

    verb: ChangeVerb
    key: Key
    body: Object
    reason: str
    tenant: Tenant | None = None

    @property
    def what(self) -> str:
        """``ResourceQuota team-robotics/menagerie``."""
        return named(self.key)

    def to_json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        return {"verb": self.verb, **as_json(self.key), "tenant": str(self.tenant or ""), "reason": self.reason}


@dataclass(frozen=True)
class TenancyPlan:
    """A plan.

    changes: in the order in which they are made. stories: who joined, left or returned, with their namespaces.
    conflicts: namespaces that can't be reconciled until somebody decides. notices: for operators.
    """

    changes: tuple[TenancyChange, ...] = ()
    stories: tuple[tuple[Story, Tenant, str], ...] = ()
    conflicts: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Home:
    """A tenant's namespace, what happened to the tenant, and the day since which it is frozen, "" if it isn't."""

    name: str
    tenant: Tenant
    story: Story
    frozen: str = ""


def plan(roster: Roster, state: TenancyState, settings: Tenancy, today: str) -> TenancyPlan:
    """Plan the changes. today: the day that is written on namespaces frozen now.

    Errors: raises ValueError if names of the roster clash; see `assign`.
    """
    names, troubles = assign(roster.tenants(), settings)
    if troubles:
        raise ValueError("; ".join(each.message for each in troubles))
    here, conflicts = _here(names, state)
    homes = [*here, *_gone(names, state, today)]
    changes = [*_shared(state)]
    for home in homes:
        try:
            changes += [*_changes(home, roster, state, settings)]
        except Exception as error:  # noqa: BLE001
            # Anybody who may write in a namespace may put unreadable text there. It must not block the other namespaces.
            conflicts.append(
                f"namespace {home.name} is left unchanged, because something in it can't be read: {str(error)[:200]!r}"
            )
    stories = tuple((home.story, home.tenant, home.name) for home in homes if home.story is not Story.KEPT)
    return TenancyPlan(tuple(changes), stories, tuple(conflicts), tuple(_notices(roster, state, settings, homes)))


def leaving(roster: Roster, spaces: Mapping[str, Space], settings: Tenancy) -> tuple[Space, ...]:
    """Return the namespaces in use that would be frozen: their tenant is not in the directory, or would get another namespace."""
    names, _ = assign(roster.tenants(), settings)
    return tuple(
        each
        for each in spaces.values()
        if each.tenant and not each.frozen and not each.ending and names.get(each.tenant) != each.name
    )


def looked_into(roster: Roster, spaces: Mapping[str, Space], settings: Tenancy) -> tuple[str, ...]:
    """Return the namespaces whose workloads a plan needs: those to stop, and those to start again."""
    names, _ = assign(roster.tenants(), settings)
    chosen = []
    for each in spaces.values():
        if each.tenant is None or each.ending:
            continue
        back = bool(each.frozen) and names.get(each.tenant) == each.name
        gone = names.get(each.tenant) != each.name
        if back or (gone and settings.leavers is Leavers.STOP and each.workload != Leavers.STOP):
            chosen.append(each.name)
    return tuple(sorted(chosen))


def _here(names: Mapping[Tenant, str], state: TenancyState) -> tuple[list[_Home], list[str]]:
    """Return (homes of the tenants in the directory, namespaces that they can't have)."""
    homes, conflicts = [], []
    for tenant, name in names.items():
        space = state.spaces.get(name)
        if space is None:
            homes.append(_Home(name, tenant, Story.JOINED))
        elif space.ending:
            conflicts.append(
                f"namespace {name} of {tenant} is being deleted; when it is gone, the next run creates it again"
            )
        elif space.tenant is None:
            conflicts.append(
                f"namespace {name} exists and is not managed by tenancy; to give it to {tenant}: "
                f"kubectl label namespace {name} app.kubernetes.io/managed-by={MANAGER}"
            )
        elif space.tenant != tenant:
            # Taking over a former person's namespace means taking over its contents.
            conflicts.append(
                f"namespace {name} belongs to {space.tenant}, and {tenant} would take it over with all its contents; "
                f"if they are the same: kubectl annotate --overwrite namespace {name} menagerie.dev/name={tenant.name}"
            )
        else:
            homes.append(_Home(name, tenant, Story.RETURNED if space.frozen else Story.KEPT))
    return homes, conflicts


def _gone(names: Mapping[Tenant, str], state: TenancyState, today: str) -> Iterator[_Home]:
    for name, space in sorted(state.spaces.items()):
        if space.tenant and not space.ending and names.get(space.tenant) != name:
            story = Story.KEPT if space.frozen else Story.LEFT
            yield _Home(name, space.tenant, story, space.frozen or today)


def _shared(state: TenancyState) -> Iterator[TenancyChange]:
    role = cluster_role()
    there = state.objects.get(key_of(role))
    if reasons := differences(role, there) if there else ["it is missing; it holds the rights of team owners"]:
        yield TenancyChange(ChangeVerb.APPLY, key_of(role), role, "; ".join(reasons))


def _changes(home: _Home, roster: Roster, state: TenancyState, settings: Tenancy) -> Iterator[TenancyChange]:
    """Yield the changes in one namespace.

    The namespace itself comes first if it must be created, else last: its marks say that the rest is done.
    """
    kinds = [kind for kind in state.kinds if ANY not in kind]
    namespace, *inside = desired_objects(home.tenant, home.name, roster, settings, frozen=home.frozen, kinds=kinds)
    own = list(_applied(home, [namespace], state))
    if home.frozen:
        inside.reverse()  # withdraw rights first, even if the API refuses the rest
    if home.story is Story.JOINED:
        yield from own
    yield from _applied(home, inside, state)
    for workload in state.workloads.get(home.name, ()):
        stop = bool(home.frozen) and settings.leavers is Leavers.STOP
        patch = stopped(workload) if stop else started(workload) if not home.frozen else None
        if patch:
            yield TenancyChange(ChangeVerb.PATCH, key_of(workload), patch, _reason(home, []), home.tenant)
    if home.story is not Story.JOINED:
        yield from own


def _applied(home: _Home, things: list[Object], state: TenancyState) -> Iterator[TenancyChange]:
    for thing in things:
        key = key_of(thing)
        there = state.objects.get(key)
        reasons = differences(thing, there) if there else [f"{key[0]} {key[2]} is missing"]
        if reasons:
            other_role = there and thing["kind"] == "RoleBinding" and there["roleRef"] != thing["roleRef"]
            yield TenancyChange(
                ChangeVerb.REBIND if other_role else ChangeVerb.APPLY, key, thing, _reason(home, reasons), home.tenant
            )


def _reason(home: _Home, reasons: list[str]) -> str:
    reason = {
        Story.JOINED: f"{home.tenant} joined",
        Story.LEFT: f"{home.tenant} is no longer in the directory",
        Story.RETURNED: f"{home.tenant} is back",
        Story.KEPT: "; ".join(reasons) or f"{home.tenant} has been frozen since {home.frozen}",
    }
    return reason[home.story]


def _notices(roster: Roster, state: TenancyState, settings: Tenancy, homes: list[_Home]) -> Iterator[str]:
    yield from roster.notices
    yield from _uncounted(state)
    for home in homes:
        yield from () if home.frozen else _full(home, state, settings)
    for team in sorted(settings.teams.only.keys() - roster.teams.keys()):
        yield f"tenancy.teams.only has {team}, which is not a team of the directory"
    gone = {home.tenant.name for home in homes if home.frozen and home.tenant.kind is TenantKind.PERSON} | {
        id for id in roster.people if id not in roster.active
    }
    bound = users(state.bindings)
    for id in sorted(gone):
        for place in bound.get(f"{settings.user_prefix}{id}", ()):
            yield f"{id} has left, but a binding that tenancy does not manage still names them: kubectl edit {place}"


def _uncounted(state: TenancyState) -> Iterator[str]:
    for kind in sorted(kind for kind in state.kinds if ANY in kind):
        yield f"the ClusterRole edit lets people create every kind of {kind}, which no quota counts: list the kinds there instead"


def _full(home: _Home, state: TenancyState, settings: Tenancy) -> Iterator[str]:
    """Yield a notice for each quota that the namespace exceeds: existing objects stay, and no new ones can be created."""
    there = state.objects.get(("ResourceQuota", home.name, ALLOWANCE), {})
    used = (there.get("status") or {}).get("used") or {}
    key = "people" if home.tenant.kind is TenantKind.PERSON else f"teams.only.{home.tenant.name}"
    for name, most in quota(home.tenant, settings).items():
        if name in used and (has := _number(used[name])) is not None and has > parse_quantity(most):
            yield (
                f"namespace {home.name} uses {has:,} of {name}, and its quota is {most}: existing objects stay, new ones are refused; "
                f"raise tenancy.{key}.quota to allow more"
            )


def _number(quantity: object) -> Decimal | None:
    try:
        number: Decimal = parse_quantity(quantity)
        return number
    except ValueError:
        return None
