"""Clusters in separate processes: with places in the spec, and cleaned up. test_whole_clusters runs several at once."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cluster.errors import FailedError
from cluster.load import check_paths
from stacks.validation import fleet
from stacks.validation import run as stages
from stacks.validation.fleet import Options, Subject
from stacks.validation.model import Outcome, Report, Stage
from tests.validation.conftest import empty
from tests.waiting import patience, until

ROOT = Path(__file__).resolve().parents[2]
SPECS = ROOT / "tests" / "specs"


def subject(path: Path, *, must: bool = True) -> Subject:
    loaded, problems = check_paths([path])
    first = loaded[0] if loaded else None
    return Subject(first.cluster.name if first else path.stem, path, first, tuple(problems), must)


def run(pulumi: Path, program: str, *subjects: Subject) -> Report:
    options = Options(pulumi, program=f"tests.validation.programs:{program}")
    return fleet.validate(subjects, options, lambda *_: None, lambda _: None)


def test_a_finding_points_to_the_value_of_the_spec(pulumi: Path, temporary: Path) -> None:
    path = SPECS / "valid-aws.yaml"
    report = run(pulumi, "broken", subject(path))
    (finding,) = (finding for finding in report.clusters[0].findings if finding.rule == "refused")
    line = path.read_text().splitlines()[finding.line - 1]
    assert (line[finding.column - 1 :], report.ok) == ("aws", False)
    assert finding.file == os.path.relpath(path)


def test_a_process_that_dies_is_a_failure_with_its_last_output(pulumi: Path, temporary: Path) -> None:
    report = run(pulumi, "ended", subject(SPECS / "valid-aws.yaml"))
    stages = {stage.stage: stage for stage in report.clusters[0].stages}
    assert stages[Stage.PREVIEW].findings[0].rule == "crashed"
    assert "killed by something" in stages[Stage.PREVIEW].findings[0].message
    assert (stages[Stage.UP].outcome, empty(temporary)) == (Outcome.SKIPPED, True)


def test_a_wrong_spec_fails_its_own_stage_and_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "Worker", lambda *_: pytest.fail("a process was started"))
    report = run(Path("/nowhere"), "right", subject(SPECS / "invalid-ETC-001-four.yaml"))
    (cluster,) = report.clusters
    assert (report.spec_is_bad, cluster.findings[0].rule) == (True, "ETC-001")
    assert {stage.outcome for stage in cluster.stages[1:]} == {Outcome.SKIPPED}


@pytest.mark.parametrize(("must", "outcome"), [(True, Outcome.FAILED), (False, Outcome.SKIPPED)])
def test_a_cloud_that_is_not_offered_fails_only_clusters_requested_by_name(
    monkeypatch: pytest.MonkeyPatch, must: bool, outcome: Outcome
) -> None:
    # Patches do not reach the cluster's process; but no validation offers the lab.
    monkeypatch.setattr(fleet, "Worker", lambda *_: pytest.fail("a process was started"))
    report = run(Path("/nowhere"), "right", subject(ROOT / "inventories" / "lab" / "cluster.yaml", must=must))
    preview = report.clusters[0].stages[1]
    assert (preview.outcome, preview.summary, report.ok) == (outcome, "not offered yet", not must)
    assert "./menagerie up lab" in preview.findings[0].message


def test_a_process_reports_that_its_cloud_has_no_provider(
    pulumi: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stacks.program.CLOUDS", frozenset())
    state = tmp_path / "state"
    request = stages.Request(str(SPECS / "valid-aws.yaml"), False, fleet.REAL, str(pulumi), str(state))
    assert "aws is not offered yet" in stages.run(request, lambda _: None)["not_offered"]
    assert not state.exists()


# A parent that validates a program which never ends, and reports when it runs.
_PARENT = """
import sys
from pathlib import Path
from cli import interrupts
from tests.validation.test_fleet import SPECS, subject
from stacks.validation import fleet
def tell(name, stage, detail):
    print(stage, flush=True)
options = fleet.Options(Path(sys.argv[1]), program="tests.validation.programs:endless")
with interrupts.interrupts_raise():
    fleet.validate([subject(SPECS / "valid-aws.yaml")], options, tell, lambda _: None)
"""


def _processes(folder: Path) -> list[int]:
    """Return the processes whose environment names a folder."""
    pids = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if str(folder).encode() in entry.read_bytes():
                pids.append(int(entry.parent.name))
        except OSError:
            continue
    return pids


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_every_process_and_removes_temporary_files(
    pulumi: Path, temporary: Path, number: signal.Signals
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(pulumi)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "preview"
    # Parent, worker, engine.
    until(lambda: len(_processes(temporary)) >= 3, lambda: f"{_processes(temporary)}", 30, 0.05)
    process.send_signal(number)
    process.communicate(timeout=patience(30))
    until(
        lambda: not _processes(temporary) and empty(temporary),
        lambda: f"{_processes(temporary)}, {sorted(temporary.rglob('*'))}",
        30,
        0.05,
    )


def test_no_cloud_sdk_is_imported_before_a_program_does_and_the_parent_imports_no_engine() -> None:
    heavy = "[name for name in ('pulumi', 'grpc', 'kubernetes') if name in sys.modules]"
    clouds = "[name for name in sys.modules if name.startswith('pulumi_')]"
    for modules, names in (
        (
            "cli.actions.validate, stacks.validation.fleet, stacks.validation.reports.sarif, stacks.validation.reports.junit",
            heavy,
        ),
        ("stacks.validation.worker, stacks.validation.run, stacks.validation.stages, stacks.program", clouds),
    ):
        code = f"import sys, {modules}; print({names})"
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]"


def test_without_the_engine_the_error_says_how_to_build_it(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"program": "pulumi", "version": "3.0.0", "built": False, "path": "/nowhere"}
    monkeypatch.setattr(fleet.build, "states", lambda: [row])
    with pytest.raises(FailedError, match=re.escape("python -m tools pulumi")):
        fleet.engine()
