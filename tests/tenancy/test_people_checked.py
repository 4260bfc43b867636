"""`menagerie check` reads the file with people that a spec names, with its rules, beside all else that is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app

SPECS = Path(__file__).parents[1] / "specs"
PEOPLE = "people: {ana: {}, bo: {}}\nteams: {robotics: {members: [ana], owners: [bo]}}\n"


def checked(
    folder: Path, people: str | None, change: tuple[str, str] = ("", "")
) -> tuple[int, list[dict[str, object]]]:
    """(exit code, problems) of a spec whose people stand in a file beside it."""
    text = (
        (SPECS / "invalid-TEN-008-privileged.yaml").read_text().replace("pod_security: privileged", "quota: {pods: 9}")
    )
    (folder / "cluster.yaml").write_text(text.replace(*change))
    (folder / "hosts-jaguar.yaml").write_text((SPECS / "hosts-jaguar.yaml").read_text())
    if people is not None:
        (folder / "people.yaml").write_text(people)
    done = CliRunner().invoke(app, ["check", str(folder / "cluster.yaml"), "--json"])
    found: list[dict[str, object]] = json.loads(done.stdout)["problems"]
    return done.exit_code, found


def test_a_good_file_is_no_problem(tmp_path: Path) -> None:
    assert checked(tmp_path, PEOPLE) == (0, [])


def test_a_file_that_is_missing_is_an_error_where_the_spec_names_it(tmp_path: Path) -> None:
    code, (problem,) = checked(tmp_path, None)
    assert (code, problem["code"], problem["path"]) == (2, "CFG-010", "tenancy.directory.file")
    assert "people.yaml" in str(problem["hint"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("people: [", "CFG-011"),
        ("people: {ana: {state: gone}}", "CFG-015"),
        ("people: {ana: {}}\nteams: {robotics: {members: [bo]}}", "TEN-009"),
        ("people: {ana: {}, Ana: {}}", "TEN-011"),
        ("people: {'ana rm': {}}", "CFG-030"),
        ("", "CFG-012"),
    ],
)
def test_a_file_that_is_broken_is_told_with_its_line(tmp_path: Path, text: str, expected: str) -> None:
    code, problems = checked(tmp_path, text)
    assert (code, {each["code"] for each in problems}) == (2, {expected})
    assert all(str(each["file"]).endswith("people.yaml") and each["line"] and each["hint"] for each in problems)


def test_it_is_told_beside_what_is_wrong_with_the_spec(tmp_path: Path) -> None:
    _, problems = checked(tmp_path, None, ("heartbeat_interval: 100ms", "heartbeat_interval: 900ms"))
    assert {each["code"] for each in problems} == {"CFG-010", "ETC-007"}


def test_people_who_together_could_fill_etcd_are_warned_of_with_the_sum(tmp_path: Path) -> None:
    """19 people at 570 objects and a team at 3,420 are 14,250 objects of 1.5 MiB."""
    people = json.dumps({"people": {f"p{number}": {} for number in range(19)}, "teams": {"robotics": {}}})
    code, (problem,) = checked(tmp_path, people)
    assert (code, problem["code"], problem["severity"]) == (0, "TEN-016", "warning")
    assert "19 people and 1 teams may have 14,250 objects, 20.9 GiB" in str(problem["message"])
    assert "etcd.main.quota is 8.0 GiB" in str(problem["message"])
    accepted = ("directory: {file: people.yaml}", "directory: {file: people.yaml}\n  overcommit: 3")
    assert "tenancy.overcommit: 3" in str(problem["hint"])
    assert checked(tmp_path, people, accepted) == (0, [])
