"""`menagerie check` checks the file of people that a spec names, together with everything else."""

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
    """Return (exit code, problems) of a spec whose people are in a file next to it."""
    text = (
        (SPECS / "invalid-TEN-008-privileged.yaml").read_text().replace("pod_security: privileged", "quota: {pods: 9}")
    )
    (folder / "cluster.yaml").write_text(text.replace(*change))
    (folder / "hosts-jaguar.yaml").write_text((SPECS / "hosts-jaguar.yaml").read_text())
    if people is not None:
        (folder / "people.yaml").write_text(people)
    done = CliRunner().invoke(app, ["check", str(folder / "cluster.yaml"), "--json"])
    problems: list[dict[str, object]] = json.loads(done.stdout)["problems"]
    return done.exit_code, problems


def test_a_good_file_is_no_problem(tmp_path: Path) -> None:
    assert checked(tmp_path, PEOPLE) == (0, [])


def test_a_missing_file_is_an_error_at_its_place_in_the_spec(tmp_path: Path) -> None:
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
def test_problems_of_the_file_have_their_line(tmp_path: Path, text: str, expected: str) -> None:
    code, problems = checked(tmp_path, text)
    assert (code, {each["code"] for each in problems}) == (2, {expected})
    assert all(str(each["file"]).endswith("people.yaml") and each["line"] and each["hint"] for each in problems)


def test_its_problems_are_reported_together_with_those_of_the_spec(tmp_path: Path) -> None:
    _, problems = checked(tmp_path, None, ("heartbeat_interval: 100ms", "heartbeat_interval: 900ms"))
    assert {each["code"] for each in problems} == {"CFG-010", "ETC-007"}


def test_a_warning_says_that_people_could_together_fill_etcd(tmp_path: Path) -> None:
    """19 people with 570 objects each and a team with 3,420 have 14,250 objects of 1.5 MiB."""
    people = json.dumps({"people": {f"p{number}": {} for number in range(19)}, "teams": {"robotics": {}}})
    code, (problem,) = checked(tmp_path, people)
    assert (code, problem["code"], problem["severity"]) == (0, "TEN-016", "warning")
    assert "19 people and 1 teams may have 14,250 objects, up to 20.9 GiB" in str(problem["message"])
    assert "etcd.main.quota is 8.0 GiB" in str(problem["message"])
    accepted = ("directory: {file: people.yaml}", "directory: {file: people.yaml}\n  overcommit: 3")
    assert "tenancy.overcommit: 3" in str(problem["hint"])
    assert checked(tmp_path, people, accepted) == (0, [])
