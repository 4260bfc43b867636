"""Validates many clusters at once, each in a separate process, and cleans up in every case.

One process per cluster: SDKs of different clouds are never imported together, and the memory of one cluster is freed
before the next starts.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from cluster.errors import FailedError
from cluster.load import Loaded
from cluster.problems import Problem
from stacks.validation.model import ClusterResult, Finding, Outcome, Report, Stage, StageResult, result, skipped
from stacks.validation.processes import Worker
from tools import build

REAL = "stacks.program:declare"
"""The program that builds real clusters."""

_STACK_STAGES = tuple(stage for stage in Stage if stage is not Stage.SPEC)


@dataclass(frozen=True)
class Subject:
    """One cluster to validate. loaded: None if its spec can't be used. must: it was requested by name, so it fails if its
    cloud is not offered."""

    name: str
    path: Path
    loaded: Loaded | None
    problems: tuple[Problem, ...]
    must: bool = True


@dataclass(frozen=True)
class Options:
    """program: ``module:function``. jobs: how many clusters to validate at a time."""

    pulumi: Path
    allow_unknown: bool = False
    program: str = REAL
    jobs: int = len(os.sched_getaffinity(0))


Tell = Callable[[str, Stage, str], None]
"""Called with a cluster's name, its stage and a detail, from several threads."""
Done = Callable[[ClusterResult], None]


def engine() -> Path:
    """Return the pulumi that tools/ builds. Raises FailedError, which says how to build it."""
    row = next(row for row in build.states() if row["program"] == "pulumi")
    if not row["built"]:
        raise FailedError(
            f"pulumi {row['version']} is not built yet; build it once, in about two minutes, with:\n"
            "  .venv/bin/python -m tools pulumi",
            code="programs",
        )
    return Path(str(row["path"]))


def validate(subjects: Sequence[Subject], options: Options, tell: Tell, done: Done) -> Report:
    """Validate every subject; call `done` when each finishes. The report has the order of the subjects.

    An interrupt ends every process and removes every temporary file before it propagates.
    """
    started = time.monotonic()
    with _folder() as root, _ending() as workers, ThreadPoolExecutor(max(1, options.jobs)) as pool:

        def run(number: int, subject: Subject) -> ClusterResult:
            cluster_result = _validated(subject, options, root / str(number), workers, tell)
            done(cluster_result)
            return cluster_result

        futures = [pool.submit(run, number, subject) for number, subject in enumerate(subjects)]
        try:
            results = tuple(future.result() for future in futures)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            workers.end()
            raise
    return Report(results, round(time.monotonic() - started, 1))


class Workers:
    """The running processes, so that they can be ended together. None starts after `end`."""

    def __init__(self) -> None:
        self._running: set[Worker] = set()
        self._lock = threading.Lock()
        self._over = False

    @contextmanager
    def started(self, request: dict[str, object], log: Path) -> Iterator[Worker]:
        """Run a worker for a block."""
        with self._lock:
            if self._over:
                raise InterruptedError("ended before it started")
            worker = Worker(request, log)
            self._running.add(worker)
        try:
            yield worker
        finally:
            worker.end()
            with self._lock:
                self._running.discard(worker)

    def end(self) -> None:
        """End all running processes."""
        with self._lock:
            self._over = True
            running = list(self._running)
        for worker in running:
            worker.end()


@contextmanager
def _ending() -> Iterator[Workers]:
    workers = Workers()
    try:
        yield workers
    finally:
        workers.end()


@contextmanager
def _folder() -> Iterator[Path]:
    root = tempfile.mkdtemp(prefix="menagerie-validate-")
    try:
        yield Path(root)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _validated(subject: Subject, options: Options, folder: Path, workers: Workers, tell: Tell) -> ClusterResult:
    started = time.monotonic()
    spec = result(Stage.SPEC, "", tuple(map(Finding.of, subject.problems)), 0.0)
    shown = os.path.relpath(subject.path)
    if subject.loaded is None:
        bad = ClusterResult(subject.name, "", shown, (spec, *skipped(_STACK_STAGES, "the spec is wrong")))
        return replace(bad, stages=tuple(_placed(stage, subject, shown) for stage in bad.stages))
    if subject.loaded.cluster.is_lab:
        text = f"{subject.name} runs on this machine and in no cloud; run ./menagerie up {subject.name} to build it"
        stages = _not_offered(text, subject)
        return ClusterResult(
            subject.name, "lab", shown, tuple(_placed(stage, subject, shown) for stage in (spec, *stages))
        )
    request: dict[str, object] = {
        "path": str(subject.path.resolve()),
        "allow_unknown": options.allow_unknown,
        "program": options.program,
        "pulumi": str(options.pulumi),
        "folder": str(folder),
    }
    folder.mkdir()
    with workers.started(request, folder / "worker.log") as worker:
        stages = _followed(worker, subject, tell)
    stages = tuple(_placed(stage, subject, shown) for stage in (spec, *stages))
    cloud = subject.loaded.cluster.spec.control_plane.cloud.value
    return ClusterResult(subject.name, cloud, shown, stages, round(time.monotonic() - started, 1))


def _followed(worker: Worker, subject: Subject, tell: Tell) -> tuple[StageResult, ...]:
    """Read a worker's messages until it finishes; return its stages."""
    at = Stage.PREVIEW
    for message in worker.messages():
        if "stage" in message:
            at = Stage(message["stage"])
            tell(subject.name, at, message["detail"])
        elif "not_offered" in message:
            return _not_offered(message["not_offered"], subject)
        else:
            return tuple(StageResult.from_json(stage) for stage in message["stages"])
    crash = Finding("crashed", f"the process of this cluster ended: {worker.last_words()}", "this is a bug")
    after = _STACK_STAGES[_STACK_STAGES.index(at) + 1 :]
    before = _STACK_STAGES[: _STACK_STAGES.index(at)]
    return (*skipped(before, "unknown"), StageResult(at, Outcome.FAILED, "", 0.0, (crash,)), *skipped(after, "crashed"))


def _not_offered(text: str, subject: Subject) -> tuple[StageResult, ...]:
    first, *rest = _STACK_STAGES
    finding = Finding("not-offered", text, "", "error" if subject.must else "note", path=("control_plane", "cloud"))
    outcome = Outcome.FAILED if subject.must else Outcome.SKIPPED
    return (StageResult(first, outcome, "not offered yet", 0.0, (finding,)), *skipped(tuple(rest), "not offered yet"))


def _placed(stage: StageResult, subject: Subject, file: str) -> StageResult:
    """Return a stage with its findings located in the spec, or at least in its file."""
    return replace(stage, findings=tuple(_at(finding, subject, file) for finding in stage.findings))


def _at(finding: Finding, subject: Subject, file: str) -> Finding:
    if finding.file:
        return finding
    if subject.loaded is None or not finding.path:
        return replace(finding, file=file)
    mark = subject.loaded.positions.mark(finding.path)
    return replace(finding, file=file, line=mark.line, column=mark.column)
