"""Plans: properties over sequences of rosters, and examples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from cluster.tenancy import Allowance, DirectorySource, Leavers, PeopleAllowance, TeamsAllowance, Tenancy
from controllers.tenancy.directory import Person, PersonState, Roster, Team, Tenant, TenantKind
from controllers.tenancy.sync.compare import differences
from controllers.tenancy.sync.guard import refusals, sizes
from controllers.tenancy.sync.objects import EDITORS, OWNER_ROLE, OWNERS
from controllers.tenancy.sync.plan import ChangeVerb, Story
from controllers.tenancy.sync.state import TenancyState
from tests.tenancy.cluster_in_memory import Memory

SETTINGS = Tenancy(directory=DirectorySource(file="people.yaml"))
LIMITED = SETTINGS.model_copy(
    update={
        "people": PeopleAllowance.model_validate({"quota": {"requests.nvidia.com/gpu": 8, "pods": 20}}),
        "teams": TeamsAllowance.model_validate(
            {
                "quota": {"requests.nvidia.com/gpu": 64, "pods": 500},
                "limits": {"max": {"memory": "1Ti"}, "default": {"cpu": "1000m"}},
                "only": {"a": {"quota": {"pods": 9}, "pod_security": "restricted"}},
            }
        ),
        "leavers": Leavers.STOP,
    }
)
IDS = ("ana", "bo", "cleo", "dan", "eve")
NAMES = ("a", "b", "c")


def roster(people: str = "ana bo cleo", left: str = "", **teams: str) -> Roster:
    """Return a roster: roster("ana bo", left="bo", robotics="ana* bo"), where * marks an owner."""
    people_ = {
        id: Person(id, state=PersonState.LEFT if id in left.split() else PersonState.ACTIVE) for id in people.split()
    }
    teams_ = {
        name: Team(
            name,
            tuple(sorted(id.strip("*") for id in listed.split())),
            tuple(sorted(id.strip("*") for id in listed.split() if id.endswith("*"))),
        )
        for name, listed in teams.items()
    }
    return Roster(people_, teams_)


@st.composite
def rosters(draw: st.DrawFn) -> Roster:
    ids = draw(st.sets(st.sampled_from(IDS), min_size=1))
    people = {id: Person(id, state=draw(st.sampled_from(PersonState))) for id in sorted(ids)}
    some = st.sets(st.sampled_from(sorted(ids))).map(lambda subset: tuple(sorted(subset)))
    teams = {name: Team(name, draw(some), draw(some)) for name in sorted(draw(st.sets(st.sampled_from(NAMES))))}
    return Roster(people, teams)


# Each example is a whole history of syncs.
FEW = hypothesis_settings(max_examples=25)
HISTORIES = st.lists(st.tuples(rosters(), st.sampled_from([SETTINGS, LIMITED])), min_size=1, max_size=4)


def workloads(namespace: str) -> list[dict[str, object]]:
    def of(kind: str, name: str, **spec: object) -> dict[str, object]:
        return {"apiVersion": "x", "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec}

    return [of("Deployment", "serve", replicas=3), of("StatefulSet", "db", replicas=0), of("CronJob", "nightly")]


def populate(memory: Memory) -> None:
    for kind, _, name in list(memory.objects):
        if kind == "Namespace" and ("Deployment", name, "serve") not in memory.objects:
            for thing in workloads(name):
                memory.put(thing)


@FEW
@given(HISTORIES)
def test_after_a_sync_there_is_nothing_to_do(history: list[tuple[Roster, Tenancy]]) -> None:
    memory = Memory()
    for who, settings in history:
        memory.sync(who, settings)
        populate(memory)
        memory.sync(who, settings)
        assert memory.planned(who, settings).changes == ()


@FEW
@given(HISTORIES)
def test_nothing_is_ever_deleted(history: list[tuple[Roster, Tenancy]]) -> None:
    memory = Memory()
    for who, settings in history:
        before = set(memory.objects)
        memory.sync(who, settings)
        populate(memory)
        assert before <= set(memory.objects)
    assert memory.deleted == []


@FEW
@given(HISTORIES, st.data())
def test_an_interrupted_sync_ends_like_an_uninterrupted_one(
    history: list[tuple[Roster, Tenancy]], data: st.DataObject
) -> None:
    whole, cut = Memory(), Memory()
    for who, settings in history:
        whole.sync(who, settings)
        changes = cut.planned(who, settings).changes
        cut.make(changes[: data.draw(st.integers(0, len(changes)))])
        cut.sync(who, settings)
        populate(whole)
        populate(cut)
        assert cut.objects == whole.objects


@FEW
@given(rosters(), st.sampled_from([SETTINGS, LIMITED]))
def test_people_have_rights_exactly_where_the_directory_says(who: Roster, settings: Tenancy) -> None:
    memory = Memory()
    memory.sync(who, settings)
    given = {
        (name, each["roleRef"]["name"], subject["name"])
        for (kind, name, _), each in memory.objects.items()
        if kind == "RoleBinding"
        for subject in each["subjects"]
    }
    own = {(f"user-{id}", "edit", id) for id in who.active}
    teams = [(f"team-{team.name}", team) for team in who.teams.values()]
    editors = {(name, "edit", id) for name, team in teams for id in team.everybody if id in who.active}
    owners = {(name, OWNER_ROLE, id) for name, team in teams for id in team.owners if id in who.active}
    assert given == own | editors | owners


@FEW
@given(rosters(), rosters(), st.sampled_from([SETTINGS, LIMITED]))
def test_returning_people_find_everything_unchanged(first: Roster, between: Roster, settings: Tenancy) -> None:
    memory = Memory()
    memory.sync(first, settings)
    populate(memory)
    memory.sync(first, settings)
    before = {key: each for key, each in memory.objects.items()}
    before = {key: _plain(each) for key, each in before.items()}
    memory.sync(between, settings)
    memory.sync(first, settings)
    after = {key: _plain(each) for key, each in memory.objects.items() if key in before}
    assert after == before


def _plain(thing: dict[str, object]) -> object:
    """Return the object without managedFields, empty annotations, and an explicit suspend: false."""
    import copy

    plain = copy.deepcopy(thing)
    plain["metadata"].pop("managedFields", None)
    plain["metadata"]["annotations"] = plain["metadata"].get("annotations") or {}
    if not plain.get("spec", {}).get("suspend", True):
        del plain["spec"]["suspend"]
    return plain


@FEW
@given(rosters(), rosters())
def test_a_loss_of_half_the_directory_is_refused(before: Roster, now: Roster) -> None:
    if not before.active:
        return
    memory = Memory()
    memory.sync(before, SETTINGS)
    gone = len(before.active - now.active)
    refused = refusals(now, memory.state(now, SETTINGS), SETTINGS)
    halved = gone * 2 >= len(before.active)
    teams = before.teams and len(before.teams.keys() - now.teams.keys()) * 2 >= len(before.teams)
    members = before.memberships and (before.memberships - now.memberships) * 2 >= before.memberships
    assert bool(refused) == bool(not now.active or halved or teams or members)
    accepted = refusals(now, memory.state(now, SETTINGS), SETTINGS, accept_loss=True)
    assert bool(accepted) == (not now.active)


def test_a_loss_is_detected_from_the_remembered_sizes_without_any_namespace() -> None:
    state = TenancyState(last=sizes(roster("ana bo cleo dan")))
    (text,) = refusals(roster("ana bo"), state, SETTINGS)
    assert text.startswith("2 of 4 people are missing; tenancy.refuse_loss refuses a loss of 50% or more")
    assert refusals(roster("ana bo cleo"), state, SETTINGS) == ()


def test_a_directory_of_as_many_different_people_is_a_loss_of_everybody() -> None:
    memory = Memory()
    memory.sync(roster("ana bo cleo"), SETTINGS)
    (text,) = refusals(roster("dan eve fay"), memory.state(roster("dan"), SETTINGS), SETTINGS)
    assert text.startswith("3 of 3 people are missing")


def test_a_changed_prefix_would_freeze_everybody_and_is_refused() -> None:
    memory = Memory()
    memory.sync(roster(), SETTINGS)
    other = SETTINGS.model_copy(update={"people": PeopleAllowance(prefix="u-")})
    (text,) = refusals(roster(), memory.state(roster(), other), other)
    assert text.startswith("3 of 3 people are missing")


@pytest.mark.parametrize(("limit", "refused"), [("1", True), ("2", False), ("33%", True), ("34%", False)])
def test_the_loss_that_is_refused_is_a_setting(limit: str, refused: bool) -> None:
    memory = Memory()
    memory.sync(roster("ana bo cleo"), SETTINGS)
    settings = SETTINGS.model_copy(update={"refuse_loss": limit})
    now = roster("ana bo")
    assert bool(refusals(now, memory.state(now, settings), settings)) is refused


def test_the_workloads_of_people_who_left_run_on_but_nothing_new_starts() -> None:
    memory = Memory()
    memory.sync(roster(robotics="ana* bo"), SETTINGS)
    populate(memory)
    planned = memory.sync(roster("ana cleo", robotics="ana*"), SETTINGS, "2026-12-01")
    assert planned.stories == ((Story.LEFT, Tenant(TenantKind.PERSON, "bo"), "user-bo"),)
    space = memory.objects["Namespace", "", "user-bo"]["metadata"]
    assert (space["labels"]["menagerie.dev/frozen"], space["annotations"]["menagerie.dev/frozen"]) == (
        "true",
        "2026-12-01",
    )
    assert (memory.subjects("user-bo"), memory.subjects("team-robotics")) == ([], ["ana"])
    assert memory.objects["ResourceQuota", "user-bo", "menagerie"]["spec"]["hard"]["pods"] == "0"
    assert memory.objects["Deployment", "user-bo", "serve"]["spec"] == {"replicas": 3}
    assert {change.reason for change in planned.changes if change.key[1] == "user-bo"} == {
        "person bo is no longer in the directory"
    }


def test_the_day_of_a_freeze_stays_and_rights_are_withdrawn_first() -> None:
    memory = Memory()
    memory.sync(roster(), SETTINGS)
    planned = memory.sync(roster("ana bo"), SETTINGS, "2026-12-01")
    assert [change.key[0] for change in planned.changes] == ["RoleBinding", "ResourceQuota", "Namespace"]
    memory.sync(roster("ana bo"), LIMITED, "2026-12-24")
    assert (
        memory.objects["Namespace", "", "user-cleo"]["metadata"]["annotations"]["menagerie.dev/frozen"] == "2026-12-01"
    )


def test_stopped_workloads_return_with_the_same_number_of_replicas() -> None:
    memory = Memory()
    memory.sync(roster(), LIMITED)
    populate(memory)
    memory.sync(roster("ana bo"), LIMITED)
    spec = {name: memory.objects[kind, "user-cleo", name]["spec"] for kind, name in (("Deployment", "serve"), ("StatefulSet", "db"), ("CronJob", "nightly"))}  # fmt: skip
    assert spec == {"serve": {"replicas": 0}, "db": {"replicas": 0}, "nightly": {"suspend": True}}
    memory.sync(roster(), LIMITED)
    assert memory.objects["Deployment", "user-cleo", "serve"]["spec"] == {"replicas": 3}
    assert memory.objects["CronJob", "user-cleo", "nightly"]["spec"] == {"suspend": False}


def test_a_renamed_person_leaves_and_joins() -> None:
    memory = Memory()
    memory.sync(roster("ana bo cleo"), SETTINGS)
    planned = memory.planned(roster("ana bo cleo2"), SETTINGS)
    assert {(story, tenant.name) for story, tenant, _ in planned.stories} == {
        (Story.JOINED, "cleo2"),
        (Story.LEFT, "cleo"),
    }


def test_nobody_inherits_the_namespace_of_a_former_person_with_a_similar_name() -> None:
    memory = Memory()
    memory.sync(roster("ana.lima bo cleo"), SETTINGS)
    planned = memory.sync(roster("ana-lima bo cleo"), SETTINGS)
    (conflict,) = planned.conflicts
    assert conflict.startswith(
        "namespace user-ana-lima belongs to person ana.lima, and person ana-lima would take it over"
    )
    assert memory.subjects("user-ana-lima") == []


def test_a_namespace_that_is_not_ours_is_not_changed() -> None:
    memory = Memory()
    foreign = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-vision", "labels": {"a": "b"}}}
    memory.put(foreign)
    planned = memory.sync(roster(vision="ana"), SETTINGS)
    assert "kubectl label namespace team-vision app.kubernetes.io/managed-by=menagerie-tenancy" in planned.conflicts[0]
    assert memory.objects["Namespace", "", "team-vision"] == foreign
    assert not [key for key in memory.objects if key[1] == "team-vision"]


@pytest.mark.parametrize(
    ("key", "path", "value", "reason"),
    [
        (("Namespace", "", "team-a"), ("metadata", "labels", "pod-security.kubernetes.io/enforce"), "privileged",
         "metadata.labels.pod-security.kubernetes.io/enforce is privileged, not restricted"),
        (("ResourceQuota", "team-a", "menagerie"), ("spec", "hard", "pods"), "1k", "spec.hard.pods is 1k, not 9"),
        (("RoleBinding", "team-a", EDITORS), ("subjects",), [{"kind": "User", "name": "eve"}],
         "subjects is [eve], not [ana, bo]"),
        (("LimitRange", "team-a", "menagerie"), ("spec", "limits"), [], "spec.limits is [], not ["),
    ],
)  # fmt: skip
def test_drift_in_our_fields_is_corrected_with_its_reason(
    key: tuple[str, str, str], path: tuple[str, ...], value: object, reason: str
) -> None:
    memory = Memory()
    memory.sync(roster(a="ana* bo"), LIMITED)
    right = str(memory.objects)
    there = memory.objects[key]
    for part in path[:-1]:
        there = there[part]
    there[path[-1]] = value
    (change,) = memory.sync(roster(a="ana* bo"), LIMITED).changes
    assert (change.key, reason in change.reason) == (key, True), change.reason
    assert str(memory.objects) == right


def test_an_equal_quantity_in_another_notation_is_no_drift() -> None:
    memory = Memory()
    memory.sync(roster(a="ana"), LIMITED)
    limits = memory.objects["LimitRange", "team-a", "menagerie"]["spec"]["limits"][0]
    limits["default"]["cpu"], limits["max"]["memory"] = "1", "1024Gi"
    assert memory.planned(roster(a="ana"), LIMITED).changes == ()


def test_a_quantity_that_the_api_writes_in_a_larger_unit_is_no_drift() -> None:
    desired, actual = ({"metadata": {}, "spec": {"hard": {"requests.storage": size}}} for size in ("1024Pi", "1Ei"))
    assert differences(desired, actual) == []


def test_what_others_added_stays() -> None:
    memory = Memory()
    memory.sync(roster(a="ana"), LIMITED)
    memory.objects["Namespace", "", "team-a"]["metadata"]["labels"]["cost-centre"] = "7"
    memory.objects["ResourceQuota", "team-a", "menagerie"]["spec"]["hard"]["services"] = "5"
    assert memory.planned(roster(a="ana"), LIMITED).changes == ()


def test_a_binding_that_an_owner_recreated_with_another_role_is_corrected() -> None:
    memory = Memory()
    memory.sync(roster(a="ana* bo"), SETTINGS)
    key = ("RoleBinding", "team-a", EDITORS)
    memory.objects[key]["roleRef"] = {**memory.objects[key]["roleRef"], "name": "view"}
    planned = memory.sync(roster(a="ana* bo"), SETTINGS)
    assert [(change.verb, change.key) for change in planned.changes] == [(ChangeVerb.REBIND, key)]
    assert memory.objects[key]["roleRef"]["name"] == "edit"
    assert memory.planned(roster(a="ana* bo"), SETTINGS).changes == ()


def test_other_bindings_that_still_name_people_who_left_are_reported() -> None:
    memory = Memory()
    memory.sync(roster(a="ana* bo"), SETTINGS)
    subjects = [{"kind": "User", "name": "cleo"}]
    memory.put({"kind": "RoleBinding", "metadata": {"name": "guests", "namespace": "team-a"}, "subjects": subjects})
    planned = memory.planned(roster("ana bo", a="ana* bo"), SETTINGS)
    assert planned.notices == (
        "cleo has left, but a binding that tenancy does not manage still names them: kubectl edit rolebinding guests -n team-a",
    )


def test_people_marked_as_left_have_no_rights_in_teams() -> None:
    memory = Memory()
    memory.sync(roster(left="bo", a="ana bo*"), SETTINGS)
    assert (memory.subjects("team-a"), memory.subjects("team-a", OWNERS)) == (["ana"], [])
    assert ("Namespace", "", "user-bo") not in memory.objects


def test_a_teams_quotas_are_merged_and_its_other_settings_replace() -> None:
    only = Allowance.model_validate({"quota": {"pods": 9}})
    memory = Memory()
    teams = LIMITED.teams.model_copy(update={"only": {"a": only}})
    memory.sync(roster(a="ana", b="bo"), LIMITED.model_copy(update={"teams": teams}))
    hard = {name: memory.objects["ResourceQuota", f"team-{name}", "menagerie"]["spec"]["hard"] for name in "ab"}
    hard_by_team = {
        name: {key: value for key, value in own.items() if "count/" not in key} for name, own in hard.items()
    }
    assert hard_by_team == {
        "a": {"requests.nvidia.com/gpu": "64", "pods": "9"},
        "b": {"requests.nvidia.com/gpu": "64", "pods": "500"},
    }
