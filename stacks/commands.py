"""Pulumi's Automation API with fewer runs of the CLI.

A run costs a third of a second of CPU before it does anything, and half as much again if it decrypts. By default a stack
takes three runs before the engine starts, and an update three more after it (pulumi 3.259).
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path

from pulumi import automation as auto
from pulumi.automation._stack import StackInitMode
from pulumi.automation.events import EngineEvent, SummaryEvent
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from semver import VersionInfo

from cluster.versions import PULUMI

OnEvent = Callable[[EngineEvent], None]

SECRET = "[secret]"
"""What the CLI shows instead of a secret."""


_OWN_CONNECTIONS = ("grpc.use_local_subchannel_pool", 1)


def with_own_connections() -> None:
    """Give each run of the engine connections of its own, in a process that runs it more than once.

    gRPC shares connections between all channels of a process to one address, and the SDK never closes a channel. Some day a new
    engine listens on the port of a former one, whose channel waits before it connects again, and all calls to the new engine
    then fail at once: "Resource monitor has terminated".
    """
    if _OWN_CONNECTIONS not in _GRPC_CHANNEL_OPTIONS:
        _GRPC_CHANNEL_OPTIONS.append(_OWN_CONNECTIONS)


class Command(auto.PulumiCommand):
    """The CLI in ``bin/pulumi`` below a folder. We build it ourselves, so its version is not queried."""

    def __init__(self, root: Path) -> None:
        self.command = str(root / "bin" / "pulumi")
        self.version = VersionInfo.parse(PULUMI)


class Workspace(auto.LocalWorkspace):
    """A folder with the settings of a project. has_stack: its backend has the stack, which then is not looked for."""

    has_stack = False

    def select_stack(self, stack_name: str) -> None:
        """Create the stack if it does not exist. Each later run names the stack, so it needs no selection."""
        if self.has_stack:
            return
        provider = ["--secrets-provider", self.secrets_provider] if self.secrets_provider else []
        self._run_pulumi_cmd_sync(["stack", "select", "--create", *provider, "--stack", stack_name])

    def stack_outputs(self, stack_name: str) -> auto.OutputMap:
        """Return the outputs in clear. Does not check which of them are secret (see `masked`)."""
        outputs = json.loads(self._printed("output", "--show-secrets", "--stack", stack_name))
        return {name: auto.OutputValue(value=value, secret=False) for name, value in outputs.items()}

    def masked(self, stack_name: str) -> dict[str, object]:
        """Return the outputs, with `SECRET` instead of the secret ones."""
        outputs: dict[str, object] = json.loads(self._printed("output", "--stack", stack_name))
        return outputs

    def _printed(self, *arguments: str) -> str:
        return str(self._run_pulumi_cmd_sync(["stack", *arguments, "--json"]).stdout)


class Stack(auto.Stack):
    """A stack whose runs are summarised by their last event if a listener from `heard` is used."""

    _ended: SummaryEvent | None = None

    @classmethod
    def of(cls, name: str, workspace: Workspace) -> Stack:
        """Return the stack of that name; create it if it does not exist."""
        with_own_connections()
        return cls(name, workspace, StackInitMode.SELECT)

    def heard(self, on_event: OnEvent | None) -> OnEvent:
        """Return a listener for the next run."""
        self._ended = None

        def listen(event: EngineEvent) -> None:
            if event.summary_event:
                self._ended = event.summary_event
            if on_event:
                on_event(event)

        return listen

    def info(self, show_secrets: bool = True) -> auto.UpdateSummary | None:
        """Return the summary of the last run, from its last event or else from the stack's history."""
        if self._ended is None:
            return super().info(show_secrets)
        now = datetime.datetime.now(datetime.UTC)
        started = now - datetime.timedelta(seconds=self._ended.duration_seconds)
        changes = self._ended.resource_changes
        return auto.UpdateSummary("", started, "", {}, {}, "succeeded", now, resource_changes=changes)
