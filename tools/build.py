"""Provide the programs of tools/programs.toml in the cache, built or downloaded. The command is `python -m tools`."""

from __future__ import annotations

import queue
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from cluster.errors import FailedError
from cluster.locks import locked
from tools import added, cache, carried, golang, manifest, releases
from tools.manifest import Module
from tools.releases import ReleaseFile


@dataclass(frozen=True)
class BuildEvent:
    """One step of a build, reported about once a second.

    index of total counts modules from 1. `seconds`: elapsed; `expected`: of a cold build on 2 cores, a rough figure.
    `left`: expected seconds of the modules after this one. `detail`: the package being built, or the download.
    """

    state: Literal["cached", "waiting", "fetching", "fetched", "building", "built"]
    module: str
    version: str
    programs: tuple[str, ...]
    index: int
    total: int
    seconds: float = 0.0
    expected: int = 0
    left: int = 0
    detail: str = ""

    def __str__(self) -> str:
        """Return the event as a readable line."""
        if self.state == "cached":
            return f"{len(self.programs)} programs are in the cache"
        head = f"[{self.index}/{self.total}] {self.module} {self.version}"
        if self.state in ("built", "fetched"):
            return f"{head}: {', '.join(self.programs)} {self.state} in {self.seconds:.0f} s"
        if self.state == "fetching":
            return f"{head}: fetching the release  {self.detail[-60:]}".rstrip()
        activity = "waiting for another process that builds it" if self.state == "waiting" else self.detail[-60:]
        left = f", then about {self.left} s for the others" if self.left else ""
        return f"{head}: {self.seconds:.0f} of about {self.expected} s{left}  {activity}".rstrip()


Progress = Callable[[BuildEvent], None]


@dataclass(frozen=True)
class _Work:
    """What is missing from one module: paths of programs to build, and of programs in release files."""

    module: Module
    paths: Mapping[str, Path]
    released: Mapping[Path, ReleaseFile]

    def files(self) -> list[dict[Path, ReleaseFile]]:
        """Return what is missing, grouped by release file."""
        sources = dict.fromkeys(file.source for file in self.released.values())
        return [{path: file for path, file in self.released.items() if file.source == source} for source in sources]

    @property
    def seconds(self) -> int:
        """Expected seconds of a cold build on 2 cores; downloads are not estimated."""
        return self.module.seconds if self.paths else 0


def ensure(programs: Iterable[str], progress: Progress | None = None) -> dict[str, Path]:
    """Provide what is missing, and return the path of each program in the cache, in the given order.

    Programs are built from source, or taken from the project's release if that is configured (`releases.origin`) and pinned.
    Safe to call from several processes: one of them builds a module while the others wait for it.
    Raises LookupError for a program that programs.toml does not have, and FailedError when a build fails, when a release
    is not available, and when there is no Go to build with.
    """
    groups = manifest.grouped(programs)
    go = golang.find(max((module.go for module, _ in groups), default=()))
    released = {module.name: _released(module) for module, _ in groups}
    built = {name: _path(module, name, go, released[module.name]) for module, names in groups for name in names}
    paths = built | _carried((module, name) for module, names in groups for name in names)
    work = [
        _work(module, {name: paths[name] for name in names if not paths[name].exists()}, released[module.name])
        for module, names in groups
        if not all(paths[name].exists() for name in names)
    ]
    report = progress or (lambda event: None)
    cached = tuple(program for program, path in paths.items() if path.exists())
    if cached:
        report(BuildEvent("cached", "", "", cached, 0, len(work)))
    if any(item.paths for item in work):
        golang.install(go)
    for index, item in enumerate(work, 1):
        left, names = sum(later.seconds for later in work[index:]), tuple(item.paths)
        start = BuildEvent(
            "building", item.module.name, item.module.version, names, index, len(work), 0.0, item.seconds, left
        )
        _provide(item, go, start, report)
    return paths


def _released(module: Module) -> Mapping[str, ReleaseFile]:
    return releases.pinned(module) if releases.origin() == "release" else {}


def _carried(programs: Iterable[tuple[Module, str]]) -> dict[str, Path]:
    """Return the paths of programs that a bundle brought, if they come from there."""
    if releases.origin() != "bundle":
        return {}
    return carried.of({name: module.version for module, name in programs})


def _path(module: Module, program: str, go: golang.Go, released: Mapping[str, ReleaseFile]) -> Path:
    file, name = released.get(program), manifest.file_name(program)
    key = f"release-{file.sha256[:16]}" if file else module.key(program, go.version, go.architecture)
    return cache.root() / "programs" / name / f"{module.version}-{key}" / name


def _work(module: Module, missing: Mapping[str, Path], released: Mapping[str, ReleaseFile]) -> _Work:
    files = {path: released[program] for program, path in missing.items() if program in released}
    return _Work(module, {program: path for program, path in missing.items() if program not in released}, files)


def _provide(work: _Work, go: golang.Go, start: BuildEvent, report: Progress) -> None:
    folder = cache.root() / "programs" / ".building" / work.module.name
    with locked(folder.with_suffix(".lock"), busy=lambda: report(replace(start, state="waiting"))) as lock:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for targets in work.files():
            _fetch(targets, folder, start, report)
        if work.paths:
            _build(work.module, work.paths, go, folder, lock, start, report)
        shutil.rmtree(folder)


def _fetch(targets: Mapping[Path, ReleaseFile], folder: Path, start: BuildEvent, report: Progress) -> None:
    start_s = time.monotonic()
    event = replace(start, state="fetching", programs=tuple(path.name for path in targets))
    report(event)

    def report_download(detail: str) -> None:
        report(replace(event, seconds=time.monotonic() - start_s, detail=detail))

    # Another process may have fetched some of them meanwhile.
    if missing := {path: file for path, file in targets.items() if not path.exists()}:
        releases.fetch(missing, folder, report_download)
    report(replace(event, state="fetched", seconds=time.monotonic() - start_s))


def _build(
    module: Module,
    paths: Mapping[str, Path],
    go: golang.Go,
    folder: Path,
    lock: int,
    start: BuildEvent,
    report: Progress,
) -> None:
    start_s = time.monotonic()
    missing = {program: path for program, path in paths.items() if not path.exists()}
    if missing:
        _run_go(module, missing, go, folder, lock, start, report)
    for program, path in missing.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        (folder / _go_name(module, program)).rename(path)
    report(replace(start, state="built", seconds=time.monotonic() - start_s))


def _go_name(module: Module, program: str) -> str:
    """Return go's file name for a package's program: the last path element without the major version; for tests with .test."""
    *_, parent, last = module.programs[program].split("/")
    name = parent if last[0] == "v" and last[1:].isdigit() else last
    return f"{name}.test" if program in module.tests else name


def commands(
    module: Module, programs: Iterable[str], go: golang.Go, output: Path, more: Iterable[str] = ()
) -> list[list[str]]:
    """Return the go commands that build some programs of a module: one for programs, one for tests. more: further flags."""
    tags = [f"-tags={','.join(module.tags)}"] if module.tags else []
    flags = ["-trimpath", "-buildvcs=false", "-v", *tags, *more, "-ldflags", module.linker_flags(), "-o", f"{output}/"]
    names = list(programs)
    tests = [module.programs[name] for name in names if name in module.tests]
    others = [module.programs[name] for name in names if name not in module.tests]
    verbs = ((("build",), others), (("test", "-c", "-vet=off"), tests))
    return [[str(go.program), *verb, *flags, *packages] for verb, packages in verbs if packages]


def _run_go(
    module: Module, programs: Iterable[str], go: golang.Go, output: Path, lock: int, start: BuildEvent, report: Progress
) -> None:
    start_s = time.monotonic()
    log = output.with_suffix(".log")

    def report_line(line: str) -> None:
        report(replace(start, seconds=time.monotonic() - start_s, detail=line))

    report(start)
    lines: list[str] = []
    for command in commands(module, programs, go, output, added.flags(module, go, output)):
        pauses = iter(golang.PAUSES_S)
        while _run(command, module, go, lock, lines, report_line):
            log.write_text("\n".join(lines) + "\n")
            pause = next(pauses, None) if golang.is_transient("\n".join(lines[-_LAST:])) else None
            if pause is None:
                raise FailedError(_failure(module, lines, log), code="programs")
            report_line(f"the network failed; retrying in {pause:g} s")
            time.sleep(pause)
        log.write_text("\n".join(lines) + "\n")


def _run(
    command: list[str], module: Module, go: golang.Go, lock: int, lines: list[str], report: Callable[[str], None]
) -> int:
    """Return the command's exit code; add its output to `lines`."""
    process = subprocess.Popen(
        command,
        cwd=module.folder,
        env=go.environment(module.cgo),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        pass_fds=(lock,),
    )
    try:
        lines += _follow(process, report)
    except BaseException:
        process.terminate()
        process.wait()
        raise
    return process.wait()


def _follow(process: subprocess.Popen[str], report: Callable[[str], None]) -> list[str]:
    """Read the process's stderr to its end; report the newest line at most once a second, even while there is no output."""
    assert process.stderr is not None
    arrivals: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read(stream: Iterable[str]) -> None:
        for line in stream:
            arrivals.put(line.rstrip("\n"))
        arrivals.put(None)

    threading.Thread(target=read, args=(process.stderr,), daemon=True).start()
    lines: list[str] = []
    last_report_s = time.monotonic()
    while True:
        try:
            line = arrivals.get(timeout=1)
            if line is None:
                return lines
            lines.append(line)
        except queue.Empty:
            pass
        if time.monotonic() - last_report_s >= 1:
            last_report_s = time.monotonic()
            report(lines[-1] if lines else "")


_LAST = 15  # lines of go's output
_WAYS_OUT = (
    ("no space left", "The disk is full. The cache is {cache}; `go env GOCACHE GOMODCACHE` prints Go's own."),
    ("signal: killed", "The kernel killed the compiler for lack of memory. Run it again with GOFLAGS=-p=1."),
    ("executable file not found", "A build tool is missing: run `make setup`, or install {debian}."),
    ("pkg-config", "A library is missing: run `make setup`, or install {debian}."),
    ("cannot find -l", "A library is missing: run `make setup`, or install {debian}."),
    ("fatal error:", "A header is missing: run `make setup`, or install {debian}."),
    ("403 forbidden", "The module proxy refuses a module: set GOPROXY to a proxy that has it."),
    ("dial tcp", "The module proxy cannot be reached: check the network, or set GOPROXY to another proxy."),
    (
        "checksum mismatch",
        "A module differs from the one that tools/{module}/go.sum pins: do not use this module proxy.",
    ),
    (
        "missing go.sum",
        "go.mod and go.sum disagree: run `go mod download` in tools/{module} and check the diff.",
    ),
)


def _failure(module: Module, lines: Sequence[str], log: Path) -> str:
    text = "\n".join(lines).lower()
    advice = next((way_out for sign, way_out in _WAYS_OUT if sign in text), "The full output is in {log}.")
    names = {"cache": cache.root(), "debian": " ".join(module.debian), "module": module.name, "log": log}
    tail = "\n".join(f"    {line}" for line in lines[-_LAST:])
    return f"building {module.name} {module.version} failed; go's output ends with:\n{tail}\n{advice.format(**names)}\nLog: {log}"


def states() -> list[dict[str, str | bool]]:
    """Return every program of the manifest.

    With name, module, version, path in the cache, whether it is built, and whether a release of it is pinned.
    """
    modules = manifest.modules().values()
    go = golang.find(max(module.go for module in modules))
    brought = _carried((module, program) for module in modules for program in module.programs)
    return [
        {
            "program": program,
            "module": module.name,
            "version": module.version,
            "path": str(path),
            "built": path.exists(),
            "release": program in releases.pinned(module),
        }
        for module in modules
        for program in module.programs
        for path in [brought.get(program) or _path(module, program, go, _released(module))]
    ]
