"""A model of an API server that applies our changes, as far as a plan can see: for properties over many rosters.

Server-side apply follows its documentation for one manager among others: fields of the last apply that the new one lacks are
removed, and those of others stay. tests/tenancy/test_real_api.py tests the same against a real API server.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from clients.objects import Key, key_of
from cluster.tenancy import Tenancy
from controllers.tenancy.directory import Roster
from controllers.tenancy.sync.guard import sizes
from controllers.tenancy.sync.objects import ALLOWANCE, EDITORS, MANAGER, OWNER_ROLE, OWNERS
from controllers.tenancy.sync.plan import ChangeVerb, TenancyChange, TenancyPlan, looked_into, plan
from controllers.tenancy.sync.state import TenancyState, space_of
from controllers.tenancy.sync.workloads import SCALED, SUSPENDED

OURS = {EDITORS, OWNERS, ALLOWANCE, OWNER_ROLE}


class Memory:
    """A cluster in memory. objects: by key. deleted: keys of everything ever deleted."""

    def __init__(self) -> None:
        self.objects: dict[Key, dict[str, Any]] = {}
        self.deleted: list[Key] = []
        self.last = None

    def put(self, thing: Mapping[str, Any]) -> None:
        """Add an object of somebody else."""
        self.objects[key_of(thing)] = copy.deepcopy(dict(thing))

    def make(self, changes: Iterable[TenancyChange]) -> None:
        for change in changes:
            if change.verb is ChangeVerb.PATCH:
                _merge(self.objects[change.key], change.body)
                continue
            if change.verb is ChangeVerb.REBIND:
                self.deleted.append(change.key)
                del self.objects[change.key]
            _, inside, _ = change.key
            assert not inside or ("Namespace", "", inside) in self.objects, f"{change.what} before its namespace"
            self._apply(change.body)

    def _apply(self, body: Mapping[str, Any]) -> None:
        existing = self.objects.setdefault(key_of(body), {"metadata": {}})
        if existing.get("roleRef") and existing["roleRef"] != body["roleRef"]:
            raise AssertionError("a binding's role can't be changed")
        entries = existing["metadata"].get("managedFields", ())
        before = next((each["fieldsV1"] for each in entries if each["manager"] == MANAGER), {})
        now = _fields(body)
        _drop(existing, before, now)
        _merge(existing, copy.deepcopy(dict(body)))
        own = {"manager": MANAGER, "operation": "Apply", "fieldsV1": now}
        existing["metadata"]["managedFields"] = [own]

    def state(self, roster: Roster, settings: Tenancy) -> TenancyState:
        things = self.objects.values()
        spaces = {each["metadata"]["name"]: space_of(each, settings) for each in things if each["kind"] == "Namespace"}
        inside = {
            name: tuple(
                each
                for each in things
                if each["metadata"].get("namespace") == name and each["kind"] in (*SCALED, *SUSPENDED)
            )
            for name in looked_into(roster, spaces, settings)
        }
        ours = {key: each for key, each in self.objects.items() if key[0] == "Namespace" or key[2] in OURS}
        others = tuple(each for key, each in self.objects.items() if key[0] == "RoleBinding" and key[2] not in OURS)
        return TenancyState(copy.deepcopy(spaces), copy.deepcopy(ours), others, copy.deepcopy(inside), self.last)

    def planned(self, roster: Roster, settings: Tenancy, today: str = "2026-11-22") -> TenancyPlan:
        return plan(roster, self.state(roster, settings), settings, today)

    def sync(self, roster: Roster, settings: Tenancy, today: str = "2026-11-22") -> TenancyPlan:
        planned_ = self.planned(roster, settings, today)
        self.make(planned_.changes)
        self.last = sizes(roster)
        return planned_

    def subjects(self, namespace: str, name: str = EDITORS) -> list[str]:
        binding = self.objects["RoleBinding", namespace, name]
        return [each["name"] for each in binding["subjects"]]


def _fields(value: Mapping[str, Any]) -> dict[str, Any]:
    skipped = ("apiVersion", "kind", "name", "namespace")
    return {
        f"f:{key}": _fields(inner) if isinstance(inner, Mapping) and key != "roleRef" else {}
        for key, inner in value.items()
        if not (key in skipped and not isinstance(inner, Mapping))
    }


def _drop(there: dict[str, Any], before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for key, inner in before.items():
        name = key[2:]
        if key not in now:
            there.pop(name, None)
        elif inner and isinstance(there.get(name), dict):
            _drop(there[name], inner, now[key])


def _merge(there: dict[str, Any], patch: Mapping[str, Any]) -> None:
    for key, value in patch.items():
        if value is None:
            there.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(there.get(key), dict) and key != "roleRef":
            _merge(there[key], value)
        else:
            there[key] = copy.deepcopy(value)
