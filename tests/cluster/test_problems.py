"""How a problem is printed, and how the reference lists it."""

from cluster.codes import MEANING, reference
from cluster.problems import Problem, SpecError, in_order

PROBLEM = Problem(
    code="NET-001",
    message="network.pods 10.0.0.0/14 overlaps network.nodes 10.2.0.0/20",
    hint="choose network.pods outside 10.2.0.0/20, for example 10.64.0.0/14",
    file="inventories/jaguar/cluster.yaml",
    line=14,
    column=13,
    path="network.pods",
    notes=("shared range: 10.2.0.0/20 (4096 addresses)",),
)


def test_text_has_position_severity_code_and_hint() -> None:
    assert str(PROBLEM) == (
        "inventories/jaguar/cluster.yaml:14:13: error[NET-001] network.pods 10.0.0.0/14 "
        "overlaps network.nodes 10.2.0.0/20\n"
        "    shared range: 10.2.0.0/20 (4096 addresses)\n"
        "    fix: choose network.pods outside 10.2.0.0/20, for example 10.64.0.0/14"
    )


def test_json_has_the_agreed_keys() -> None:
    document = PROBLEM.to_json()
    assert document["docs"] == "docs/reference/errors.md#net-001"
    assert set(document) == {
        "code", "severity", "file", "line", "column", "path", "message", "hint", "notes", "docs",
    }  # fmt: skip


def test_problems_are_ordered_by_file_and_line_as_numbers() -> None:
    lines = [Problem("A", "m", file=file, line=line) for file, line in [("b", 1), ("a", 10), ("a", 9), ("a", 9)]]
    assert [(p.file, p.line) for p in in_order(lines)] == [("a", 9), ("a", 10), ("b", 1)]


def test_an_error_shows_every_problem() -> None:
    assert str(SpecError([PROBLEM, Problem("CFG-001", "unknown key x", file="a", line=1, column=1)])).splitlines()[
        0
    ] == ("a:1:1: error[CFG-001] unknown key x")


def test_the_reference_has_a_heading_for_every_code() -> None:
    assert [line[3:] for line in reference().splitlines() if line.startswith("## ")] == sorted(MEANING)
