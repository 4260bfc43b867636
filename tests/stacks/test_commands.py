"""How often the CLI is run: a script stands for it that keeps what it was asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pulumi import automation as auto
from pulumi.automation.events import EngineEvent

from cluster.versions import PULUMI
from stacks.commands import SECRET, Command, Stack, Workspace

HISTORY = {
    "kind": "update",
    "startTime": "2026-01-01T00:00:00.000Z",
    "endTime": "2026-01-01T00:00:07.000Z",
    "message": "",
    "environment": {},
    "config": {},
    "result": "succeeded",
    "resourceChanges": {"create": 3},
}
CLI = f"""#!/bin/sh
echo "$*" >> "$0.asked"
case "$*" in
*history*) echo '{json.dumps([HISTORY])}' ;;
*--show-secrets*) echo '{{"key": "clear", "name": "ape"}}' ;;
*output*) echo '{{"key": "{SECRET}", "name": "ape"}}' ;;
esac
"""


@pytest.fixture
def cli(tmp_path: Path) -> Path:
    path = tmp_path / "bin" / "pulumi"
    path.parent.mkdir()
    path.write_text(CLI)
    path.chmod(0o755)
    return path


def asked(cli: Path) -> list[str]:
    """What it was asked since the last look, without the word that is in all of it."""
    file = cli.with_name("pulumi.asked")
    lines = file.read_text().splitlines() if file.exists() else []
    file.write_text("")
    return [line.removeprefix("--non-interactive ") for line in lines]


def opened(cli: Path, secrets_provider: str | None = None) -> tuple[Stack, Workspace]:
    settings = auto.ProjectSettings(name="menagerie", runtime="python")
    workspace = Workspace(
        work_dir=str(cli.parent),
        pulumi_command=Command(cli.parent.parent),
        project_settings=settings,
        secrets_provider=secrets_provider,
    )
    return Stack.of("lab", workspace), workspace


def test_a_stack_is_made_or_found_in_one_run_and_nobody_asks_for_the_version(cli: Path) -> None:
    stack, workspace = opened(cli)
    assert asked(cli) == ["stack select --create --stack lab"]
    assert (stack.name, str(workspace.pulumi_version)) == ("lab", PULUMI)


def test_a_new_stack_has_the_secrets_provider_that_was_chosen(cli: Path) -> None:
    opened(cli, "awskms://key")
    assert asked(cli) == ["stack select --create --secrets-provider awskms://key --stack lab"]


def test_outputs_are_read_in_one_run_and_which_are_secret_in_another(cli: Path) -> None:
    stack, workspace = opened(cli)
    asked(cli)
    assert {name: output.value for name, output in stack.outputs().items()} == {"key": "clear", "name": "ape"}
    assert len(asked(cli)) == 1
    assert workspace.masked("lab") == {"key": SECRET, "name": "ape"}
    (line,) = asked(cli)
    assert "--show-secrets" not in line


def test_an_update_is_summed_up_by_the_event_at_its_end_and_only_without_one_by_the_history(cli: Path) -> None:
    stack, _ = opened(cli)
    seen: list[EngineEvent] = []
    listen = stack.heard(seen.append)
    event = EngineEvent.from_json(
        {"sequence": 1, "timestamp": 1, "summaryEvent": {"durationSeconds": 5, "resourceChanges": {"same": 4}}}
    )
    listen(event)
    asked(cli)
    told = stack.info()
    assert told is not None and told.end_time is not None
    assert (seen, told.resource_changes) == ([event], {"same": 4})
    assert (told.end_time - told.start_time).total_seconds() == 5
    assert asked(cli) == []
    stack.heard(None)
    told = stack.info(show_secrets=False)
    assert told is not None and told.resource_changes == {"create": 3}
    assert asked(cli) == ["stack history --json --page-size 1 --page 1 --stack lab"]


def test_an_update_that_nobody_hears_of_takes_three_runs(cli: Path) -> None:
    stack, _ = opened(cli)
    asked(cli)
    stack.up(show_secrets=False)
    words = [line.split()[:2] for line in asked(cli)]
    assert words == [["up", "--yes"], ["stack", "output"], ["stack", "history"]]
