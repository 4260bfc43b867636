"""The Pulumi engine, driven from Python: one stack per cluster, its program inline.

`stacks.backend` says where state goes. The passphrase that encrypts secrets in it comes from
``PULUMI_CONFIG_PASSPHRASE`` or ``..._FILE``; the lab, whose secrets are worth nothing outside it,
makes one of its own.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pulumi import automation as auto

from cluster.spec import Cluster
from stacks import lean, starting
from stacks.backend import PROJECT, WHOLE_OR_NOT
from stacks.commands import SECRET, Command, OnEvent, Stack, Workspace
from stacks.errors import StackError, StackLockedError
from stacks.protection import RELEASE
from stacks.turns import BusyError, stale_locks, turn

_STACK = "pulumi:pulumi:Stack"

_T = TypeVar("_T")


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
    state_dir: folder for what the engine needs, and for a lab's passphrase.
    settings: the file of the stack's configuration, which the ordinary CLI shares; None keeps it with the state.
    backend: URL of where the state is (`stacks.backend`), "" for a folder below `state_dir`.
    plugins: fills the engine's folder of plugins before a run that starts some; the engine itself fetches none.
    """

    def __init__(
        self,
        cluster: Cluster,
        program: Callable[[], None],
        pulumi: Path,
        state_dir: Path,
        settings: Path | None = None,
        backend: str = "",
        plugins: Callable[[Path], None] = lambda _: None,
    ) -> None:
        self._cluster = cluster
        self._state_dir = state_dir
        self._plugins = plugins
        self._locks = state_dir / "pulumi" / ".pulumi" / "locks"
        kms = starting.kms_of(settings)
        starting.refuse_without_passphrase(cluster, kms)
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._command = Command(starting.command_root(pulumi, state_dir))
        url = backend or f"file://{starting.made(state_dir / 'pulumi')}?{WHOLE_OR_NOT}"
        # A variable of that name would override the project's setting.
        environment = starting.environment(state_dir, kms=kms)
        self._home = Path(environment["PULUMI_HOME"])
        self._environment = {**environment, "PULUMI_BACKEND_URL": url}
        workspace = starting.made(state_dir / "workspace")  # by default a temporary folder that nobody removes
        if settings:
            starting.link_to(workspace / settings.name, settings)
        self._workspace = Workspace(
            work_dir=str(workspace),
            pulumi_command=self._command,
            program=lean.program(program),
            project_settings=auto.ProjectSettings(
                name=PROJECT, runtime="python", main=os.getcwd(), backend=auto.ProjectBackend(url=url)
            ),
            env_vars=self._environment,
            secrets_provider=kms or None,
        )
        self._stack = self._guarded(lambda: Stack.of(cluster.name, self._workspace))

    @property
    def name(self) -> str:
        """Of the stack, which is the cluster's."""
        return self._cluster.name

    def up(
        self, on_event: OnEvent | None = None, only: Collection[str] | None = None
    ) -> tuple[Summary, dict[str, object]]:
        """Make the world as the spec says, after looking at how it is (refresh). Returns the outputs too, in clear.

        only: names of resources that exist. They alone are brought up, with all that they are made from.
        """
        with self._turn():
            target = None if only is None else targets(self.deployment().get("resources", ()), only)
            # Without secrets concerns the summary only, which would be read with all of the configuration.
            result = self._guarded(
                lambda: self._stack.up(
                    refresh=True, target=target, on_event=self._stack.heard(on_event), show_secrets=False
                )
            )
        return _summary(result.summary), _values(result.outputs)

    def preview(self, on_event: OnEvent | None = None, *, refresh: bool = True) -> Summary:
        """What `up` would do. Changes nothing. refresh: look first at how the world is."""
        self._plugins(self._home / "plugins")
        result = self._guarded(lambda: self._stack.preview(refresh=refresh, on_event=on_event))
        return Summary({str(getattr(op, "value", op)): n for op, n in result.change_summary.items()}, 0.0)

    def destroy(self, on_event: OnEvent | None = None) -> Summary:
        """Delete every resource and the stack's own record. What a cloud refuses to delete stays with what it needs; the rest goes."""
        with self._turn():
            heard = self._stack.heard(on_event)
            result = self._guarded(lambda: self._stack.destroy(on_event=heard, continue_on_error=True))
            self._guarded(lambda: self._workspace.remove_stack(self._cluster.name))
        return _summary(result.summary)

    def let_go(self, on_event: OnEvent | None = None) -> Summary:
        """Take protection off what exists, in the state and in the cloud (`stacks.protection`). Makes nothing new."""
        existing = [resource["urn"] for resource in self.deployment().get("resources", ())]
        with self._turn():
            self._guarded(lambda: self._stack.set_config(RELEASE, auto.ConfigValue("true")))
            try:
                heard = self._stack.heard(on_event)
                result = self._guarded(lambda: self._stack.up(target=existing, on_event=heard, show_secrets=False))
            finally:
                self._guarded(lambda: self._stack.remove_config(RELEASE))
        return _summary(result.summary)

    def protected(self) -> list[str]:
        """URNs of what the engine would refuse to delete."""
        return [resource["urn"] for resource in self.deployment().get("resources", ()) if resource.get("protect")]

    def set_secret(self, name: str, value: str) -> None:
        """Keep a secret that the program asks for in the stack's configuration, encrypted."""
        self._guarded(lambda: self._stack.set_config(f"{PROJECT}:{name}", auto.ConfigValue(value, secret=True)))

    def secret(self, name: str) -> str | None:
        """A secret of the stack's configuration in clear, None where there is none of that name."""
        return self.values().get(name)

    def values(self) -> dict[str, str]:
        """What the stack's configuration says of the project, by name; secrets in clear."""
        found = self._guarded(self._stack.get_all_config)
        prefix = f"{PROJECT}:"
        return {name.removeprefix(prefix): each.value for name, each in found.items() if name.startswith(prefix)}

    def configure(self, provider: str, key: str, value: str) -> None:
        """Tell a cloud's provider what its environment tells it otherwise."""
        self._guarded(lambda: self._stack.set_config(f"{provider}:{key}", auto.ConfigValue(value)))

    def forget(self, provider: str, key: str) -> None:
        """Take back what `configure` told."""
        self._guarded(lambda: self._stack.remove_config(f"{provider}:{key}"))

    def outputs(self) -> dict[str, object]:
        """Stack outputs in clear, {} before the first `up`."""
        return _values(self._guarded(self._stack.outputs))

    def secret_outputs(self) -> frozenset[str]:
        """Names of the outputs that are encrypted in the state."""
        masked = self._guarded(lambda: self._workspace.masked(self._cluster.name))
        return frozenset(name for name, value in masked.items() if value == SECRET)

    def deployment(self) -> dict[str, Any]:
        """What the engine knows of the stack. Secrets stay encrypted."""
        return self._guarded(lambda: self._edited(lambda _: False))

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """This stack for ourselves, mended where a run was cut short before."""
        self._plugins(self._home / "plugins")
        try:
            with turn(self._state_dir / "turn") as cut_short:
                if stale_locks(self._locks, self._cluster.is_lab):
                    self._guarded(self._stack.cancel)
                if cut_short and self._cluster.is_lab:
                    self._guarded(self._forget_interrupted_creates)
                yield
        except BusyError as error:
            raise StackLockedError(
                f"{self._cluster.name} is locked by another run: {error}; wait for its end, or interrupt it"
            ) from None

    def _forget_interrupted_creates(self) -> None:
        """Drop the records of creates that were under way: those of the lab may be repeated.

        A cloud may have made something that the record alone still tells of; there it is kept, and the engine warns.
        """
        self._edited(lambda deployment: bool(deployment.pop("pending_operations", None)))

    def _edited(self, change: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The stack's deployment, after `change` has had it; kept in the state where that says so.

        By the CLI, because the Automation API exports secrets in clear, and imports them by way of a
        temporary file that outlives a failure.
        """
        with tempfile.NamedTemporaryFile("w+", dir=self._state_dir, suffix=".json") as file:
            where = ["--stack", self._cluster.name, "--file", file.name]
            self._command.run(["stack", "export", *where], self._workspace.work_dir, self._environment)
            state: dict[str, Any] = json.load(file)
            deployment: dict[str, Any] = state["deployment"]
            if change(deployment):
                file.seek(0)
                file.truncate()
                json.dump(state, file)
                file.flush()
                self._command.run(["stack", "import", *where], self._workspace.work_dir, self._environment)
            return deployment

    def _guarded(self, run: Callable[[], _T]) -> _T:
        try:
            with lean.few_collections():
                return run()
        except auto.ConcurrentUpdateError as error:
            raise StackLockedError(f"{self._cluster.name} is locked by another run: {_last_line(error)}") from None
        except auto.CommandError as error:
            raise StackError(_readable(str(error))) from None


def targets(resources: Iterable[Mapping[str, Any]], names: Collection[str]) -> list[str]:
    """URNs of the resources of these names, and of all that they depend on. LookupError for a name that none has.

    resources: those of a deployment. The stack itself is among them, for its outputs.
    """
    known = {str(resource["urn"]): resource for resource in resources}
    found = [urn for urn in known if urn.rpartition("::")[2] in names or f"::{_STACK}::" in urn]
    if unknown := set(names) - {urn.rpartition("::")[2] for urn in found}:
        raise LookupError(f"the stack has no {', '.join(sorted(unknown))}")
    for urn in found:
        found += [each for each in known[urn].get("dependencies") or () if each not in found]
    return found


def _values(outputs: auto.OutputMap) -> dict[str, object]:
    return {name: output.value for name, output in outputs.items()}


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
