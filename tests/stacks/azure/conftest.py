"""Stacks of Azure under the real engine, against the simulated cloud: each is brought up once per session."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from pulumi import automation as auto

from cluster.load import load_cluster
from cluster.sources import without_checksum
from cluster.spec import Cluster
from network import addresses
from network.addresses import AddressPlan
from network.vpn import tunnels
from sandbox.simcloud.faults import Faults
from sandbox.simcloud.rules import Offers
from sandbox.simcloud.server import simulated_clouds
from sandbox.simcloud.values import plain
from sandbox.simcloud.world import Record, World
from stacks import grants, lean
from stacks.automation import ClusterStack
from stacks.errors import StackError
from stacks.events import describe
from stacks.program import declare
from stacks.steps import Recording
from stacks.validation.plugin import dynamic_resources
from stacks.validation.private import saving
from tests import programs
from tests.stacks.engines import QUICK

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent
SLOW_GRANTS = 3
"""How often koala's new grants are used in vain."""


def with_checksums(cluster: Cluster) -> Cluster:
    """Add stand-in checksums for programs without published ones; no host boots here."""
    stand_ins = {artefact.source: "0" * 64 for artefact in without_checksum(cluster.spec)}
    own = cluster.spec.artefacts.model_copy(update={"sha256": {**cluster.spec.artefacts.sha256, **stand_ins}})
    return cluster.model_copy(update={"spec": cluster.spec.model_copy(update={"artefacts": own})})


def changed(cluster: Cluster, **changes: object) -> Cluster:
    """Return the cluster with other values at paths: etcd__main__members=5."""
    spec = cluster.spec.model_dump(mode="json")
    for path, value in changes.items():
        *outer, last = path.split("__")
        place = spec
        for key in outer:
            place = place[key]
        place[last] = value
    return cluster.model_copy(update={"spec": type(cluster.spec).model_validate(spec)})


class Account:
    """The stack of one cluster in its own subscription. cluster: replace it between runs. reported: what `up` reports."""

    def __init__(self, cluster: Cluster, cli: Path, folder: Path, world: World, environment: dict[str, str]) -> None:
        self.cluster = cluster
        self.world = world
        self._environment = {**environment, **QUICK, "PULUMI_CONFIG_PASSPHRASE": "tests"}
        self._known: dict[str, dict[str, Any]] = {}
        self.reported: list[str] = []
        with self._inside():
            self._stack = ClusterStack(cluster, self._program, cli, folder)
            for name in {tunnel.secret for tunnel in tunnels(cluster)}:
                secret = auto.ConfigValue(f"key+of+{name.replace('-', '_')}", secret=True)
                self._stack._stack.set_config(name, secret)

    @property
    def plan(self) -> AddressPlan:
        return addresses.plan(self.cluster)

    def up(self) -> dict[str, int]:
        self._known = {}
        with self._inside():
            return self._stack.up(describe(self.reported.append))[0].changes

    def refused(self) -> str:
        """Run a failing update; return its error in one line, or "" if it does not fail."""
        try:
            self.up()
        except StackError as error:
            return " ".join(str(error).split()) or "no message: the engine died"
        return ""

    def orphans(self) -> list[Record]:
        """Return what exists but is not in the state."""
        return self.world.orphans(self.deployment())

    def deployment(self) -> dict[str, Any]:
        """Return the engine's record; secrets are encrypted."""
        with self._inside():
            return self._stack.deployment()

    def preview(self, *, refresh: bool = True) -> Recording:
        """Return what an update would do, even if the engine refuses it. refresh: first read the actual state."""
        recording = Recording()
        with self._inside(), suppress(StackError):
            self._stack.preview(recording, refresh=refresh)
        return recording

    def unprotect(self) -> None:
        with self._inside():
            where = ["--stack", self.cluster.name, "--yes"]
            engine = self._stack
            engine._command.run(
                ["state", "unprotect", "--all", *where], engine._stack.workspace.work_dir, engine._environment
            )

    def destroy(self) -> None:
        with self._inside():
            self._stack.destroy()

    def state(self) -> dict[str, dict[str, Any]]:
        """Return URN -> resource, as stored by the engine since the last update."""
        if not self._known:
            with self._inside():
                deployment = self._stack._stack.export_stack().deployment or {}
            self._known = {resource["urn"]: resource for resource in deployment["resources"]}
        return self._known

    def outputs(self) -> dict[str, Any]:
        """Return the outputs for Ansible and people."""
        (stack,) = (resource for resource in self.state().values() if resource["type"] == "pulumi:pulumi:Stack")
        outputs: dict[str, Any] = json.loads(stack["outputs"]["outputs"])
        return outputs

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the inputs of every resource of a type, without marks of secrets: ``network:VirtualNetwork``."""
        return [plain(record.inputs) for record in self.records(kind)]

    def records(self, kind: str) -> list[Record]:
        return self.world.of_type(f"azure-native:{kind}")

    @property
    def subnets(self) -> dict[str, dict[str, Any]]:
        """Name -> subnet, as its network declares it."""
        (network,) = self.of("network:VirtualNetwork")
        return {subnet["name"]: subnet for subnet in network["subnets"]}

    def called(self, kind: str, name: str) -> Record:
        """Return the only resource of a type with this name in the program."""
        (record,) = (record for record in self.records(kind) if record.urn.endswith(f"::{name}"))
        return record

    def _program(self) -> None:
        lean.without_former_types()
        declare(self.cluster)

    @contextmanager
    def _inside(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self._environment.items():
                patch.setenv(name, value)
            yield


@contextmanager
def _opened(
    cluster: Cluster, folder: Path, faults: Faults | None = None, offers: Offers | None = None
) -> Iterator[Account]:
    cli = programs.program("pulumi")
    world = World()
    with simulated_clouds(world, faults, offers, clouds=["azure"]) as simulated, dynamic_resources() as plugin:
        providers = {"PULUMI_DEBUG_PROVIDERS": f"{simulated['PULUMI_DEBUG_PROVIDERS']},{plugin}"}
        yield Account(with_checksums(cluster), cli, folder, world, {**providers, **saving(faults)})


@pytest.fixture(scope="session")
def opened() -> Callable[..., AbstractContextManager[Account]]:
    """opened(cluster, folder, faults, offers): an empty subscription, for a block."""
    return _opened


@pytest.fixture(scope="session")
def koala(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """The small example, in a subscription whose role assignments take their time."""
    cluster = load_cluster(ROOT / "examples" / "azure-small" / "cluster.yaml")
    slow = Offers(slow_grants=SLOW_GRANTS)
    with _opened(cluster, tmp_path_factory.mktemp("koala"), offers=slow) as account, grants.simulated_time():
        account.up()
        yield account


@pytest.fixture(scope="session")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """Everything that is possible, with the longest name."""
    with _opened(load_cluster(HERE / "wide.yaml"), tmp_path_factory.mktemp("wide")) as account:
        account.up()
        yield account


@pytest.fixture(scope="session", params=["koala", "wide"])
def account(request: pytest.FixtureRequest) -> Account:
    """Both of them."""
    fixture: Account = request.getfixturevalue(request.param)
    return fixture


@pytest.fixture(scope="session")
def text_of() -> Callable[[str], str]:
    """User data as a host reads it, with its programs unpacked."""

    def read(user_data: str) -> str:
        text = gzip.decompress(base64.b64decode(user_data)).decode()
        files = yaml.safe_load(text)["write_files"]
        packed = [file["content"] for file in files if file.get("encoding") == "gz+b64"]
        return text + "".join(gzip.decompress(base64.b64decode(content)).decode() for content in packed)

    return read
