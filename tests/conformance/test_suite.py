"""How the suite is started and its output is read, with a script in place of upstream's programs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conformance import progress, suite
from tests.conformance.__main__ import main
from tests.conformance.junit import ReportError
from tests.conformance.suite import Part, Suite, SuiteError

SAMPLE = Path(__file__).with_name("junit_together_01.xml")
PASSED = "[sig-apps] Job should delete a job [Conformance]"


def programs(folder: Path, script: str) -> Suite:
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return Suite("1.36.4", path, path, Path("/bin/kubectl"))


def test_tests_are_those_that_a_dry_run_reports_as_passed(tmp_path: Path) -> None:
    copied = f'for a; do case $a in --report-dir=*) cp {SAMPLE} "${{a#*=}}/junit_01.xml";; esac; done'
    assert suite.tests(programs(tmp_path, copied)) == (PASSED,)


def test_the_error_has_the_suites_output_if_it_lists_no_tests(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="unknown flag"):
        suite.tests(programs(tmp_path, "echo unknown flag >&2; exit 2"))
    with pytest.raises(ReportError):
        suite.tests(programs(tmp_path, "exit 0"))


def test_a_part_selects_its_tests_one_by_one_with_escaped_names() -> None:
    fake = Suite("1.36.4", Path("/e2e.test"), Path("/ginkgo"), Path("/kubectl"))
    part = Part("alone", ("[sig-x] a (b) [Serial]", "[sig-y] c"), 1)
    arguments = suite.command(fake, part, Path("/kubeconfig"), Path("/report"))
    ginkgo, e2e = arguments[: arguments.index("--")], arguments[arguments.index("--") :]
    focus = [word for word in ginkgo if word.startswith("--focus=")]
    assert focus == [r"--focus=\[sig\-x\]\ a\ \(b\)\ \[Serial\]$", r"--focus=\[sig\-y\]\ c$"]
    assert "--procs=1" in ginkgo
    assert {"--kubeconfig=/kubeconfig", "--report-dir=/report", "--report-prefix=alone_"} <= set(e2e)


def test_an_unknown_cluster_is_refused_before_anything_is_built() -> None:
    with pytest.raises(SystemExit, match="there is no cluster labb; did you mean lab"):
        main("labb")


def test_parts_without_tests_are_not_run() -> None:
    assert [part.name for part in suite.parts(["a"], [], 4)] == ["together"]
    assert [(part.name, part.processes) for part in suite.parts(["a"], ["b"], 4)] == [("together", 4), ("alone", 1)]


def test_the_result_of_a_failed_part_is_read_from_its_report(tmp_path: Path) -> None:
    shutil.copy(SAMPLE, tmp_path / "junit_together_01.xml")
    fake = programs(tmp_path, "echo said; exit 1")
    report = suite.run(fake, Part("together", (PASSED,), 4), Path("/kubeconfig"), tmp_path, print)
    assert len(report.results) > 1
    assert (tmp_path / "together.log").read_text() == "said\n"


def test_the_log_omits_ginkgos_lines_for_tests_outside_the_part(tmp_path: Path) -> None:
    shutil.copy(SAMPLE, tmp_path / "junit_together_01.xml")
    fake = programs(tmp_path, "printf 'SSSS\\n\\nSummarizing 1 Failure:\\nS\\n'; exit 1")
    suite.run(fake, Part("together", (PASSED,), 4), Path("/kubeconfig"), tmp_path, print)
    assert (tmp_path / "together.log").read_text() == "\nSummarizing 1 Failure:\n"


def test_the_error_has_the_end_of_the_log_if_a_part_writes_no_report(tmp_path: Path) -> None:
    fake = programs(tmp_path, "echo no cluster there; exit 1")
    with pytest.raises(SuiteError, match="no cluster there"):
        suite.run(fake, Part("alone", (PASSED,), 1), Path("/kubeconfig"), tmp_path, print)


RULE = "-" * 30
TOGETHER = f"""{RULE}
[SynchronizedBeforeSuite] PASSED [0.037 seconds]
[SynchronizedBeforeSuite]
k8s.io/kubernetes@v1.36.4/test/e2e/e2e.go:69
{RULE}
• [5.552 seconds]
{PASSED} [sig-apps, Conformance]
k8s.io/kubernetes@v1.36.4/test/e2e/apps/job.go:1

  Timeline >>
  STEP: Creating a kubernetes client @ 11/25/26 14:47:03.756
  << Timeline
{RULE}
• [FAILED] [61.000 seconds]
[sig-y] b [It] c [sig-y, Conformance]
"""
ALONE = f"""{RULE}
{PASSED} [sig-apps, Conformance]
k8s.io/kubernetes@v1.36.4/test/e2e/apps/job.go:1
  STEP: Creating a kubernetes client @ 11/25/26 14:47:03.756
• [5.552 seconds]
{RULE}
[sig-y] b [It] c [sig-y, Conformance]
  STEP: [sig-z] is no name
• [FAILED] [61.000 seconds]
[sig-y] b [It] c [sig-y, Conformance]
"""


def test_results_come_from_the_log_if_ginkgo_lost_a_process(tmp_path: Path) -> None:
    (tmp_path / "said").write_text(f"{TOGETHER}Ginkgo timed out waiting for all parallel procs to report back\n")
    fake = programs(tmp_path, f"cat {tmp_path}/said; exit 1")
    report = suite.run(fake, Part("together", (PASSED, "[sig-y] b c", "d"), 4), Path("/kubeconfig"), tmp_path, print)
    assert [(result.test, result.state) for result in report.results] == [(PASSED, "passed"), ("[sig-y] b c", "failed")]
    (lost,) = report.other_failures
    assert (lost.test, lost.state) == ("the part together", "failed")
    assert "Ginkgo timed out waiting" in lost.message


@pytest.mark.parametrize("log", [TOGETHER, ALONE])
def test_each_test_is_reported_once_when_it_ends(log: str) -> None:
    lines: list[str] = []
    follow = progress.Progress(2, lines.append)
    for line in log.splitlines():
        follow(line)
    assert lines == [f"[1/2] passed  {PASSED}", "[2/2] failed  [sig-y] b c"]
