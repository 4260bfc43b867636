"""Upstream's suite as programs: what it has, and running a part of it."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.conformance import junit, progress
from tests.conformance.junit import Report, Result

PROGRAMS = ("e2e.test", "ginkgo", "kubectl")
_LABEL = "Conformance"
_LIMIT = "24h"  # ginkgo's own is an hour
_LAST = 15  # lines of what a program said


class SuiteError(Exception):
    """The suite can't be asked, or a part of it ended without a report; the text has its last words."""


@dataclass(frozen=True)
class Suite:
    """Where the programs are. version: of Kubernetes, without a v."""

    version: str
    e2e: Path
    ginkgo: Path
    kubectl: Path


@dataclass(frozen=True)
class Part:
    """A part of a run. name: of its report and log. processes: that share its tests."""

    name: str
    tests: tuple[str, ...]
    processes: int


def tests(suite: Suite, focus: str = "") -> tuple[str, ...]:
    """Names of the tests with [Conformance] that ginkgo would run. focus: a regular expression of Go's. Asks no cluster."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(suite.e2e), "--ginkgo.dry-run", f"--ginkgo.label-filter={_LABEL}", f"--report-dir={folder}"]
        command += ["--host=http://127.0.0.1:1", *([f"--ginkgo.focus={focus}"] if focus else [])]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if ran.returncode:
            raise SuiteError(f"e2e.test can't list its tests:\n{_last(ran.stdout + ran.stderr)}")
        report = junit.read(Path(folder) / "junit_01.xml")
    return tuple(sorted(result.test for result in report.results if result.state == "passed"))


def command(suite: Suite, part: Part, kubeconfig: Path, folder: Path) -> list[str]:
    """The command that runs a part. Tests are named one by one, so what is not planned does not run."""
    ginkgo = [str(suite.ginkgo), "-v", f"--procs={part.processes}", f"--timeout={_LIMIT}", "--no-color", "--keep-going"]
    # What a process says that panics would be lost with it.
    ginkgo += ["--output-interceptor-mode=none"]
    ginkgo += [f"--label-filter={_LABEL}", *(f"--focus={re.escape(test)}$" for test in part.tests)]
    e2e = [f"--kubeconfig={kubeconfig}", f"--kubectl-path={suite.kubectl}", "--provider=skeleton"]
    e2e += [f"--report-dir={folder}", f"--report-prefix={part.name}_"]
    e2e += ["--disable-log-dump"]  # of hosts, to which the suite would log in
    return [*ginkgo, str(suite.e2e), "--", *e2e]


def run(suite: Suite, part: Part, kubeconfig: Path, folder: Path, say: progress.Say) -> Report:
    """Run a part; its report and its log are in `folder`. SuiteError where it ends without a report before any test has.

    A test that fails is told in the report, so the program's exit code says nothing more. Where one of several processes was
    lost, ginkgo writes no report: the log says how each test ended."""
    log = folder / f"{part.name}.log"
    told = progress.Told(len(part.tests), say)
    with (
        log.open("w", encoding="utf-8") as kept,
        subprocess.Popen(
            command(suite, part, kubeconfig, folder),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        ) as running,
    ):
        assert running.stdout
        for line in running.stdout:
            # ginkgo's lines with one S for each of the thousands of tests that are not of this part say nothing.
            if set(line.rstrip("\n")) != {"S"}:
                kept.write(line)
                told(line.rstrip("\n"))
    try:
        return junit.read(folder / f"junit_{part.name}_01.xml")
    except junit.ReportError as error:
        why = f"{error}; {log} ends with:\n{_last(log.read_text(encoding='utf-8'))}"
        if not told.states:
            raise SuiteError(why) from None
        return Report(tuple(_from_log(told)), (Result(f"the run of what is {part.name}", "failed", said=why),))


def _from_log(told: progress.Told) -> Iterator[Result]:
    for test, state in told.states.items():
        if state in ("passed", "skipped"):
            yield Result(test, "passed" if state == "passed" else "skipped")
        else:
            yield Result(test, "failed", said=f"ginkgo says: {state}")


def parts(together: Sequence[str], alone: Sequence[str], processes: int) -> list[Part]:
    """What is not empty of a plan: tests that may run beside each other, then those that may not."""
    every = (Part("together", tuple(together), processes), Part("alone", tuple(alone), 1))
    return [part for part in every if part.tests]


def _last(said: str) -> str:
    return "\n".join(f"    {line}" for line in said.strip().splitlines()[-_LAST:])
