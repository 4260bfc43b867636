"""``python -m tests.conformance``: run Kubernetes' Conformance suite against a cluster that is up; by default the lab."""

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
    focus: Annotated[str, typer.Option(help="Only tests whose names fit this regular expression (Go's).")] = "",
    processes: Annotated[int, typer.Option(min=1, help="How many run tests that may run beside each other.")] = 6,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would run and what not; ask no cluster.")
    ] = False,
    report: Annotated[Path | None, typer.Option(help="A folder for logs and JUnit files.")] = None,
) -> None:
    """Run the suite, those tests that must be alone at the end, and sum up. Ends with 1 unless all that was to run passed."""
    try:
        cluster = load_cluster(find_cluster(name, ROOT))
        there = _suite()
        planned = _plan(there, focus)
        if dry_run:
            print(listing(planned))
            return
        _refuse_another_release(cluster, there)
        folder = report or STATE / "conformance" / datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
        told = _run(there, planned, cluster, processes, folder.absolute())
    except FORESEEN as error:
        sys.exit(f"error: {error}")
    print(f"{text(told)}\nKubernetes {there.version}; logs and JUnit files: {folder}")
    if not told.good:
        raise typer.Exit(1)


def listing(planned: Plan) -> str:
    """What would run and what not, for people."""
    lines = [f"together: {test}" for test in planned.together]
    lines += [f"alone: {test}" for test in planned.alone]
    lines += [f"left out: {test}\n    {reason}" for test, reason in planned.left_out]
    numbers = f"{len(planned.together)} together, {len(planned.alone)} alone, {len(planned.left_out)} left out"
    return "\n".join([*lines, numbers])


def _suite() -> Suite:
    paths = build.ensure(suite.PROGRAMS, lambda event: _say(str(event)))
    return Suite(manifest.modules()["conformance"].version, *(paths[name] for name in suite.PROGRAMS))


def _plan(there: Suite, focus: str) -> Plan:
    known = suite.tests(there)
    planned = plan.plan(known, plan.read(), suite.tests(there, focus) if focus else None)
    if not planned.all:
        raise SuiteError(f"no test of the suite is to run{f': none fits {focus}' if focus else ''}")
    return planned


def _refuse_another_release(cluster: Cluster, there: Suite) -> None:
    version = cluster.spec.kubernetes.version
    if version.split(".")[:2] != there.version.split(".")[:2]:
        raise SuiteError(f"{cluster.name} runs Kubernetes {version}, and the suite is that of {there.version}")


def _run(there: Suite, planned: Plan, cluster: Cluster, processes: int, folder: Path) -> Summary:
    """Against a cluster of a cloud pods get upstream's images; the lab has no way to them."""
    access = access_to(cluster, _say)
    if cluster.spec.control_plane.cloud == "lab":
        images.publish(stand_ins.ensure(_say), REGISTRY)
    folder.mkdir(parents=True, exist_ok=True)
    kubeconfig = _kubeconfig(access)
    parts = suite.parts(planned.together, planned.alone, processes)
    reports = [(part.tests, _part(there, part, kubeconfig, folder)) for part in parts]
    return summary(planned, reports)


def _part(there: Suite, part: suite.Part, kubeconfig: Path, folder: Path) -> Report:
    _say(f"{len(part.tests)} tests {part.name}; the log is {folder / f'{part.name}.log'}")
    return suite.run(there, part, kubeconfig, folder, _say)


def _kubeconfig(access: Access) -> Path:
    """kubectl of the tests reads no other, whatever the operator's own environment names."""
    os.environ.pop("KUBECONFIG", None)
    return access.write_kubeconfig()


if __name__ == "__main__":
    app(prog_name="python -m tests.conformance")
