"""Pulumi's Automation API with fewer runs of the CLI.

A run costs a third of a second of CPU before it does anything, and half as much again where it decrypts. By default a new
stack takes three before the engine begins, and an update three more after it (pulumi 3.259).
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path

from pulumi import automation as auto
from pulumi.automation._stack import StackInitMode
from pulumi.automation.events import EngineEvent, SummaryEvent
from semver import VersionInfo

from cluster.versions import PULUMI

OnEvent = Callable[[EngineEvent], None]

SECRET = "[secret]"
"""What the CLI shows in the place of a secret."""


class Command(auto.PulumiCommand):
    """The CLI in ``bin/pulumi`` below a folder. It is the one that we build, so nobody asks it for its version."""

    def __init__(self, root: Path) -> None:
        self.command = str(root / "bin" / "pulumi")
        self.version = VersionInfo.parse(PULUMI)


class Workspace(auto.LocalWorkspace):
    """A folder with the settings of a project."""

    def select_stack(self, stack_name: str) -> None:
        """Make it, too, where there is none."""
        provider = ["--secrets-provider", self.secrets_provider] if self.secrets_provider else []
        self._run_pulumi_cmd_sync(["stack", "select", "--create", *provider, "--stack", stack_name])

    def stack_outputs(self, stack_name: str) -> auto.OutputMap:
        """In clear. Which of them are secret is not looked at (see `masked`)."""
        found = json.loads(self._printed("output", "--show-secrets", "--stack", stack_name))
        return {name: auto.OutputValue(value=value, secret=False) for name, value in found.items()}

    def masked(self, stack_name: str) -> dict[str, object]:
        """The outputs, with `SECRET` in the place of secret ones."""
        found: dict[str, object] = json.loads(self._printed("output", "--stack", stack_name))
        return found

    def _printed(self, *words: str) -> str:
        return str(self._run_pulumi_cmd_sync(["stack", *words, "--json"]).stdout)


class Stack(auto.Stack):
    """A stack whose runs are summed up by their last event, if `heard` listens to them."""

    _ended: SummaryEvent | None = None

    @classmethod
    def of(cls, name: str, workspace: Workspace) -> Stack:
        """The stack of that name, a new one where there is none."""
        return cls(name, workspace, StackInitMode.SELECT)

    def heard(self, on_event: OnEvent | None) -> OnEvent:
        """A listener for the next run."""
        self._ended = None

        def listen(event: EngineEvent) -> None:
            if event.summary_event:
                self._ended = event.summary_event
            if on_event:
                on_event(event)

        return listen

    def info(self, show_secrets: bool = True) -> auto.UpdateSummary | None:
        """Of the last run: as the event told it, or else as the stack's history does."""
        if self._ended is None:
            return super().info(show_secrets)
        now = datetime.datetime.now(datetime.UTC)
        began = now - datetime.timedelta(seconds=self._ended.duration_seconds)
        changes = self._ended.resource_changes
        return auto.UpdateSummary("", began, "", {}, {}, "succeeded", now, resource_changes=changes)
