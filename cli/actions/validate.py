"""`validate`: its progress and output."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from cli import exits
from cli.output import console, errors, print_json
from cluster.load import check_paths
from cluster.reading import real
from cluster.writing import bears, refuse_foreign, write
from inventories.batches import Amount
from stacks.validation import fleet
from stacks.validation.fleet import Subject
from stacks.validation.model import ClusterResult, Report, Stage, StageResult
from stacks.validation.reports import junit as as_junit
from stacks.validation.reports import sarif as as_sarif

_SARIF = ("a report of validate in SARIF", bears('"name": "menagerie validate"'))
_JUNIT = ("a report of validate for JUnit", bears('<testsuites name="menagerie validate"'))
_MARKS = {"passed": ("✓", "green"), "failed": ("✗", "red"), "skipped": ("-", "dim")}
_COLOURS = {"error": "red", "warning": "yellow"}


def validate(
    paths: Sequence[Path],
    parallel: Amount | None,
    *,
    are_named: bool,
    allow_unknown: bool,
    sarif: Path | None,
    junit: Path | None,
    as_json: bool,
) -> None:
    """Validate the clusters of these specs, print the result, and exit. are_named: on the command line."""
    for file, kind in ((sarif, _SARIF), (junit, _JUNIT)):
        if file:
            refuse_foreign(file, *kind)
    subjects = _subjects(paths, are_named=are_named, allow_unknown=allow_unknown)
    board = _Board([subject.name for subject in subjects])
    with board.shown(quiet=as_json):
        options = fleet.Options(fleet.engine(), allow_unknown)
        if parallel:
            options = replace(options, jobs=parallel.at_least_one(len(subjects)))
        report = fleet.validate(subjects, options, board.tell, board.done)
    _write(report, sarif, junit)
    if as_json:
        print_json(report.to_json())
    else:
        _print(report)
    raise typer.Exit(exits.BAD_INPUT if report.spec_is_bad else exits.DONE if report.ok else exits.FAILED)


def _subjects(files: Sequence[Path], *, are_named: bool, allow_unknown: bool) -> list[Subject]:
    """Return the clusters, checked together. A lab is not a cloud: it is skipped unless it is named or has errors."""
    paths = {real(path): path for path in files}
    loaded, problems = check_paths(paths.values(), allow_unknown=allow_unknown)
    usable = {item.path: item for item in loaded}
    subjects = []
    for path in paths.values():
        folder, loaded_ = real(path).parent, usable.get(path)
        problems_ = tuple(problem for problem in problems if real(problem.file).is_relative_to(folder))
        if are_named or loaded_ is None or not loaded_.cluster.is_lab:
            name = loaded_.cluster.name if loaded_ else folder.name
            subjects.append(Subject(name, path, loaded_, problems_, must=are_named))
    return subjects


def _write(report: Report, sarif: Path | None, junit: Path | None) -> None:
    if sarif:
        write(sarif, as_sarif.text(report), *_SARIF)
    if junit:
        write(junit, as_junit.text(report), *_JUNIT)


class _Board:
    """Progress: on a terminal a line per running cluster, elsewhere a line per finished one."""

    def __init__(self, names: list[str]) -> None:
        self._total, self._width = len(names), max(map(len, names), default=0)
        self._running: dict[str, tuple[Stage, str, float]] = {}
        self._ended = 0
        self._quiet = False
        self._lock = threading.Lock()

    @contextmanager
    def shown(self, *, quiet: bool) -> Iterator[None]:
        """Show progress while the block runs."""
        self._quiet = quiet
        if quiet or not errors.is_terminal:
            yield
        else:
            with Live(get_renderable=self._drawn, console=errors, refresh_per_second=4, transient=True):
                yield

    def tell(self, name: str, stage: Stage, detail: str) -> None:
        """Take a cluster's stage and detail."""
        with self._lock:
            began = self._running[name][2] if name in self._running else time.monotonic()
            self._running[name] = (stage, detail, began)

    def done(self, result: ClusterResult) -> None:
        """Take the result of a cluster."""
        with self._lock:
            self._ended += 1
            self._running.pop(result.cluster, None)
            if not self._quiet:
                mark = _MARKS["passed" if result.ok else "failed"]
                head = f"{self._ended:>2}/{self._total} {result.seconds:6.1f} s "
                errors.print(Text.assemble((head, "dim"), mark, f" {result.cluster}"))

    def _drawn(self) -> Group:
        with self._lock:
            lines = []
            for name, (stage, detail, began) in sorted(self._running.items()):
                head = f"      {time.monotonic() - began:6.1f} s   {name:<{self._width}}  {stage:<14}  "
                line = Text.assemble((head, "bold"), (detail, "dim"), no_wrap=True, overflow="ellipsis")
                line.truncate(errors.width - 1, overflow="ellipsis")
                lines.append(line)
            return Group(*lines)


def _print(report: Report) -> None:
    """Print every cluster with its stages, errors and warnings, and the number of notes."""
    for cluster in report.clusters:
        console.print(Text.assemble((cluster.cluster, "bold"), f"  {cluster.cloud}  {cluster.seconds:.1f} s"))
        for (outcome, detail), stages in groupby(cluster.stages, lambda stage: (stage.outcome.value, stage.summary)):
            _print_stages(list(stages), outcome, detail)
        _print_notes(cluster)
    accepted = sum(cluster.is_accepted for cluster in report.clusters)
    failed = sum(not cluster.ok for cluster in report.clusters)
    left = len(report.clusters) - accepted - failed
    counts = [f"{accepted} passed", f"{failed} failed", f"{left} not run"]
    verdict = ", ".join(count for count in counts if not count.startswith("0 ")) or "no cluster is in a cloud"
    console.print(
        f"{verdict}; {report.seconds:.0f} s; clouds were simulated, and nothing ran outside this machine", markup=False
    )


def _print_stages(stages: list[StageResult], outcome: str, detail: str) -> None:
    """Print stages with the same outcome: on one line if they did not run."""
    if outcome == "skipped":
        console.print(
            Text.assemble("  ", _MARKS[outcome], f" {', '.join(stage.stage for stage in stages)}: ", (detail, "dim"))
        )
        return
    for stage in stages:
        line = Text.assemble("  ", _MARKS[outcome], f" {stage.stage:<14}  ", (detail, "dim"))
        line.rstrip()
        console.print(line)
        for finding in stage.findings:
            if finding.severity in _COLOURS:
                text = str(finding).replace("\n", "\n    ")
                console.print(Text(f"    {text}", style=_COLOURS[finding.severity]))


def _print_notes(cluster: ClusterResult) -> None:
    notes = [finding for finding in cluster.findings if finding.severity == "note"]
    if notes:
        counts = ", ".join(
            f"{sum(note.rule == rule for note in notes)} {rule}" for rule in {note.rule: 0 for note in notes}
        )
        console.print(Text(f"  notes: {counts}; --json lists them", style="dim"))
