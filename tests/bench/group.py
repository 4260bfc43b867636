"""A control group for the bench: it measures the cost of a command and all its children.

A lab's hosts and daemons move to their own control groups before they start, so this group has only the toolkit: menagerie,
the Pulumi engine and its providers, Ansible, ssh. It also counts children that outlive their parent, which the resource
usage of waited-for children would miss.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from sandbox.lab import cgroups, hosts, state

_JOIN = 'while [ "$1" != -- ]; do echo 0 > "$1" || exit 1; shift; done; shift; exec "$@"'
_NAME = "menagerie-bench"
SAMPLE_S = 0.1


class CommandError(Exception):
    """A measured command failed; the text has the end of its output."""


@dataclass(frozen=True)
class Cost:
    """Cost of one command.

    began, ended: seconds of the monotonic clock. cpu_s: CPU time of the command and its children.
    lines: (monotonic seconds, text) of its standard error, which has the progress. text: its standard output.
    peak: bytes by process name when all processes together held most; empty unless sampled.
    """

    began: float
    ended: float
    cpu_s: float
    lines: tuple[tuple[float, str], ...] = field(repr=False)
    text: str = field(repr=False)
    peak: Mapping[str, int] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return self.ended - self.began


class Group:
    """Runs commands in the group, one after the other. Leaving it kills what they left running."""

    def __init__(self) -> None:
        self._name = f"{_NAME}/{os.getpid()}"

    def __enter__(self) -> Self:
        self._joins = cgroups.create(self._name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        cgroups.kill(self._name)
        cgroups.remove(self._name)
        if not cgroups.members(_NAME):
            cgroups.remove(_NAME)

    def run(
        self, argv: Sequence[str], *, sample_memory: bool = False, on_line: Callable[[str], None] = lambda _: None
    ) -> Cost:
        """Run a command and wait for it. on_line gets each line of its progress at once.

        Sampling its memory slows it down, so don't use it in timed runs. Raises CommandError if the command fails.
        """
        peak = _Peak(self._joins[0], sample_memory)
        used = self.cpu_s()
        began = time.monotonic()
        with tempfile.TemporaryFile("w+") as result, peak:
            process = subprocess.Popen(
                ["sh", "-c", _JOIN, "sh", *map(str, self._joins), "--", *argv],
                stdin=subprocess.DEVNULL,
                stdout=result,
                stderr=subprocess.PIPE,
                text=True,
                env=environment(os.environ),
            )
            assert process.stderr is not None
            lines = []
            for line in process.stderr:
                lines.append((time.monotonic(), line))
                on_line(line)
            code = process.wait()
            ended = time.monotonic()
            if code:
                progress = "".join(line for _, line in lines)
                raise CommandError(f"`{' '.join(argv)}` exited with {code}:\n{progress[-3000:]}")
            result.seek(0)
            return Cost(began, ended, self.cpu_s() - used, tuple(lines), result.read(), peak.by_name)

    def cpu_s(self) -> float:
        """Return the CPU time of everything that has run in the group so far."""
        return _counted(self._name)


def lab_cpu_s(parts: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Return the CPU time of this checkout's lab since its creation, by part.

    parts: name of a part -> its hosts. The rest (load balancer, mirror and registry) is "services".
    """
    spent = {part: sum(_counted(hosts.group(name)) for name in names) for part, names in parts.items()}
    return spent | {"services": _counted(cgroups.path(state.lab_id(), "")) - sum(spent.values())}


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a measured command: its output is UTF-8 without colours."""
    return {**given, "PYTHONUTF8": "1", "NO_COLOR": "1"}


def cpu_seconds(folder: Path) -> float | None:
    """Return the CPU time that a control group has used; None if its hierarchy does not count it."""
    if (folder / "cpuacct.usage").exists():
        return int((folder / "cpuacct.usage").read_text()) / 1e9
    if (folder / "cpu.stat").exists():
        stat = dict(line.split() for line in (folder / "cpu.stat").read_text().splitlines())
        return int(stat["usage_usec"]) / 1e6 if "usage_usec" in stat else None
    return None


def _counted(group: str) -> float:
    for hierarchy in cgroups.hierarchies():
        seconds = cpu_seconds(hierarchy / group)
        if seconds is not None:
            return seconds
    raise CommandError("no cgroup hierarchy of this machine counts CPU time")


def process_name(argv: Sequence[str]) -> str:
    """Return a readable name of a process: its program, and for Python also the module or script."""
    program, *rest = argv or ("gone",)
    words = [Path(word).name for word in rest if not word.startswith("-")]
    short = Path(program).name
    return f"{short} {words[0]}" if short.startswith("python") and words else short


def _argv(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").rstrip("\0").split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def pss_bytes(pid: int) -> int:
    """Return the proportional set size of a process in bytes; 0 if it has ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:")), 0)


class _Peak:
    """Samples the memory of a group's members while a block runs."""

    def __init__(self, members: Path, enabled: bool) -> None:
        self.by_name: dict[str, int] = {}
        self._members = members
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample) if enabled else None

    def __enter__(self) -> None:
        if self._thread:
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread:
            self._thread.join()

    def _sample(self) -> None:
        while not self._over.wait(SAMPLE_S):
            held = {int(pid): pss_bytes(int(pid)) for pid in self._members.read_text().split()}
            if sum(held.values()) > sum(self.by_name.values()):
                self.by_name = {}
                for pid, size in held.items():
                    name = process_name(_argv(pid))
                    self.by_name[name] = self.by_name.get(name, 0) + size
