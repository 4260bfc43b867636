"""People and teams in a file, and the names of their namespaces: all problems at once, with line and way out."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.load import SpecError
from cluster.tenancy import DirectorySource, PeopleAllowance, TeamsAllowance, Tenancy
from controllers.tenancy.directory import Person, PersonState, Tenant, TenantKind
from controllers.tenancy.directory.files import FileDirectory
from controllers.tenancy.directory.names import RESERVED, assign

SETTINGS = Tenancy(directory=DirectorySource(file="people.yaml"))
BARE = SETTINGS.model_copy(update={"people": PeopleAllowance(prefix=""), "teams": TeamsAllowance(prefix="")})


def read(folder: Path, text: str, settings: Tenancy = SETTINGS):
    path = folder / "people.yaml"
    path.write_text(text)
    return FileDirectory(path, settings).read()


def problems(folder: Path, text: str, settings: Tenancy = SETTINGS) -> list[tuple[str, int, str, str]]:
    with pytest.raises(SpecError) as error:
        read(folder, text, settings)
    return [(each.code, each.line, each.message, each.hint) for each in error.value.problems]


def test_people_and_teams_are_read(tmp_path: Path) -> None:
    roster = read(
        tmp_path,
        "people:\n  ana: {name: Ana Lima}\n  bo: {name: Bo Chen, state: left}\n  cleo: {}\n"
        "teams:\n  robotics: {members: [cleo, ana, bo], owners: [ana]}\n  empty: {}\n",
    )
    assert roster.people["bo"] == Person("bo", "Bo Chen", PersonState.LEFT)
    assert roster.active == {"ana", "cleo"}
    assert roster.teams["robotics"].members == ("ana", "bo", "cleo")
    assert (roster.teams_of("ana"), roster.memberships) == (("robotics",), 2)


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    text = (
        "people:\n  ana: {nmae: Ana}\n  Ana: {}\n  cleo: {state: gone}\n  cleo: {}\n"
        "teams:\n  robotics:\n    members: [ana, anna]\n    owners: [zed]\n  '+-': {}\n"
    )
    assert problems(tmp_path, text) == [
        ("CFG-001", 2, "unknown key people.ana.nmae; did you mean name?", "write name"),
        ("TEN-011", 3, "person ana and person Ana would share the namespace user-ana",
         "give one of them another name in the directory"),
        ("CFG-015", 4, "people.cleo.state gone isn't one of active, left", "write active"),
        ("CFG-002", 5, "key people.cleo is defined twice (line 4 and line 5)", "remove one; checks use the one on line 4"),
        ("TEN-009", 8, "anna of team robotics is not in people; did you mean Ana?", "write Ana"),
        ("TEN-009", 9, "zed of team robotics is not in people", "add zed to people, or remove it here"),
        ("TEN-010", 10, "team +- has neither a letter nor a digit for the namespace's name", "rename it"),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "- ana\n", "people: [ana]\n", "teams: {}\n", "people: {ana: {}\n"])
def test_an_invalid_directory_is_refused(tmp_path: Path, text: str) -> None:
    assert problems(tmp_path, text)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="there is no such file"):
        FileDirectory(tmp_path / "none.yaml", SETTINGS).read()


@pytest.mark.parametrize("id", ["system:masters", "a b", "-x", "a/b", "名", ""])
def test_an_invalid_user_name_is_refused(id: str) -> None:
    (trouble,) = assign([Tenant(TenantKind.PERSON, id)], SETTINGS)[1]
    assert (trouble.code, str(Tenant(TenantKind.PERSON, id)) in trouble.message) == ("TEN-010", True)


@pytest.mark.parametrize("name", [*sorted(RESERVED), "kube-system", "kube-flannel", "menagerie-reports", "Default"])
def test_reserved_names_are_refused_without_a_prefix(name: str) -> None:
    for kind in TenantKind:
        (trouble,) = assign([Tenant(kind, name)], BARE)[1]
        assert "is reserved for Kubernetes or Menagerie" in trouble.message
        assert assign([Tenant(kind, name)], SETTINGS)[1] == ()


def test_a_person_and_a_team_with_the_same_name_clash_only_without_prefixes() -> None:
    both = [Tenant(TenantKind.PERSON, "Robotics"), Tenant(TenantKind.TEAM, "robotics")]
    assert assign(both, SETTINGS)[0] == {both[0]: "user-robotics", both[1]: "team-robotics"}
    assert assign(both, BARE)[1][0].message == "person Robotics and team robotics would share the namespace robotics"


def test_a_name_that_is_too_long_is_refused_not_truncated() -> None:
    (trouble,) = assign([Tenant(TenantKind.TEAM, "x" * 60)], SETTINGS)[1]
    assert (trouble.hint, assign([Tenant(TenantKind.TEAM, "x" * 58)], SETTINGS)[1]) == (
        "shorten it by 2, or its prefix in the spec",
        (),
    )


TENANTS = st.lists(st.builds(Tenant, st.sampled_from(TenantKind), st.text("aB.-_@é名", max_size=8)), unique=True)


@given(TENANTS, st.sampled_from([SETTINGS, BARE]))
def test_every_tenant_has_a_distinct_namespace_or_is_named_in_a_refusal(
    tenants: list[Tenant], settings_: Tenancy
) -> None:
    names, troubles = assign(tenants, settings_)
    named = {tenant for trouble in troubles for tenant in trouble.tenants}
    apart = [names[tenant] for tenant in tenants if tenant not in named]
    assert len(set(apart)) == len(apart)
    assert all(tenant in names or tenant in named for tenant in tenants)
    assert all(str(tenant) in trouble.message for trouble in troubles for tenant in trouble.tenants)
    # A name does not depend on other tenants.
    assert all(assign([tenant], settings_)[0].get(tenant) == names[tenant] for tenant in tenants if tenant not in named)
