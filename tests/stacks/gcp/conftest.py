"""Stacks of Google Cloud under the real engine, against the simulated cloud; each cluster is run once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi
import pytest

from cluster.load import load_cluster
from cluster.sources import without_checksum
from cluster.spec import Cluster, ClusterSpec
from network import addresses
from network.addresses import AddressPlan
from sandbox.simcloud.faults import Faults
from sandbox.simcloud.rules import Offers
from sandbox.simcloud.server import simulated_clouds
from sandbox.simcloud.values import plain
from sandbox.simcloud.world import Record, World
from stacks import grants, program
from stacks.automation import ClusterStack
from stacks.events import describe
from stacks.validation.plugin import dynamic_resources
from stacks.validation.private import saving
from tests import programs
from tests.stacks.engines import QUICK

ROOT = Path(__file__).resolve().parents[3]
PROJECT = "apes-prod"
PSK = "a-pre-shared-key"
SLOW_GRANTS = 3
"""How often gibbon's new grants are used in vain."""


@dataclass
class Run:
    """Results of one cluster's stack. summaries: of each step, by its name. steps: of the plan for a changed spec,
    (operation, type, name). reported: what the first `up` reported."""

    cluster: Cluster
    plan: AddressPlan
    records: list[Record]
    resources: list[Mapping[str, Any]]
    outputs: Mapping[str, object]
    summaries: dict[str, Mapping[str, int]] = field(default_factory=dict)
    steps: list[tuple[str, str, str]] = field(default_factory=list)
    left: list[Record] = field(default_factory=list)
    unproven: Any = None
    reported: list[str] = field(default_factory=list)

    def all(self, kind: str) -> list[dict[str, Any]]:
        """Return the inputs of all resources of a type, such as ``Firewall``."""
        return [plain(record.inputs) for record in self.records if record.type.rpartition(":")[2] == kind]

    def outputs_of(self, kind: str) -> list[dict[str, Any]]:
        return [plain(record.outputs) for record in self.records if record.type.rpartition(":")[2] == kind]

    def reader(self, email: str) -> str:
        """Return the reader whose identity has an address."""
        names = {account["email"]: account["displayName"] for account in self.outputs_of("Account")}
        return str(names[email.removeprefix("serviceAccount:")]).rpartition(": ")[2]

    def protected(self) -> dict[str, set[str]]:
        """Return type -> names in the program of resources that the engine does not delete."""
        names: dict[str, set[str]] = {}
        for resource in self.resources:
            if resource.get("protect"):
                names.setdefault(resource["type"].rpartition(":")[2], set()).add(resource["urn"].rpartition("::")[2])
        return names


def ready(cluster: Cluster) -> Cluster:
    """Return the cluster with stand-in checksums for programs without published ones."""
    spec = cluster.spec
    missing = {artefact.source: "0" * 64 for artefact in without_checksum(spec)}
    artefacts = spec.artefacts.model_copy(update={"sha256": {**spec.artefacts.sha256, **missing}})
    return cluster.model_copy(update={"spec": spec.model_copy(update={"artefacts": artefacts})})


def changed(cluster: Cluster, changes: Mapping[str, Any]) -> Cluster:
    """Return the cluster with changes by path, ``etcd.main.members``."""
    spec = cluster.spec.model_dump(mode="json")
    for path, value in changes.items():
        *folders, last = path.split(".")
        at = spec
        for name in folders:
            at = at[name]
        at[last] = value
    return Cluster(spec=ClusterSpec.model_validate(spec), hosts=cluster.hosts)


def planned(stack: ClusterStack) -> list[tuple[str, str, str]]:
    """Return (operation, type, name) of each step of a plan, in order."""
    steps = []

    def look(event: Any) -> None:
        if step := event.resource_pre_event:
            _, _, types, name = step.metadata.urn.split("::")
            steps.append((step.metadata.op.value, types.rpartition(":")[2], name))

    stack.preview(look, refresh=False)
    return steps


@contextmanager
def opened(
    cluster: Cluster, folder: Path, faults: Faults | None = None, offers: Offers | None = None
) -> Iterator[tuple[ClusterStack, World, list[Cluster]]]:
    """Yield a stack in an empty project, and a list with the one cluster that its program declares; replace it there."""
    cli = programs.program("pulumi")
    world, current = World(), [cluster]
    with (
        simulated_clouds(world, faults, offers, clouds=["gcp"]) as simulated,
        dynamic_resources() as plugin,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("PULUMI_DEBUG_PROVIDERS", f"{simulated['PULUMI_DEBUG_PROVIDERS']},{plugin}")
        for name, value in {**QUICK, **saving(faults), "PULUMI_CONFIG_PASSPHRASE": "tests"}.items():
            patch.setenv(name, value)
        stack = ClusterStack(cluster, lambda: program.declare(current[0]), cli, folder)
        configure(stack, "gcp:project", PROJECT)
        yield stack, world, current


def configure(stack: ClusterStack, key: str, value: str, secret: bool = False) -> None:
    stack._stack.set_config(key, pulumi.automation.ConfigValue(value, secret))


@pytest.fixture(scope="session")
def gibbon(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The small example: created where grants take their time, planned again, planned with changes, released, destroyed."""
    cluster = ready(load_cluster(ROOT / "examples" / "gcp-small" / "cluster.yaml"))
    slow = Offers(slow_grants=SLOW_GRANTS)
    with (
        opened(cluster, tmp_path_factory.mktemp("gibbon"), offers=slow) as (stack, world, current),
        grants.simulated_time(),
    ):
        reported: list[str] = []
        summary, outputs = stack.up(describe(reported.append))
        resources = stack.deployment()["resources"]
        run = Run(cluster, addresses.plan(cluster), list(world), resources, outputs)
        run.unproven, run.reported = dict(world.unproven), reported
        run.summaries = {"up": summary.changes, "again": stack.preview(refresh=False).changes}
        current[0] = changed(
            cluster,
            {
                "etcd.main.members": 5,
                "etcd.main.heartbeat_interval": "200ms",
                "etcd.main.election_timeout": "2s",
                "control_plane.api_servers": 5,
                "control_plane.zones": [*cluster.spec.control_plane.zones, "us-central1-f"],
                "control_plane.image": "projects/own/global/images/family/own-debian",
                "control_plane.operators": ["10.250.0.0/24"],
                "pools.cpu.max": 40,
                "pools.cpu.min": 5,
                "pools.more": {"machine": "c3-standard-4", "max": 3},
                **{
                    f"pools.more-{i}": {"machine": "c3-standard-4", "max": 3, "zones": ["us-central1-a"]}
                    for i in range(9)
                },
            },
        )

        run.steps = planned(stack)
        current[0] = cluster
        configure(stack, "menagerie:release", "true")
        run.summaries["release"] = stack.up()[0].changes
        run.summaries["destroy"] = stack.destroy().changes
        run.left = list(world)
    return run


@pytest.fixture(scope="session")
def langur(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Everything that a stack can have: local disks, backups, both etcds on dedicated hosts, every kind of pool, tunnels."""
    cluster = ready(load_cluster(Path(__file__).parent / "langur" / "cluster.yaml"))
    with opened(cluster, tmp_path_factory.mktemp("langur")) as (stack, world, _):
        for name in ("vpn-sjc1-a", "vpn-sjc1-b"):
            configure(stack, f"menagerie:{name}", PSK, secret=True)
        summary, outputs = stack.up()
        resources = stack.deployment()["resources"]
        run = Run(cluster, addresses.plan(cluster), list(world), resources, outputs, {"up": summary.changes})
        run.unproven = dict(world.unproven)
    return run


@pytest.fixture(params=["gibbon", "langur"])
def run(request: pytest.FixtureRequest) -> Run:
    fixture: Run = request.getfixturevalue(request.param)
    return fixture
