"""`menagerie validate`: its selection, output and files. Nothing runs: the fleet is replaced."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from rich.console import Console

from cli.actions import validate as verb
from cluster.errors import FailedError
from stacks.validation import fleet
from stacks.validation.fleet import Options, Subject
from stacks.validation.model import ClusterResult, Finding, Outcome, Report, Stage, result, skipped
from tests.cli.conftest import EXAMPLES
from tests.cli.terminal import Menagerie

FINDING = Finding("loses-data", "a [disk] be lost", "do not", file="inventories/horus/cluster.yaml", line=9, column=1)
Subjects = list[Subject]

pytestmark = pytest.mark.usefixtures("fleet")


def outcome(subject: Subject, findings: tuple[Finding, ...] = ()) -> ClusterResult:
    spec = result(Stage.SPEC, "", tuple(map(Finding.of, subject.problems)), 0.0)
    rest = tuple(Stage)[1:]
    if spec.outcome is Outcome.FAILED:
        return ClusterResult(subject.name, "", str(subject.path), (spec, *skipped(rest, "the spec is wrong")))
    stages = [result(stage, "seen", findings if stage is Stage.UPDATE else (), 1.0) for stage in rest]
    return ClusterResult(subject.name, "aws", str(subject.path), (spec, *stages), 7.0)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Subjects]:
    """ran(findings): let every cluster have these findings. Returns the list of validated subjects."""

    def replaced(*findings: Finding) -> Subjects:
        validated: Subjects = []

        def validate(subjects: Sequence[Subject], options: Options, tell: fleet.Tell, done: fleet.Done) -> Report:
            validated.extend(subjects)
            results = []
            for subject in subjects:
                tell(subject.name, Stage.UP, "creating [a thing]")
                results.append(outcome(subject, findings))
                done(results[-1])
            return Report(tuple(results), 7.0)

        monkeypatch.setattr(fleet, "validate", validate)
        monkeypatch.setattr(fleet, "engine", lambda: Path("/nowhere/pulumi"))
        return validated

    return replaced


def test_without_names_every_cluster_in_a_cloud_is_validated(
    menagerie: Menagerie, ran: Callable[..., Subjects]
) -> None:
    validated = ran()
    done = menagerie("validate")
    assert (done.code, [subject.name for subject in validated]) == (0, ["horus", "ibis", "jaguar"])
    assert not any(subject.must for subject in validated)
    assert f"{len(validated)} passed; 7 s; clouds were simulated, and nothing ran outside this machine" in done.out
    assert f" {len(validated)}/{len(validated)}" in done.err


def test_named_clusters_must_pass(menagerie: Menagerie, ran: Callable[..., Subjects]) -> None:
    validated = ran()
    assert menagerie("validate", "ibis", "lab", str(EXAMPLES / "ibis")).code == 0
    assert [(subject.name, subject.must) for subject in validated] == [("ibis", True), ("lab", True)]


def test_a_failed_stage_is_printed_with_its_place_and_fix_and_exits_with_1(
    menagerie: Menagerie, ran: Callable[..., Subjects]
) -> None:
    ran(FINDING)
    done = menagerie("validate", "horus")
    assert done.code == 1
    assert "inventories/horus/cluster.yaml:9:1: error[loses-data] a [disk] be lost" in done.out
    assert "fix: do not" in done.out
    assert "1 failed; 7 s" in done.out


def test_a_bad_spec_exits_with_2_and_skips_the_rest(menagerie: Menagerie, ran: Callable[..., Subjects], spec) -> None:
    ran()
    path = spec(("main: {members: 3", "main: {members: 4"))
    done = menagerie("validate", str(path))
    assert done.code == 2
    assert f"{path}:11:19: error[ETC-001]" in done.out
    assert "preview, up, policies, second preview, update, drift, destroy: the spec is wrong" in done.out


def test_notes_are_counted(menagerie: Menagerie, ran: Callable[..., Subjects]) -> None:
    ran(Finding("unproven", "a type", severity="note"), Finding("unproven", "another", severity="note"))
    done = menagerie("validate", "horus")
    assert (done.code, "notes: 2 unproven; --json lists them" in done.out) == (0, True)


def test_json_is_one_document_and_nothing_else(menagerie: Menagerie, ran: Callable[..., Subjects]) -> None:
    ran(FINDING)
    done = menagerie("validate", "horus", "--json")
    (cluster,) = done.json["clusters"]
    assert (done.code, done.err, done.json["ok"]) == (1, "", False)
    assert [stage["stage"] for stage in cluster["stages"]] == [stage.value for stage in Stage]
    assert cluster["stages"][5]["findings"][0]["line"] == 9


def test_sarif_and_junit_are_written_even_after_a_failure(
    menagerie: Menagerie, ran: Callable[..., Subjects], tmp_path: Path
) -> None:
    ran(FINDING)
    sarif, junit = tmp_path / "out.sarif", tmp_path / "out.xml"
    assert menagerie("validate", "horus", "--sarif", str(sarif), "--junit", str(junit)).code == 1
    assert "loses-data" in {item["ruleId"] for item in json.loads(sarif.read_text())["runs"][0]["results"]}
    assert 'type="loses-data"' in junit.read_text()


def test_a_missing_folder_is_refused_before_anything_runs(
    menagerie: Menagerie, ran: Callable[..., Subjects], tmp_path: Path
) -> None:
    validated = ran()
    done = menagerie("validate", "--junit", str(tmp_path / "none" / "out.xml"))
    assert (done.code, validated) == (2, [])
    assert f"there is no folder {tmp_path / 'none'}" in done.err


def test_for_a_mistyped_cluster_the_nearest_is_named(menagerie: Menagerie, ran: Callable[..., Subjects]) -> None:
    validated = ran()
    done = menagerie("validate", "horsu")
    assert (done.code, validated) == (2, [])
    assert "there is no cluster horsu; did you mean horus?" in done.err


def test_a_missing_engine_is_an_error_in_json(menagerie: Menagerie, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Path:
        raise FailedError("pulumi is not built yet; build it once", code="programs")

    monkeypatch.setattr(fleet, "engine", missing)
    done = menagerie("validate", "horus", "--json")
    assert (done.code, done.json["error"]["code"]) == (1, "programs")


def test_on_a_terminal_each_running_cluster_is_one_line(
    menagerie: Menagerie, ran: Callable[..., Subjects], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(verb, "errors", Console(file=screen, force_terminal=True, width=60, soft_wrap=True))
    board = verb._Board(["horus", "ibis"])
    with board.shown(quiet=False):
        board.tell("horus", Stage.UP, "creating [a thing] " + "x" * 200)
        board.tell("ibis", Stage.PREVIEW, "")
        lines = [line.plain for line in board._drawn().renderables]  # type: ignore[union-attr]
    assert ["creating [a" in lines[0], "preview" in lines[1]] == [True, True]
    assert max(map(len, lines)) < 60
