"""How often the CLI is run: a script replaces it and records its arguments. And connections to engines."""

from __future__ import annotations

import contextvars
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from pulumi import automation as auto
from pulumi.automation.events import EngineEvent
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc
from pulumi.runtime.settings import Settings

from cluster.versions import PULUMI
from stacks.commands import SECRET, Command, Stack, Workspace, with_own_connections

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


def runs(cli: Path) -> list[str]:
    """Return the arguments of each run since the last call, without the option that all have."""
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


def test_a_stack_is_created_or_selected_in_one_run_without_a_version_query(cli: Path) -> None:
    stack, workspace = opened(cli)
    assert runs(cli) == ["stack select --create --stack lab"]
    assert (stack.name, str(workspace.pulumi_version)) == ("lab", PULUMI)


def test_a_new_stack_has_the_chosen_secrets_provider(cli: Path) -> None:
    opened(cli, "awskms://key")
    assert runs(cli) == ["stack select --create --secrets-provider awskms://key --stack lab"]


def test_outputs_take_one_run_and_secret_names_another(cli: Path) -> None:
    stack, workspace = opened(cli)
    runs(cli)
    assert {name: output.value for name, output in stack.outputs().items()} == {"key": "clear", "name": "ape"}
    assert len(runs(cli)) == 1
    assert workspace.masked("lab") == {"key": SECRET, "name": "ape"}
    (line,) = runs(cli)
    assert "--show-secrets" not in line


def test_an_update_is_summarised_by_its_last_event_or_else_by_the_history(cli: Path) -> None:
    stack, _ = opened(cli)
    events: list[EngineEvent] = []
    listen = stack.heard(events.append)
    event = EngineEvent.from_json(
        {"sequence": 1, "timestamp": 1, "summaryEvent": {"durationSeconds": 5, "resourceChanges": {"same": 4}}}
    )
    listen(event)
    runs(cli)
    summary = stack.info()
    assert summary is not None and summary.end_time is not None
    assert (events, summary.resource_changes) == ([event], {"same": 4})
    assert (summary.end_time - summary.start_time).total_seconds() == 5
    assert runs(cli) == []
    stack.heard(None)
    summary = stack.info(show_secrets=False)
    assert summary is not None and summary.resource_changes == {"create": 3}
    assert runs(cli) == ["stack history --json --page-size 1 --page 1 --stack lab"]


def test_an_update_without_a_listener_takes_three_runs(cli: Path) -> None:
    stack, _ = opened(cli)
    runs(cli)
    stack.up(show_secrets=False)
    words = [line.split()[:2] for line in runs(cli)]
    assert words == [["up", "--yes"], ["stack", "output"], ["stack", "history"]]


def engine_at(address: str) -> engine_pb2_grpc.EngineStub:
    """Return the SDK's connection to an engine, without making it the one of later tests."""

    def connected() -> engine_pb2_grpc.EngineStub:
        return Settings(project="p", stack="s", monitor=address, engine=address).engine

    return contextvars.copy_context().run(connected)


def test_an_engine_on_the_port_of_a_former_one_is_reached() -> None:
    """Without connections of its own, the second channel would wait together with the first one."""
    with_own_connections()

    class Answers(engine_pb2_grpc.EngineServicer):
        def GetRootResource(self, request: object, context: object) -> engine_pb2.GetRootResourceResponse:
            return engine_pb2.GetRootResourceResponse(urn="root")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        at = f"127.0.0.1:{listener.getsockname()[1]}"
    former = engine_at(at)
    for _ in range(3):
        with pytest.raises(grpc.RpcError, match="UNAVAILABLE"):
            former.GetRootResource(engine_pb2.GetRootResourceRequest())
    server = grpc.server(ThreadPoolExecutor(1))
    engine_pb2_grpc.add_EngineServicer_to_server(Answers(), server)
    server.add_insecure_port(at)
    server.start()
    try:
        new = engine_at(at)
        assert new.GetRootResource(engine_pb2.GetRootResourceRequest()).urn == "root"
    finally:
        server.stop(None).wait()
