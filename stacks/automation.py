"""Drives the Pulumi engine from Python: one stack per cluster, with its program inline.

`stacks.backend` decides where state is kept. The passphrase that encrypts secrets in the state comes from
``PULUMI_CONFIG_PASSPHRASE`` or ``..._FILE``. The lab generates its own: its secrets are worthless outside it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pulumi import automation as auto

from cluster.project import working_folder
from cluster.spec import Cluster
from stacks import encryption, lean, starting
from stacks.backend import PROJECT, in_folder, own_folder
from stacks.commands import SECRET, Command, OnEvent, Stack, Workspace
from stacks.errors import StackError, StackLockedError
from stacks.protection import RELEASE
from stacks.run_lock import BusyError, stale_locks, turn

_STACK = "pulumi:pulumi:Stack"

_T = TypeVar("_T")


@dataclass(frozen=True)
class Summary:
    """The result of an engine run: operation -> number of resources ("same", "create", ...)."""

    changes: dict[str, int]
    seconds: float

    @property
    def changed(self) -> int:
        """Count the resources that were, or would be, created, updated, replaced or deleted."""
        return sum(count for operation, count in self.changes.items() if operation not in ("same", "read", "refresh"))


class ClusterStack:
    """The Pulumi stack of one cluster.

    pulumi: path of the CLI. program: declares the cluster's resources when the engine asks.
    state_dir: folder for the engine's files, and for a lab's passphrase.
    settings: the stack's configuration file, shared with the ordinary CLI; None keeps the configuration with the state.
    backend: URL of the state (`stacks.backend`); "" for a folder below `state_dir`.
    plugins: fills the engine's plugin folder before a run that starts plugins; the engine downloads none.
    is_temporary: the caller removes `state_dir`, so the stack needs no passphrase that a person knows.
    exists: the caller knows that the backend has the stack. Otherwise a run of the CLI creates it if needed.
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
        is_temporary: bool = False,
        exists: bool = False,
    ) -> None:
        self._cluster = cluster
        self._state_dir = state_dir
        self._plugins = plugins
        self._locks = state_dir / "pulumi" / ".pulumi" / "locks"
        chosen = encryption.choice(settings, backend)
        provider = chosen.provider
        if not is_temporary or chosen.is_own:
            encryption.refuse_without_passphrase(cluster, provider)
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._command = Command(starting.command_root(pulumi, state_dir))
        starting.ensured(state_dir / "pulumi")
        url = backend or own_folder(state_dir).url
        # An environment variable with that name would override the project's setting.
        environment = starting.environment(state_dir, provider=provider)
        self._home = Path(environment["PULUMI_HOME"])
        self._environment = {**environment, "PULUMI_BACKEND_URL": url}
        workspace = starting.ensured(state_dir / "workspace")  # the default is a temporary folder that is never removed
        if settings:
            starting.link_to(workspace / settings.name, settings)
        self._workspace = Workspace(
            work_dir=str(workspace),
            pulumi_command=self._command,
            program=lean.program(program),
            project_settings=auto.ProjectSettings(
                name=PROJECT, runtime="python", main=working_folder(), backend=auto.ProjectBackend(url=url)
            ),
            env_vars=self._environment,
            secrets_provider=provider or None,
        )
        self._workspace.has_stack = exists or (not backend and cluster.name in in_folder(own_folder(state_dir)))
        self._stack = self._guarded(lambda: Stack.of(cluster.name, self._workspace))

    @property
    def name(self) -> str:
        """Return the stack's name, which is the cluster's."""
        return self._cluster.name

    def up(
        self, on_event: OnEvent | None = None, only: Collection[str] | None = None
    ) -> tuple[Summary, dict[str, object]]:
        """Refresh, then apply the spec. Return the summary and the outputs; secrets are in clear.

        only: names of existing resources. Updates these and everything they depend on, and nothing else.
        """
        with self._turn():
            target = None if only is None else targets(self.deployment().get("resources", ()), only)
            # show_secrets affects only the summary; reading secrets for it would also read the whole configuration.
            result = self._guarded(
                lambda: self._stack.up(
                    refresh=True, target=target, on_event=self._stack.heard(on_event), show_secrets=False
                )
            )
        return _summary(result.summary), _values(result.outputs)

    def preview(self, on_event: OnEvent | None = None, *, refresh: bool = True) -> Summary:
        """Return what `up` would do, and change nothing. refresh: first read the actual state of the resources."""
        self._plugins(self._home / "plugins")
        result = self._guarded(lambda: self._stack.preview(refresh=refresh, on_event=on_event))
        return Summary({str(getattr(op, "value", op)): n for op, n in result.change_summary.items()}, 0.0)

    def destroy(self, on_event: OnEvent | None = None) -> Summary:
        """Delete every resource, then the stack. Keep what the cloud refuses to delete, with its dependencies."""
        with self._turn():
            heard = self._stack.heard(on_event)
            result = self._guarded(lambda: self._stack.destroy(on_event=heard, continue_on_error=True))
            self._guarded(lambda: self._workspace.remove_stack(self._cluster.name))
        return _summary(result.summary)

    def remove_protection(self, on_event: OnEvent | None = None) -> Summary:
        """Remove protection from existing resources, in the state and in the cloud (`stacks.protection`). Create nothing."""
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
        """Return the URNs of the resources that the engine would refuse to delete."""
        return [resource["urn"] for resource in self.deployment().get("resources", ()) if resource.get("protect")]

    def set_secret(self, name: str, value: str) -> None:
        """Store a secret that the program reads in the stack's configuration, encrypted."""
        self._guarded(lambda: self._stack.set_config(f"{PROJECT}:{name}", auto.ConfigValue(value, secret=True)))

    def secret(self, name: str) -> str | None:
        """Return a secret of the stack's configuration in clear, or None if it has no such secret."""
        return self.values().get(name)

    def values(self) -> dict[str, str]:
        """Return the project's values in the stack's configuration, by name; secrets are in clear."""
        config = self._guarded(self._stack.get_all_config)
        prefix = f"{PROJECT}:"
        return {name.removeprefix(prefix): entry.value for name, entry in config.items() if name.startswith(prefix)}

    def configure(self, provider: str, key: str, value: str) -> None:
        """Set a cloud provider's setting in the stack's configuration, instead of in the environment."""
        self._guarded(lambda: self._stack.set_config(f"{provider}:{key}", auto.ConfigValue(value)))

    def unset(self, provider: str, key: str) -> None:
        """Remove a setting made by `configure`."""
        self._guarded(lambda: self._stack.remove_config(f"{provider}:{key}"))

    def outputs(self) -> dict[str, object]:
        """Return the stack's outputs in clear, {} before the first `up`."""
        return _values(self._guarded(self._stack.outputs))

    def secret_outputs(self) -> frozenset[str]:
        """Return the names of the outputs that are encrypted in the state."""
        masked = self._guarded(lambda: self._workspace.masked(self._cluster.name))
        return frozenset(name for name, value in masked.items() if value == SECRET)

    def deployment(self) -> dict[str, Any]:
        """Return the engine's record of the stack. Secrets stay encrypted."""
        deployment: dict[str, Any] = self.exported()["deployment"]
        return deployment

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Hold the stack exclusively for a block, after repairing what an interrupted run left behind."""
        self._plugins(self._home / "plugins")
        try:
            with turn(self._state_dir / "turn") as cut_short:
                if stale_locks(self._locks, self._cluster.is_lab):
                    self._guarded(self._stack.cancel)
                if cut_short and self._cluster.is_lab:
                    self._forget_interrupted_creates()
                yield
        except BusyError as error:
            raise StackLockedError(
                f"{self._cluster.name} is locked by another run: {error}; wait until it ends, or interrupt it"
            ) from None

    def _forget_interrupted_creates(self) -> None:
        """Drop the records of creates that were in progress: in the lab they can be repeated.

        In a cloud such a record may be the only trace of a resource, so it is kept there, and the engine warns.
        """
        document = self.exported()
        if document["deployment"].pop("pending_operations", None):
            self.restore(document)

    def exported(self) -> dict[str, Any]:
        """Return the stack's state as a document that `restore` takes. Secrets stay encrypted.

        Uses the CLI: the Automation API exports secrets in clear.
        """
        with tempfile.NamedTemporaryFile("r", dir=self._state_dir, suffix=".json") as file:
            self._guarded(lambda: self._transfer("export", file.name))
            document: dict[str, Any] = json.load(file)
            return document

    def restore(self, document: Mapping[str, Any]) -> None:
        """Replace the stack's state by a document of `exported`, of this or of another backend.

        Uses the CLI: the Automation API imports through a temporary file that stays behind after a failure.
        """
        with tempfile.NamedTemporaryFile("w", dir=self._state_dir, suffix=".json") as file:
            json.dump(document, file)
            file.flush()
            self._guarded(lambda: self._transfer("import", file.name))

    def forget(self) -> None:
        """Remove the stack from its backend. Its resources and Pulumi.<cluster>.yaml stay."""
        self._guarded(lambda: self._workspace.remove_stack(self._cluster.name, force=True, preserve_config=True))

    def _transfer(self, verb: str, file: str) -> None:
        arguments = ["stack", verb, "--stack", self._cluster.name, "--file", file]
        self._command.run(arguments, self._workspace.work_dir, self._environment)

    def _guarded(self, run: Callable[[], _T]) -> _T:
        try:
            with lean.few_collections():
                return run()
        except auto.ConcurrentUpdateError as error:
            raise StackLockedError(f"{self._cluster.name} is locked by another run: {_last_line(error)}") from None
        except auto.CommandError as error:
            raise StackError(_readable(str(error))) from None


def targets(resources: Iterable[Mapping[str, Any]], names: Collection[str]) -> list[str]:
    """Return the URNs of the resources with these names and of all their dependencies, including the stack, for its outputs.

    resources: those of a deployment. Raises LookupError if no resource has one of the names.
    """
    by_urn = {str(resource["urn"]): resource for resource in resources}
    urns = [urn for urn in by_urn if urn.rpartition("::")[2] in names or f"::{_STACK}::" in urn]
    if unknown := set(names) - {urn.rpartition("::")[2] for urn in urns}:
        raise LookupError(f"the stack has no {', '.join(sorted(unknown))}")
    for urn in urns:
        urns += [dependency for dependency in by_urn[urn].get("dependencies") or () if dependency not in urns]
    return urns


def _values(outputs: auto.OutputMap) -> dict[str, object]:
    return {name: output.value for name, output in outputs.items()}


def _summary(summary: auto.UpdateSummary) -> Summary:
    seconds = (summary.end_time - summary.start_time).total_seconds() if summary.end_time else 0.0
    changes = {str(getattr(op, "value", op)): count for op, count in (summary.resource_changes or {}).items()}
    return Summary(changes, seconds)


def _readable(text: str) -> str:
    """Return the engine's diagnostics without progress lines, outputs and the engine's own traces."""
    lines = [line.rstrip() for line in text.splitlines()]
    if "Diagnostics:" not in lines and "\n stderr: " in text:
        return text.rpartition("\n stderr: ")[2].strip().removeprefix("error: ")
    start = next((i for i, line in enumerate(lines) if line.startswith("Diagnostics:")), 0)
    end = next((i for i, line in enumerate(lines) if i > start and line.startswith(("Outputs:", "Resources:"))), None)
    return "\n".join(line for line in lines[start:end] if line) or text


def _last_line(error: Exception) -> str:
    return next((line for line in reversed(str(error).splitlines()) if line.strip()), "")
