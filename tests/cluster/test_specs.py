"""tests/specs: the header of every file lists the problems that check must report."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.check import RULES
from cluster.codes import MEANING
from cluster.load import check_paths, clusters, find_cluster

ROOT = Path(__file__).resolve().parents[2]
SPECS = Path(__file__).parents[1] / "specs"
VALID = sorted(SPECS.glob("valid-*.yaml"))
INVALID = sorted(SPECS.glob("invalid-*.yaml"))
NOT_FROM_A_FILE = {"CFG-016", "CPH-007", "INV-003", "INV-004", "INV-006", "LNK-005", "LNK-006", "LNK-007", "ROC-001"}
NOT_FROM_A_FILE |= {"CFG-021"}  # reported for the lock of artefacts: tests/cluster/test_locked.py
NOT_FROM_A_FILE |= {"CFG-022"}  # reported for what `init` wrote: tests/cli/test_init.py
NOT_FROM_A_FILE |= {
    "TEN-009",
    "TEN-010",
    "TEN-011",
}  # reported for the file with people, by the verb that reads it


def head(path: Path, key: str) -> list[str]:
    return re.findall(rf"^# {key}: (.*)$", path.read_text(), re.MULTILINE)


def code(path: Path) -> str:
    return "-".join(path.stem.split("-")[1:3])


@pytest.fixture(autouse=True)
def _there(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(SPECS)
    yield


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_a_valid_spec_gives_no_problem(path: Path) -> None:
    loaded, problems = check_paths([Path(path.name)])
    assert [str(problem) for problem in problems] == []
    assert len(loaded) == 1


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_an_invalid_spec_gives_exactly_the_problems_in_its_header_each_with_position_and_hint(path: Path) -> None:
    """Clusters with an error aren't returned."""
    loaded, problems = check_paths([*map(Path, head(path, "beside")), Path(path.name)])
    lines = [str(problem).splitlines()[0].removeprefix(f"{path.name}:") for problem in problems]
    assert lines == head(path, "expect")
    assert {problem.code for problem in problems} - {code(path)} <= {"CFG-019"}
    assert code(path) in {problem.code for problem in problems}
    for problem in problems:
        assert problem.line >= 1
        assert problem.column >= 1
        assert problem.hint
        assert len(Path(problem.file).read_text().splitlines()) >= problem.line
    handed_out = Path(path.name) in {one.path for one in loaded}
    assert handed_out is not any(problem.is_error for problem in problems if is_of(problem.file, path))


def is_of(file: str, path: Path) -> bool:
    """Return whether a file is the spec itself or its hosts file, and not another cluster's."""
    return file == path.name or file.startswith("hosts-")


def test_every_code_has_a_spec_and_a_meaning() -> None:
    shown = {code(path) for path in INVALID}
    assert shown == set(MEANING) - NOT_FROM_A_FILE
    assert {each for each, _ in RULES} <= set(MEANING)


def test_valid_specs_together_are_valid() -> None:
    """The only problem is that they share pod ranges."""
    _, problems = check_paths([Path(path.name) for path in VALID])
    assert {problem.code for problem in problems} == {"NET-001"}


def test_the_clusters_of_the_inventories_give_no_problem_together() -> None:
    loaded, problems = check_paths([find_cluster(name, ROOT) for name in clusters(ROOT)])
    assert [str(problem) for problem in problems] == []
    assert {one.cluster.name: len(one.cluster.host_list()) for one in loaded} == {"lab": 3}


def test_examples_can_be_built_together_with_each_other_and_the_inventories() -> None:
    """Copies of examples clash with nothing: all names and ranges are unique."""
    examples = sorted((ROOT / "examples").glob("*/cluster.yaml"))
    loaded, problems = check_paths([*examples, *(find_cluster(name, ROOT) for name in clusters(ROOT))])
    slow = [problem for problem in problems if problem.code == "ETC-008" and "gp3" in problem.message]
    assert [str(problem) for problem in problems if problem not in slow] == []
    assert {one.cluster.name: len(one.cluster.host_list()) for one in loaded if one.path in examples} == {
        "gibbon": 0,
        "horus": 0,
        "ibis": 0,
        "jaguar": 2500,
        "koala": 0,
        "small": 0,
    }


def test_the_table_of_wrong_inputs_names_existing_specs() -> None:
    """In a row, `-other` is short for another spec with the preceding code."""
    table = (SPECS / "README.md").read_text()
    named = []
    for row in table.splitlines():
        codes_and_names = re.findall(r"`([A-Z]{3}-\d{3})?(-[a-z0-9-]*[a-z0-9])?(?:-…)?`", row)
        latest = ""
        for prefix, name in codes_and_names:
            latest = prefix or latest
            named += [f"{latest}{name}"] if latest else []
    assert len(named) > 50
    assert [name for name in named if not list(SPECS.glob(f"invalid-{name}*.yaml"))] == []
    kinds = ("ETC", "CLD", "VER", "VPN", "SEC", "PUB")
    assert {each for each in MEANING if each[:3] in kinds} <= set(re.findall(r"[A-Z]{3}-\d{3}", table))
