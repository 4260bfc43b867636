"""Many clusters at once, each in a process of its own; what they do is undone whatever happens.

A process a cluster: one cloud's SDK is never imported beside another's, and the memory of one cluster is given back
before the next begins.
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
"""The program that a cluster is built with."""

_STACK_STAGES = tuple(stage for stage in Stage if stage is not Stage.SPEC)


@dataclass(frozen=True)
class Subject:
    """One cluster to be looked at. loaded: None where its spec can't be used. must: it was asked for by name, so that
    it fails if its cloud is not offered."""

    name: str
    path: Path
    loaded: Loaded | None
    problems: tuple[Problem, ...]
    must: bool = True


@dataclass(frozen=True)
class Options:
    """program: ``module:function``. jobs: clusters at a time."""

    pulumi: Path
    allow_unknown: bool = False
    program: str = REAL
    jobs: int = len(os.sched_getaffinity(0))


Tell = Callable[[str, Stage, str], None]
"""Is told of a cluster, its stage and a detail, from several threads."""
Done = Callable[[ClusterResult], None]


def engine() -> Path:
    """The pulumi that tools/ builds. FailedError says how to get it."""
    row = next(row for row in build.states() if row["program"] == "pulumi")
    if not row["built"]:
        raise FailedError(
            f"pulumi {row['version']} is not built yet; build it once, in about two minutes, with:\n"
            "  .venv/bin/python -m tools pulumi",
            code="programs",
        )
    return Path(str(row["path"]))


def validate(subjects: Sequence[Subject], options: Options, tell: Tell, done: Done) -> Report:
    """Look at every subject; `done` hears of each as it ends. The report has the order of the subjects.

    An interrupt ends every process and removes every temporary file before it goes on.
    """
    started = time.monotonic()
    with _folder() as root, _ending() as workers, ThreadPoolExecutor(max(1, options.jobs)) as pool:

        def one(number: int, subject: Subject) -> ClusterResult:
            found = _one(subject, options, root / str(number), workers, tell)
            done(found)
            return found

        futures = [pool.submit(one, number, subject) for number, subject in enumerate(subjects)]
        try:
            results = tuple(future.result() for future in futures)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            workers.end()
            raise
    return Report(results, round(time.monotonic() - started, 1))


class Workers:
    """The processes that run, so that they can be ended together. After the end none begins."""

    def __init__(self) -> None:
        self._running: set[Worker] = set()
        self._lock = threading.Lock()
        self._over = False

    @contextmanager
    def started(self, request: dict[str, object], log: Path) -> Iterator[Worker]:
        """A worker for the length of a block."""
        with self._lock:
            if self._over:
                raise InterruptedError("ended before it began")
            worker = Worker(request, log)
            self._running.add(worker)
        try:
            yield worker
        finally:
            worker.end()
            with self._lock:
                self._running.discard(worker)

    def end(self) -> None:
        """End all that run."""
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


def _one(subject: Subject, options: Options, folder: Path, workers: Workers, tell: Tell) -> ClusterResult:
    started = time.monotonic()
    spec = result(Stage.SPEC, "", tuple(map(Finding.of, subject.problems)), 0.0)
    shown = os.path.relpath(subject.path)
    if subject.loaded is None:
        found = ClusterResult(subject.name, "", shown, (spec, *skipped(_STACK_STAGES, "the spec is wrong")))
        return replace(found, stages=tuple(_placed(stage, subject, shown) for stage in found.stages))
    if subject.loaded.cluster.is_lab:
        text = f"{subject.name} is made on this machine and is in no cloud: ./menagerie up {subject.name} builds the real one"
        stages = _not_offered(text, subject)
        return ClusterResult(subject.name, "lab", shown, tuple(_placed(one, subject, shown) for one in (spec, *stages)))
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
    """What a worker comes to."""
    at = Stage.PREVIEW
    for message in worker.messages():
        if "stage" in message:
            at = Stage(message["stage"])
            tell(subject.name, at, message["detail"])
        elif "not_offered" in message:
            return _not_offered(message["not_offered"], subject)
        else:
            return tuple(StageResult.from_json(stage) for stage in message["stages"])
    crash = Finding("crashed", f"the process that did it ended: {worker.last_words()}", "this is a defect")
    after = _STACK_STAGES[_STACK_STAGES.index(at) + 1 :]
    before = _STACK_STAGES[: _STACK_STAGES.index(at)]
    return (*skipped(before, "unknown"), StageResult(at, Outcome.FAILED, "", 0.0, (crash,)), *skipped(after, "crashed"))


def _not_offered(text: str, subject: Subject) -> tuple[StageResult, ...]:
    first, *rest = _STACK_STAGES
    finding = Finding("not-offered", text, "", "error" if subject.must else "note", path=("control_plane", "cloud"))
    outcome = Outcome.FAILED if subject.must else Outcome.SKIPPED
    return (StageResult(first, outcome, "not offered yet", 0.0, (finding,)), *skipped(tuple(rest), "not offered yet"))


def _placed(stage: StageResult, subject: Subject, file: str) -> StageResult:
    """The stage's findings with their place: where the spec has the value, else its file alone."""
    return replace(stage, findings=tuple(_at(finding, subject, file) for finding in stage.findings))


def _at(finding: Finding, subject: Subject, file: str) -> Finding:
    if finding.file:
        return finding
    if subject.loaded is None or not finding.path:
        return replace(finding, file=file)
    mark = subject.loaded.positions.mark(finding.path)
    return replace(finding, file=file, line=mark.line, column=mark.column)
