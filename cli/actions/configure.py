"""`configure`: its plan, question and output."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import typer
from rich.text import Text

from cli.actions.holding import hold
from cli.asking import confirm
from cli.failures import explain
from cli.output import Steps, console, errors, print_json
from cli.views.workers import View
from cluster.revision import revision
from cluster.spec import Cluster
from cluster.writing import bears, refuse_foreign, write
from inventories.page import Run, html
from inventories.report import RunReport
from operations import configure as operation
from operations import stack
from operations.build import Selection
from operations.configure import ConfigureWork, PlaybookRequest, workers_error
from operations.record import Operation
from operations.record.holder import Holder
from operations.upgrade import guard

__all__ = ["PlaybookRequest", "configure"]

_REPORT = ("a page about a run of configure", bears("<title>Workers of "))


def configure(cluster: Cluster, request: PlaybookRequest, *, report: Path | None, yes: bool, as_json: bool) -> None:
    """Configure workers, and write a page about the run if `report` names a file."""
    if report:
        refuse_foreign(report, *_REPORT)
    operation.refuse(cluster, request)
    steps = Steps(("cluster", "API server", "workers") if request.joins else ("cluster", "workers"), quiet=as_json)
    with steps.step("cluster"):
        access = stack.access_to(cluster, steps.detail)
        if request.joins:
            guard.refuse_other_release(cluster, access)
        behind = frozenset[str]() if request.check else guard.other_workers(cluster, access, request.tags)
        work = operation.plan(cluster, access, replace(request, leaves=behind))
    if behind:
        errors.print(guard.left_to_upgrade(cluster, behind), style="yellow", markup=False)
    _introduce(cluster, work, quiet=as_json)
    if work.hosts and not yes:
        again = f"configure {cluster.name}"
        confirm(f"Configure {len(work.hosts)} hosts?", again, see=("what would change", f"{again} --dry-run --diff"))
    about = _about(cluster, request) if report else None
    with _held(cluster, work) as held:
        result, why_stopped = _run(cluster, work, steps, quiet=as_json)
        if held:
            held.outcome = _outcome(result, why_stopped)
    if report and about:
        _write(report, result, about)
    _conclude(cluster.name, work, result, why_stopped, as_json=as_json)


def _outcome(report: RunReport, why_stopped: str) -> BaseException | None:
    if report.canceled:
        return KeyboardInterrupt()
    return None if report.succeeded else workers_error(report, why_stopped)


def _held(cluster: Cluster, work: ConfigureWork) -> AbstractContextManager[Operation | None]:
    """Hold the cluster's lock while something may change."""
    request = work.request
    if request.check or not work.hosts:
        return nullcontext()
    about = Selection(request.limit, request.tags).options
    return hold(cluster, work.access, "configure", about, options=request.options, repeatable=True)


def _run(cluster: Cluster, work: ConfigureWork, steps: Steps, *, quiet: bool) -> tuple[RunReport, str]:
    if not work.hosts:
        return operation.nothing(work), ""
    tokens: operation.Tokens = operation.no_tokens
    if work.request.joins:
        with steps.step("API server"):
            tokens = operation.tokens(cluster, work.access, steps.detail)
    view = View(len(work.hosts), quiet=quiet)
    with view.shown():
        result, why_stopped = operation.configure(work, tokens, view.hear)
    view.end(result)
    return result, why_stopped


def _introduce(cluster: Cluster, work: ConfigureWork, *, quiet: bool) -> None:
    if quiet:
        return
    roles = ", ".join(work.request.tags) or "all roles"
    line = f"{cluster.name}: {len(work.hosts)} workers, {roles}"
    if len(work.batches) > 1:
        line += f", {len(work.batches[0])} at a time"
    if work.left_out:
        line += f"; {len(work.left_out)} skipped, because they are at this state already"
    errors.print(line, markup=False)


def _about(cluster: Cluster, request: PlaybookRequest) -> Run:
    """Return what the page says about a run that starts now."""
    began = datetime.now().astimezone()
    return Run(cluster.name, Holder.this().who, str(revision()), request.options, began, check=request.check)


def _write(path: Path, report: RunReport, about: Run) -> None:
    write(path, html(report, about, datetime.now().astimezone()), *_REPORT)
    errors.print(f"the report is in {path}", markup=False)


def _conclude(cluster: str, work: ConfigureWork, report: RunReport, why_stopped: str, *, as_json: bool) -> None:
    """Print the result. If workers failed, fail as `up` does."""
    if report.canceled:
        raise KeyboardInterrupt
    if report.succeeded:
        if as_json:
            print_json(report.to_json())
        else:
            _print(cluster, work.request, report)
        return
    error = workers_error(report, why_stopped)
    if not as_json:
        raise error
    foreseen = explain(error)
    assert foreseen is not None
    errors.print(Text(f"error: {foreseen.text}", style="red"))
    print_json({**report.to_json(), **foreseen.to_json()})
    raise typer.Exit(foreseen.exit_code)


def _print(cluster: str, request: PlaybookRequest, report: RunReport) -> None:
    changed = sum(1 for host in report.hosts.values() if host.changed)
    verb = "would change" if request.check else "changed"
    if not report.hosts:
        summary = (
            "nothing to do; run without --resume to check every host" if report.left_out else "no workers at sites"
        )
    else:
        summary = f"{len(report.hosts)} hosts in {report.seconds:.0f} s; {changed} {verb}, {report.changed} tasks"
    console.print(f"{cluster}: {summary}", markup=False)
    if request.check or request.diff:
        for host, tasks in report.changes.items():
            console.print(f"{host}: {'; '.join(tasks)}", markup=False)
            if request.diff:
                console.print(Text(report.diffs.get(host, "").rstrip(), style="dim"))
