"""Upstream's suite as programs: list its tests, and run a part of it."""

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
_LIMIT = "24h"  # ginkgo's default is an hour
_LAST = 15  # lines of a program's output


class SuiteError(Exception):
    """The suite cannot be run, or a part ended without a report; the message has the end of its output."""


@dataclass(frozen=True)
class Suite:
    """The suite's programs. version: of Kubernetes, without a v."""

    version: str
    e2e: Path
    ginkgo: Path
    kubectl: Path


@dataclass(frozen=True)
class Part:
    """A part of a run. name: of its report and log. processes: number of processes that share its tests."""

    name: str
    tests: tuple[str, ...]
    processes: int


def tests(suite: Suite, focus: str = "") -> tuple[str, ...]:
    """Return the names of the tests with [Conformance] that ginkgo would run. Contacts no cluster.

    focus: a Go regular expression.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [str(suite.e2e), "--ginkgo.dry-run", f"--ginkgo.label-filter={_LABEL}", f"--report-dir={folder}"]
        command += ["--host=http://127.0.0.1:1", *([f"--ginkgo.focus={focus}"] if focus else [])]
        listed = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if listed.returncode:
            raise SuiteError(f"e2e.test can't list its tests:\n{_last(listed.stdout + listed.stderr)}")
        report = junit.read(Path(folder) / "junit_01.xml")
    return tuple(sorted(result.test for result in report.results if result.state == "passed"))


def command(suite: Suite, part: Part, kubeconfig: Path, folder: Path) -> list[str]:
    """Return the command that runs a part. Tests are named one by one, so that only planned tests run."""
    ginkgo = [str(suite.ginkgo), "-v", f"--procs={part.processes}", f"--timeout={_LIMIT}", "--no-color", "--keep-going"]
    # Otherwise the output of a process that panics is lost.
    ginkgo += ["--output-interceptor-mode=none"]
    ginkgo += [f"--label-filter={_LABEL}", *(f"--focus={re.escape(test)}$" for test in part.tests)]
    e2e = [f"--kubeconfig={kubeconfig}", f"--kubectl-path={suite.kubectl}", "--provider=skeleton"]
    e2e += [f"--report-dir={folder}", f"--report-prefix={part.name}_"]
    e2e += ["--disable-log-dump"]  # of hosts, which the suite would log in to
    return [*ginkgo, str(suite.e2e), "--", *e2e]


def run(suite: Suite, part: Part, kubeconfig: Path, folder: Path, say: progress.Say) -> Report:
    """Run a part, and write its report and log to `folder`.

    Raises SuiteError if the part ends without a report before any test has run. Failed tests are in the report, so the
    program's exit code adds nothing. If one of several processes was lost, ginkgo writes no report, and results come from
    the log.
    """
    log = folder / f"{part.name}.log"
    results = progress.Progress(len(part.tests), say)
    with (
        log.open("w", encoding="utf-8") as log_file,
        subprocess.Popen(
            command(suite, part, kubeconfig, folder),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        ) as process,
    ):
        assert process.stdout
        for line in process.stdout:
            # Omit ginkgo's lines with one S for each of the thousands of tests outside this part.
            if set(line.rstrip("\n")) != {"S"}:
                log_file.write(line)
                results(line.rstrip("\n"))
    try:
        return junit.read(folder / f"junit_{part.name}_01.xml")
    except junit.ReportError as error:
        reason = f"{error}; {log} ends with:\n{_last(log.read_text(encoding='utf-8'))}"
        if not results.states:
            raise SuiteError(reason) from None
        return Report(tuple(_from_log(results)), (Result(f"the part {part.name}", "failed", message=reason),))


def _from_log(results: progress.Progress) -> Iterator[Result]:
    for test, state in results.states.items():
        if state in ("passed", "skipped"):
            yield Result(test, "passed" if state == "passed" else "skipped")
        else:
            yield Result(test, "failed", message=f"ginkgo says: {state}")


def parts(together: Sequence[str], alone: Sequence[str], processes: int) -> list[Part]:
    """Return the parts of a plan that have tests: those that may run in parallel, then those that may not."""
    all_parts = (Part("together", tuple(together), processes), Part("alone", tuple(alone), 1))
    return [part for part in all_parts if part.tests]


def _last(output: str) -> str:
    return "\n".join(f"    {line}" for line in output.strip().splitlines()[-_LAST:])
