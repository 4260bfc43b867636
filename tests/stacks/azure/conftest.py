"""Stacks of Azure under the real engine, against the simulated cloud: each is brought up once a session."""

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
from sandbox.simcloud.server import simulated_clouds
from sandbox.simcloud.values import plain
from sandbox.simcloud.world import Record, World
from stacks import lean
from stacks.automation import ClusterStack
from stacks.errors import StackError
from stacks.program import declare
from stacks.steps import Recording
from stacks.validation.plugin import dynamic_resources
from tests import programs
from tests.stacks.engines import QUICK

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent


def with_checksums(cluster: Cluster) -> Cluster:
    """Upstream publishes no list for some programs; no host is booted here."""
    known = {artefact.source: "0" * 64 for artefact in without_checksum(cluster.spec)}
    own = cluster.spec.artefacts.model_copy(update={"sha256": {**cluster.spec.artefacts.sha256, **known}})
    return cluster.model_copy(update={"spec": cluster.spec.model_copy(update={"artefacts": own})})


def changed(cluster: Cluster, **changes: object) -> Cluster:
    """With other values at paths: etcd__main__members=5."""
    spec = cluster.spec.model_dump(mode="json")
    for path, value in changes.items():
        *outer, last = path.split("__")
        place = spec
        for key in outer:
            place = place[key]
        place[last] = value
    return cluster.model_copy(update={"spec": type(cluster.spec).model_validate(spec)})


class Account:
    """The stack of one cluster in a subscription of its own. cluster: exchange it between runs."""

    def __init__(self, cluster: Cluster, cli: Path, folder: Path, world: World, environment: dict[str, str]) -> None:
        self.cluster = cluster
        self.world = world
        self._environment = {**environment, **QUICK, "PULUMI_CONFIG_PASSPHRASE": "tests"}
        self._known: dict[str, dict[str, Any]] = {}
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
            return self._stack.up()[0].changes

    def refused(self) -> str:
        """What an update that fails says, in one line; "" where it does not fail."""
        try:
            self.up()
        except StackError as error:
            return " ".join(str(error).split()) or "nothing: the engine is gone"
        return ""

    def orphans(self) -> list[Record]:
        """What exists and the state does not know."""
        return self.world.orphans(self.deployment())

    def deployment(self) -> dict[str, Any]:
        """What the engine keeps; secrets are encrypted."""
        with self._inside():
            return self._stack.deployment()

    def preview(self, *, refresh: bool = True) -> Recording:
        """What an update would do, even where the engine refuses it. refresh: look first at how the world is."""
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
        """URN -> resource, as the engine keeps it since the last update."""
        if not self._known:
            with self._inside():
                deployment = self._stack._stack.export_stack().deployment or {}
            self._known = {resource["urn"]: resource for resource in deployment["resources"]}
        return self._known

    def outputs(self) -> dict[str, Any]:
        """What is handed on to Ansible and to people."""
        (stack,) = (each for each in self.state().values() if each["type"] == "pulumi:pulumi:Stack")
        found: dict[str, Any] = json.loads(stack["outputs"]["outputs"])
        return found

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The inputs of every resource of a type, without marks of secrets: ``network:Subnet``."""
        return [plain(record.inputs) for record in self.records(kind)]

    def records(self, kind: str) -> list[Record]:
        return self.world.of_type(f"azure-native:{kind}")

    @property
    def subnets(self) -> dict[str, dict[str, Any]]:
        """Name -> subnet, as its network declares it."""
        (network,) = self.of("network:VirtualNetwork")
        return {subnet["name"]: subnet for subnet in network["subnets"]}

    def called(self, kind: str, name: str) -> Record:
        """The only resource of a type that the program calls so."""
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
def _opened(cluster: Cluster, folder: Path, faults: Faults | None = None) -> Iterator[Account]:
    cli = programs.program("pulumi")
    world = World()
    with simulated_clouds(world, faults, clouds=["azure"]) as simulated, dynamic_resources() as plugin:
        providers = {"PULUMI_DEBUG_PROVIDERS": f"{simulated['PULUMI_DEBUG_PROVIDERS']},{plugin}"}
        yield Account(with_checksums(cluster), cli, folder, world, providers)


@pytest.fixture(scope="session")
def opened() -> Callable[..., AbstractContextManager[Account]]:
    """opened(cluster, folder, faults): a subscription in which there is nothing, for the length of a block."""
    return _opened


@pytest.fixture(scope="session")
def koala(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """The small example."""
    cluster = load_cluster(ROOT / "examples" / "azure-small" / "cluster.yaml")
    with _opened(cluster, tmp_path_factory.mktemp("koala")) as account:
        account.up()
        yield account


@pytest.fixture(scope="session")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """All that there can be, under the longest name."""
    with _opened(load_cluster(HERE / "wide.yaml"), tmp_path_factory.mktemp("wide")) as account:
        account.up()
        yield account


@pytest.fixture(scope="session", params=["koala", "wide"])
def account(request: pytest.FixtureRequest) -> Account:
    """Each of them."""
    found: Account = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def text_of() -> Callable[[str], str]:
    """User data as a host reads it, with its programs unpacked."""

    def read(user_data: str) -> str:
        text = gzip.decompress(base64.b64decode(user_data)).decode()
        files = yaml.safe_load(text)["write_files"]
        packed = [file["content"] for file in files if file.get("encoding") == "gz+b64"]
        return text + "".join(gzip.decompress(base64.b64decode(each)).decode() for each in packed)

    return read
