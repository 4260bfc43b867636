"""`doctor`: its progress, output and exit code."""

from __future__ import annotations

from pathlib import Path

import typer

from cli import exits
from cli.output import Steps, print_json
from cli.views.doctor import print_report
from cluster.spec import Cluster
from operations.doctor.examine import examine
from operations.doctor.model import Report

_STEP = "questions"


def doctor(cluster: Cluster, manifest: Path | None, *, as_json: bool) -> None:
    """Ask, print the answers, and exit."""
    steps = Steps((_STEP,), quiet=as_json)
    with steps.step(_STEP):
        report = examine(cluster, steps.detail, manifest)
    if as_json:
        print_json(report.to_json())
    else:
        print_report(report)
    raise typer.Exit(_code(report))


def _code(report: Report) -> int:
    """Return the exit code: what was not seen does not pass."""
    if report.ok:
        return exits.DONE
    return exits.FAILED if report.is_wrong else exits.UNREACHABLE
