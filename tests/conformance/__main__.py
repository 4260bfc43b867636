"""``python -m tests.conformance``: run Kubernetes' Conformance suite against a running cluster; by default the lab."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from clients.access import STATE, Access
from cluster.errors import MenagerieError
from cluster.load import find_cluster, load_cluster
from cluster.project import ROOT
from cluster.spec import Cluster
from operations.stack import access_to
from sandbox.lab import images
from sandbox.lab.plan import REGISTRY
from tests.conformance import plan, stand_ins, suite
from tests.conformance.junit import Report
from tests.conformance.plan import ListError, Plan
from tests.conformance.suite import Suite, SuiteError
from tests.conformance.summary import Summary, summary, text
from tools import build, manifest

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
FORESEEN = (MenagerieError, SuiteError, ListError)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@app.command()
def main(
    name: Annotated[str, typer.Argument(help="The cluster.")] = "lab",
    focus: Annotated[str, typer.Option(help="Only tests whose names match this regular expression (Go syntax).")] = "",
    processes: Annotated[int, typer.Option(min=1, help="Number of processes for tests that may run in parallel.")] = 6,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would run and what would not; contact no cluster.")
    ] = False,
    report: Annotated[Path | None, typer.Option(help="Folder for logs and JUnit files.")] = None,
) -> None:
    """Run the suite, with tests that must run alone last, and print a summary. Exits with 1 unless every planned test passed."""
    try:
        cluster = load_cluster(find_cluster(name, ROOT))
        programs = _suite()
        planned = _plan(programs, focus)
        if dry_run:
            print(listing(planned))
            return
        _refuse_another_release(cluster, programs)
        folder = report or STATE / "conformance" / datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
        result = _run(programs, planned, cluster, processes, folder.absolute())
    except FORESEEN as error:
        sys.exit(f"error: {error}")
    print(f"{text(result)}\nKubernetes {programs.version}; logs and JUnit files: {folder}")
    if not result.good:
        raise typer.Exit(1)


def listing(planned: Plan) -> str:
    """Return a readable list of what would run and what would not."""
    lines = [f"together: {test}" for test in planned.together]
    lines += [f"alone: {test}" for test in planned.alone]
    lines += [f"left out: {test}\n    {reason}" for test, reason in planned.left_out]
    counts = f"{len(planned.together)} together, {len(planned.alone)} alone, {len(planned.left_out)} left out"
    return "\n".join([*lines, counts])


def _suite() -> Suite:
    paths = build.ensure(suite.PROGRAMS, lambda event: _say(str(event)))
    return Suite(manifest.modules()["conformance"].version, *(paths[name] for name in suite.PROGRAMS))


def _plan(programs: Suite, focus: str) -> Plan:
    names = suite.tests(programs)
    planned = plan.plan(names, plan.read(), suite.tests(programs, focus) if focus else None)
    if not planned.all:
        raise SuiteError(f"no test of the suite would run{f': none matches {focus}' if focus else ''}")
    return planned


def _refuse_another_release(cluster: Cluster, programs: Suite) -> None:
    version = cluster.spec.kubernetes.version
    if version.split(".")[:2] != programs.version.split(".")[:2]:
        raise SuiteError(f"{cluster.name} runs Kubernetes {version}, but the suite is that of {programs.version}")


def _run(programs: Suite, planned: Plan, cluster: Cluster, processes: int, folder: Path) -> Summary:
    """Run all parts. Pods on a cloud's cluster get upstream's images; the lab cannot reach them and gets stand-ins."""
    access = access_to(cluster, _say)
    if cluster.spec.control_plane.cloud == "lab":
        images.publish(stand_ins.ensure(_say), REGISTRY)
    folder.mkdir(parents=True, exist_ok=True)
    kubeconfig = _kubeconfig(access)
    parts = suite.parts(planned.together, planned.alone, processes)
    reports = [(part.tests, _part(programs, part, kubeconfig, folder)) for part in parts]
    return summary(planned, reports)


def _part(programs: Suite, part: suite.Part, kubeconfig: Path, folder: Path) -> Report:
    _say(f"{len(part.tests)} tests {part.name}; the log is {folder / f'{part.name}.log'}")
    return suite.run(programs, part, kubeconfig, folder, _say)


def _kubeconfig(access: Access) -> Path:
    """Write the kubeconfig, and make sure that the tests' kubectl reads no other, whatever the operator's environment says."""
    os.environ.pop("KUBECONFIG", None)
    return access.write_kubeconfig()


if __name__ == "__main__":
    app(prog_name="python -m tests.conformance")
