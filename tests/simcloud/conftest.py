"""Simulated clouds: called directly (`api`), and by stacks of the real engine (`engine`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pulumi import automation as auto
from pulumi.automation.events import EngineEvent

from sandbox.simcloud.faults import Faults
from sandbox.simcloud.rules import Offers
from sandbox.simcloud.server import CLOUDS, simulated_clouds
from sandbox.simcloud.simulation import SimulatedCloud
from sandbox.simcloud.world import Record, World
from stacks import lean
from stacks.commands import Command, Stack, Workspace
from tests.programs import program
from tests.stacks.engines import QUICK

PLACES = {
    "aws": {"region": "eu-west-1"},
    "gcp": {"project": "apes", "region": "europe-west4", "zone": "europe-west4-a"},
    "azure": {"location": "westeurope"},
}


class Api:
    """One cloud without an engine. settings: changes to its provider's configuration."""

    def __init__(self, name: str, world: World | None = None, offers: Offers | None = None, **settings: str) -> None:
        self.world = World() if world is None else world
        self.simulation = SimulatedCloud(CLOUDS[name], self.world, offers or Offers())
        self.settings = CLOUDS[name].configure({**PLACES[name], **settings})

    def create(self, token: str, called: str = "it", **inputs: object) -> Record:
        return self.simulation.create(self.settings, token, called, self.checked(token, called, inputs))

    def update(self, record: Record, **changes: object) -> Record:
        new = {name: value for name, value in {**record.inputs, **changes}.items() if value is not None}
        return self.simulation.update(self.settings, record.type, record.urn, record.id, new)

    def delete(self, record: Record) -> None:
        self.simulation.delete(self.settings, record.type, record.id)

    def replaces(self, token: str, old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
        return self.simulation.diff(token, dict(old), dict(new)).replaces

    def checked(self, token: str, called: str, inputs: Mapping[str, object]) -> dict[str, Any]:
        completed, failures = self.simulation.check(self.settings, token, called, {}, dict(inputs), "5eed5eed", "")
        if failures:
            raise failures[0]
        return completed


@pytest.fixture
def api() -> type[Api]:
    return Api


class Engine:
    """The engine with one stack over a world. program: replaceable between runs."""

    def __init__(
        self, cli: Command, folder: Path, world: World, faults: Faults, environment: Mapping[str, str]
    ) -> None:
        self.world = world
        self.faults = faults
        self.program: Callable[[], None] = lambda: None
        (folder / "state").mkdir(exist_ok=True)
        configuration = {
            f"{CLOUDS[cloud].package}:{name}": value
            for cloud, places in PLACES.items()
            for name, value in places.items()
        }
        home = folder / "home"
        home.mkdir(exist_ok=True)
        lean.without_log_files(home)
        workspace = Workspace(
            work_dir=str(folder),
            pulumi_command=cli,
            program=lean.program(self._declare),
            project_settings=auto.ProjectSettings(
                name="apes", runtime="python", backend=auto.ProjectBackend(url=f"file://{folder / 'state'}")
            ),
            stack_settings={"sim": auto.StackSettings(config=configuration)},
            env_vars={
                **environment,
                **QUICK,
                "PULUMI_CONFIG_PASSPHRASE": "tests",
                "PULUMI_SKIP_UPDATE_CHECK": "true",
                "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
                "PULUMI_HOME": str(home),
            },
        )
        self.stack = Stack.of("sim", workspace)
        # After each run the Automation API calls the CLI twice more, which takes longer than the run.
        self.stack.outputs = dict
        self.stack.info = lambda *_: object()

    def _declare(self) -> None:
        lean.without_former_types()
        self.program()

    def preview(self, **options: bool) -> dict[str, int]:
        """Return operation -> number of the clouds' resources."""
        operations: Counter[str] = Counter()
        with lean.few_collections():
            self.stack.preview(on_event=lambda event: operations.update(_operation(event)), **options)
        return dict(operations)

    def up(self, **options: bool) -> dict[str, int]:
        """Return operation -> number of the clouds' resources."""
        operations: Counter[str] = Counter()
        with lean.few_collections():
            self.stack.up(on_event=lambda event: operations.update(_operation(event)), **options)
        return dict(operations)

    def outputs(self) -> dict[str, Any]:
        return {name: output.value for name, output in Stack.outputs(self.stack).items()}

    def refused(self, run: Callable[..., object] | None = None, **options: object) -> str:
        """Return the message of an update that fails."""
        with pytest.raises(auto.CommandError) as error:
            (run or self.stack.up)(**options)
        return " ".join(str(error.value).split())

    def orphans(self) -> list[Record]:
        return self.world.orphans(self.stack.export_stack().deployment or {})


def _operation(event: EngineEvent) -> list[str]:
    step = event.resource_pre_event
    return [] if step is None or step.metadata.type.startswith("pulumi:") else [step.metadata.op.value]


@pytest.fixture(scope="session")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Command:
    pulumi = program("pulumi")
    # The Automation API looks for bin/pulumi below a root.
    root = tmp_path_factory.mktemp("cli")
    (root / "bin").mkdir()
    (root / "bin" / "pulumi").symlink_to(str(pulumi))
    return Command(root)


@pytest.fixture
def engine(cli: Command, tmp_path: Path) -> Iterator[Callable[..., Engine]]:
    """Yield engine(world, offers): this test's stack over a world; call it again for another world."""
    with ExitStack() as stack:

        def make(world: World | None = None, offers: Offers | None = None) -> Engine:
            chosen, faults = World() if world is None else world, Faults()
            environment = stack.enter_context(simulated_clouds(chosen, faults, offers))
            return Engine(cli, tmp_path, chosen, faults, environment)

        yield make
