"""The Pulumi engine, driven from Python: one stack per cluster, its program inline.

State goes to ``PULUMI_BACKEND_URL`` or, without it, to a folder of the checkout. The passphrase
that encrypts secrets in it comes from ``PULUMI_CONFIG_PASSPHRASE`` or ``..._FILE``; the lab, whose
secrets are worth nothing outside it, makes one of its own.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pulumi import automation as auto
from pulumi.automation.events import EngineEvent

from cluster.spec import Cloud, Cluster

PROJECT = "menagerie"
ROOT = Path(__file__).resolve().parent.parent
_PLUGINS = ROOT / "stacks" / "plugins"

OnEvent = Callable[[EngineEvent], None]
_T = TypeVar("_T")


class StackError(Exception):
    """The engine refused or failed; the text says what and what to do."""


class PassphraseError(StackError):
    """Nothing says what encrypts the stack's secrets."""


class StackLockedError(StackError):
    """Another run holds the stack's lock."""


@dataclass(frozen=True)
class Summary:
    """Result of an engine run: operation -> number of resources ("same", "create", ...)."""

    changes: dict[str, int]
    seconds: float

    @property
    def changed(self) -> int:
        """Resources that were, or would be, created, updated, replaced or deleted."""
        return sum(count for operation, count in self.changes.items() if operation not in ("same", "read", "refresh"))


class ClusterStack:
    """The Pulumi stack of one cluster.

    pulumi: path of the CLI. program: declares the cluster's resources when the engine asks.
    state_dir: folder for state and passphrase where the environment names none.
    """

    def __init__(self, cluster: Cluster, program: Callable[[], None], pulumi: Path, state_dir: Path) -> None:
        self._cluster = cluster
        self._state_dir = state_dir
        _refuse_without_passphrase(cluster)
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        command = auto.PulumiCommand(root=str(_command_root(pulumi, state_dir)), skip_version_check=True)
        backend = os.environ.get("PULUMI_BACKEND_URL") or f"file://{_made(state_dir / 'pulumi')}"
        options = auto.LocalWorkspaceOptions(
            work_dir=str(_made(state_dir / "workspace")),  # by default a temporary folder that nobody removes
            pulumi_command=command,
            project_settings=auto.ProjectSettings(
                name=PROJECT, runtime="python", backend=auto.ProjectBackend(url=backend)
            ),
            env_vars=self._environment(state_dir),
        )
        self._stack = self._guarded(
            lambda: auto.create_or_select_stack(cluster.name, project_name=PROJECT, program=program, opts=options)
        )

    def up(self, on_event: OnEvent | None = None) -> Summary:
        """Make the world as the spec says, after looking at how it is (refresh)."""
        self._guarded(self._forget_interrupted_creates)
        result = self._guarded(lambda: self._stack.up(refresh=True, on_event=on_event))
        return _summary(result.summary)

    def preview(self, on_event: OnEvent | None = None) -> Summary:
        """What `up` would do. Changes nothing."""
        result = self._guarded(lambda: self._stack.preview(refresh=True, on_event=on_event))
        return Summary({str(getattr(op, "value", op)): n for op, n in result.change_summary.items()}, 0.0)

    def destroy(self, on_event: OnEvent | None = None) -> Summary:
        """Delete every resource and the stack's own record."""
        self._guarded(self._forget_interrupted_creates)
        result = self._guarded(lambda: self._stack.destroy(on_event=on_event))
        self._guarded(lambda: self._stack.workspace.remove_stack(self._cluster.name))
        return _summary(result.summary)

    def outputs(self) -> dict[str, object]:
        """Stack outputs in clear, {} before the first `up`."""
        return {name: output.value for name, output in self._guarded(self._stack.outputs).items()}

    def _environment(self, state_dir: Path) -> dict[str, str]:
        paths = [str(_PLUGINS), os.environ.get("PATH", "")]
        python_path = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        environment = {
            "PATH": os.pathsep.join(filter(None, paths)),
            "PYTHONPATH": os.pathsep.join(filter(None, python_path)),
            "MENAGERIE_PYTHON": sys.executable,
            # No request for newer versions, and no plugin that is not already here.
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_HOME": str(_made(state_dir / "pulumi-home")),
        }
        if not _passphrase_is_given():
            environment["PULUMI_CONFIG_PASSPHRASE_FILE"] = str(_lab_passphrase(state_dir))
        return environment

    def _forget_interrupted_creates(self) -> None:
        """A run cut short leaves records of creates under way and its lock; creates are idempotent here."""
        if self._holder_is_gone():
            self._stack.cancel()
        deployment = self._stack.export_stack()
        content = deployment.deployment or {}
        if content.get("pending_operations"):
            kept = {key: value for key, value in content.items() if key != "pending_operations"}
            self._stack.import_stack(auto.Deployment(version=deployment.version, deployment=kept))

    def _holder_is_gone(self) -> bool:
        """Whether a lock in the local backend names a process of this machine that no longer runs."""
        locks = (self._state_dir / "pulumi" / ".pulumi" / "locks").rglob("*.json")
        holders = [json.loads(lock.read_text()) for lock in locks]
        here = [holder["pid"] for holder in holders if holder.get("hostname") == socket.gethostname()]
        return bool(holders) and len(here) == len(holders) and not any(Path(f"/proc/{pid}").exists() for pid in here)

    def _guarded(self, run: Callable[[], _T]) -> _T:
        try:
            return run()
        except auto.ConcurrentUpdateError as error:
            raise StackLockedError(f"{self._cluster.name} is locked by another run: {_last_line(error)}") from None
        except auto.CommandError as error:
            raise StackError(_readable(str(error))) from None


def _made(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _command_root(pulumi: Path, state_dir: Path) -> Path:
    """A folder with ``bin/pulumi``, the layout that the Automation API looks for."""
    link = _made(state_dir / "pulumi-cli" / "bin") / "pulumi"
    if not link.is_symlink() or link.readlink() != pulumi:
        link.unlink(missing_ok=True)
        link.symlink_to(pulumi)
    return link.parent.parent


def _passphrase_is_given() -> bool:
    return any(name in os.environ for name in ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"))


def _refuse_without_passphrase(cluster: Cluster) -> None:
    if cluster.spec.control_plane.cloud is not Cloud.LAB and not _passphrase_is_given():
        raise PassphraseError(
            "no passphrase for the stack's secrets; set PULUMI_CONFIG_PASSPHRASE_FILE to a file that holds it"
        )
    file = os.environ.get("PULUMI_CONFIG_PASSPHRASE_FILE")
    if file and not os.path.isfile(file):
        raise PassphraseError(f"PULUMI_CONFIG_PASSPHRASE_FILE names {file}, and there is no such file")


def _lab_passphrase(state_dir: Path) -> Path:
    path = state_dir / "passphrase"
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(32))
    return path


def _summary(summary: auto.UpdateSummary) -> Summary:
    seconds = (summary.end_time - summary.start_time).total_seconds() if summary.end_time else 0.0
    changes = {str(getattr(op, "value", op)): count for op, count in (summary.resource_changes or {}).items()}
    return Summary(changes, seconds)


def _readable(text: str) -> str:
    """The engine's diagnostics, without its progress lines, the stack's outputs and its own traces."""
    lines = [line.rstrip() for line in text.splitlines()]
    if "Diagnostics:" not in lines and "\n stderr: " in text:
        return text.rpartition("\n stderr: ")[2].strip().removeprefix("error: ")
    start = next((i for i, line in enumerate(lines) if line.startswith("Diagnostics:")), 0)
    end = next((i for i, line in enumerate(lines) if i > start and line.startswith(("Outputs:", "Resources:"))), None)
    return "\n".join(line for line in lines[start:end] if line) or text


def _last_line(error: Exception) -> str:
    return next((line for line in reversed(str(error).splitlines()) if line.strip()), "")
