"""Builds the programs of tools/programs.toml into the cache. The command is `python -m tools`."""

from __future__ import annotations

import queue
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tools import cache, golang, manifest
from tools.manifest import Module


@dataclass(frozen=True)
class BuildEvent:
    """One step of a build, told about once a second.

    index of total counts modules from 1. `seconds` so far; `expected`: of a cold build on 2 cores, a
    rough measure. `left`: expected seconds of the modules after this one. `detail`: the package at work.
    """

    state: Literal["cached", "waiting", "building", "built"]
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
        """The event as a line for people."""
        if self.state == "cached":
            return f"{len(self.programs)} programs are in the cache"
        head = f"[{self.index}/{self.total}] {self.module} {self.version}"
        if self.state == "built":
            return f"{head}: {', '.join(self.programs)} built in {self.seconds:.0f} s"
        doing = "another process builds it, waiting" if self.state == "waiting" else self.detail[-60:]
        left = f", then about {self.left} s for the others" if self.left else ""
        return f"{head}: {self.seconds:.0f} of about {self.expected} s{left}  {doing}".rstrip()


Progress = Callable[[BuildEvent], None]


class BuildError(Exception):
    """A program could not be built: what, go's last words, where all of them are, and the way out."""


def ensure(programs: Iterable[str], progress: Progress | None = None) -> dict[str, Path]:
    """The path of each program in the cache, after building what is missing, in the order given.

    Safe to call from several processes: each module is built by one, the others wait for it.
    LookupError for a program that programs.toml does not have, BuildError when a build fails,
    golang.GoMissing when there is no Go to build with.
    """
    groups = manifest.grouped(programs)
    go = golang.find(max((module.go for module, _ in groups), default=()))
    paths = {program: _path(module, program, go) for module, names in groups for program in names}
    missing = [(module, [name for name in names if not paths[name].exists()]) for module, names in groups]
    work = [(module, names) for module, names in missing if names]
    tell = progress or (lambda event: None)
    cached = tuple(program for program, path in paths.items() if path.exists())
    if cached:
        tell(BuildEvent("cached", "", "", cached, 0, len(work)))
    if work:
        golang.install(go)
    for index, (module, names) in enumerate(work, 1):
        left = sum(later.seconds for later, _ in work[index:])
        start = BuildEvent(
            "building", module.name, module.version, tuple(names), index, len(work), 0.0, module.seconds, left
        )
        _build(module, {name: paths[name] for name in names}, go, start, tell)
    return paths


def _path(module: Module, program: str, go: golang.Go) -> Path:
    key = module.key(program, go.version, go.architecture)
    name = manifest.file_name(program)
    return cache.root() / "programs" / name / f"{module.version}-{key}" / name


def _build(module: Module, paths: dict[str, Path], go: golang.Go, start: BuildEvent, tell: Progress) -> None:
    began = time.monotonic()
    folder = cache.root() / "programs" / ".building" / module.name
    with cache.locked(folder.with_suffix(".lock"), lambda: tell(replace(start, state="waiting"))) as lock:
        missing = {program: path for program, path in paths.items() if not path.exists()}
        if missing:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            _run_go(module, missing, go, folder, lock, start, tell)
            for program, path in missing.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                (folder / _go_name(module.programs[program])).rename(path)
            shutil.rmtree(folder)
    tell(replace(start, state="built", seconds=time.monotonic() - began))


def _go_name(package: str) -> str:
    """What go build calls the program of a package: its last element, the major version aside."""
    *_, parent, last = package.split("/")
    return parent if last[0] == "v" and last[1:].isdigit() else last


def command(module: Module, programs: Iterable[str], go: golang.Go, output: Path) -> list[str]:
    """The go build command for some programs of a module."""
    tags = [f"-tags={','.join(module.tags)}"] if module.tags else []
    flags = ["-trimpath", "-buildvcs=false", "-v", *tags, "-ldflags", module.linker_flags()]
    return [str(go.program), "build", *flags, "-o", f"{output}/", *(module.programs[name] for name in programs)]


def _run_go(
    module: Module, programs: Iterable[str], go: golang.Go, output: Path, lock: int, start: BuildEvent, tell: Progress
) -> None:
    began = time.monotonic()
    log = output.with_suffix(".log")
    tell(start)
    process = subprocess.Popen(
        command(module, programs, go, output),
        cwd=module.folder,
        env=go.environment(module.cgo),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        pass_fds=(lock,),
    )
    try:
        lines = _follow(process, lambda line: tell(replace(start, seconds=time.monotonic() - began, detail=line)))
    except BaseException:
        process.terminate()
        process.wait()
        raise
    log.write_text("\n".join(lines) + "\n")
    if process.wait():
        raise BuildError(_failure(module, lines, log))


def _follow(process: subprocess.Popen[str], tell: Callable[[str], None]) -> list[str]:
    """Read the process's stderr to its end; tell the newest line at most once a second, and when silent."""
    assert process.stderr is not None
    arrivals: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read(stream: Iterable[str]) -> None:
        for line in stream:
            arrivals.put(line.rstrip("\n"))
        arrivals.put(None)

    threading.Thread(target=read, args=(process.stderr,), daemon=True).start()
    lines: list[str] = []
    told = time.monotonic()
    while True:
        try:
            line = arrivals.get(timeout=1)
            if line is None:
                return lines
            lines.append(line)
        except queue.Empty:
            pass
        if time.monotonic() - told >= 1:
            told = time.monotonic()
            tell(lines[-1] if lines else "")


_WAYS_OUT = (
    ("no space left", "The disk is full. The cache is {cache}; Go's own is named by `go env GOCACHE GOMODCACHE`."),
    ("signal: killed", "The kernel killed the compiler: too little memory. Try again with GOFLAGS=-p=1."),
    ("executable file not found", "A build tool is missing: run `make setup`, or install {debian}."),
    ("pkg-config", "A library is missing: run `make setup`, or install {debian}."),
    ("cannot find -l", "A library is missing: run `make setup`, or install {debian}."),
    ("fatal error:", "A header is missing: run `make setup`, or install {debian}."),
    ("403 forbidden", "The module proxy refuses a module: set GOPROXY to one that has it."),
    ("dial tcp", "The module proxy cannot be reached: check the network, or set GOPROXY to one that can be."),
    ("checksum mismatch", "A module is not the one that tools/{module}/go.sum pins: do not use this module proxy."),
    (
        "missing go.sum",
        "go.mod and go.sum disagree: run `go mod download` in tools/{module} and look at the difference.",
    ),
)


def _failure(module: Module, lines: Sequence[str], log: Path) -> str:
    text = "\n".join(lines).lower()
    advice = next((way for sign, way in _WAYS_OUT if sign in text), "The whole output is in {log}.")
    names = {"cache": cache.root(), "debian": " ".join(module.debian), "module": module.name, "log": log}
    tail = "\n".join(f"    {line}" for line in lines[-15:])
    return f"building {module.name} {module.version} failed; go's last words:\n{tail}\n{advice.format(**names)}\nLog: {log}"


def states() -> list[dict[str, str | bool]]:
    """Every program of the manifest: name, module, version, path in the cache, and whether it is there."""
    known = manifest.modules().values()
    go = golang.find(max(module.go for module in known))
    return [
        {
            "program": program,
            "module": module.name,
            "version": module.version,
            "path": str(path),
            "built": path.exists(),
        }
        for module in known
        for program in module.programs
        for path in [_path(module, program, go)]
    ]
