"""Daemons of the lab: detached, each in a separate session and control group."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cluster.waiting import poll
from sandbox.lab import cgroups, state
from sandbox.lab.errors import LabError

# Writing 0 means "the writing process": the shell joins every group, then becomes the daemon.
_LAUNCH = 'n=$1; shift; while [ "$n" -gt 0 ]; do echo 0 > "$1" || exit 1; shift; n=$((n-1)); done; exec "$@"'


@dataclass(frozen=True)
class Daemon:
    """A long-running program.

    netns: network namespace to run in. watched: text whose change requires a restart, such as the configuration
    file. memory_bytes: limit of its control group.
    """

    name: str
    argv: Sequence[str]
    netns: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    watched: str = ""
    memory_bytes: int | None = None
    folder: Path = state.CHECKOUT


def group(name: str) -> str:
    """Return the control group of the daemon or host `name`."""
    return cgroups.path(state.lab_id(), name)


def log_path(name: str) -> Path:
    """Return the daemon's log file."""
    return state.folder("logs", f"{name}.log")


def ensure(daemon: Daemon, ready: Callable[[], bool], seconds: float = 15) -> bool:
    """Start or restart the daemon unless it runs as described; return True when it was (re)started.

    ready: whether it serves. Raises LabError with the end of its log when it is not ready within `seconds`.
    """
    record = state.folder("daemons", f"{daemon.name}.json")
    fingerprint = _fingerprint(daemon)
    if is_running(daemon.name) and (state.read(record) or {}).get("fingerprint") == fingerprint and ready():
        return False
    stop(daemon.name)
    start(daemon)
    state.write(record, {"fingerprint": fingerprint, "argv": list(daemon.argv)})
    _wait(daemon.name, ready, seconds)
    return True


def start(daemon: Daemon) -> None:
    """Start the daemon, detached from this process. It must not be running."""
    joins = cgroups.create(group(daemon.name), daemon.memory_bytes)
    netns = ["nsenter", f"--net=/run/netns/{daemon.netns}"] if daemon.netns else []
    launch = ["sh", "-c", _LAUNCH, "sh", str(len(joins)), *map(str, joins)]
    log = log_path(daemon.name)
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    with log.open("ab") as output:
        subprocess.run(
            ["setsid", "--fork", *launch, *netns, *daemon.argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment | dict(daemon.environment),
            cwd=daemon.folder,
            check=True,
        )


def pids(name: str) -> tuple[int, ...]:
    """Return the process IDs of the daemon or host."""
    return cgroups.members(group(name))


def is_running(name: str) -> bool:
    """Whether the daemon or host has any process."""
    return bool(pids(name))


def stop(name: str) -> None:
    """Kill the daemon and remove its control group and record; its log stays."""
    cgroups.kill(group(name))
    cgroups.remove(group(name))
    state.folder("daemons", f"{name}.json").unlink(missing_ok=True)


def log_tail(name: str, lines: int = 15) -> str:
    """Return the last lines of the daemon's log."""
    try:
        return "\n".join(log_path(name).read_text(errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return ""


def _wait(name: str, ready: Callable[[], bool], seconds: float) -> None:
    if not poll(ready, seconds, 0.05):
        raise LabError(f"{name} is not ready after {seconds:g} s; its log ends with:\n{log_tail(name)}")


def _fingerprint(daemon: Daemon) -> str:
    described = [list(daemon.argv), daemon.netns, sorted(daemon.environment.items()), daemon.watched]
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()
