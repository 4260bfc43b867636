"""Stacks of AWS under the real engine, against the simulated cloud."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pulumi
import pytest

from cluster.load import load_cluster
from cluster.spec import Cluster
from flows.table import UPSTREAM
from simcloud.server import simulated_clouds
from simcloud.world import Record, World
from stacks.automation import ClusterStack
from stacks.aws.endpoints import Endpoints
from stacks.aws.network import Network
from stacks.aws.security import SecurityGroups
from stacks.aws.tags import provider
from tools import build as programs

ROOT = Path(__file__).resolve().parents[3]
OFFICE = IPv4Network("192.0.2.0/24")
REPLACING = {"replace", "create-replacement", "delete-replaced", "delete"}


@pytest.fixture(scope="session")
def lemur() -> Cluster:
    """Workers in the region, etcd events on the hosts of main; one zone is named by its id."""
    return load_cluster(ROOT / "tests" / "specs" / "valid-aws.yaml")


@pytest.fixture(scope="session")
def jackal(build: Callable[..., Cluster]) -> Cluster:
    """Workers in the region and, as the lab has them, at a site; hosts of their own for both etcds."""
    machines = {"machine": "i4i.xlarge", "disk": "io2", "hosts": "dedicated"}
    return build(
        {
            "name": "jackal",
            "control_plane": {
                "cloud": "aws",
                "region": "eu-west-1",
                "zones": ["eu-west-1a", "eu-west-1b"],
                "machine": "m7i.large",
            },
            "etcd": {"main": {**machines, "members": 5}, "events": {**machines, "members": 3}},
            "network": {"nodes": "10.44.0.0/16"},
            "pools": {"cpu": {"machine": "m7i.large", "min": 1, "max": 9}},
        }
    )


class Account:
    """The stack of one cluster in an account of its own. program: exchange it between runs."""

    def __init__(self, cluster: Cluster, cli: Path, folder: Path, world: World) -> None:
        self.cluster = cluster
        self.world = world
        self.folder = folder
        self.program: Callable[[], None] = lambda: None
        self.stack = ClusterStack(cluster, lambda: self.program(), cli, folder)

    def up(self) -> dict[str, int]:
        return self.stack.up()[0].changes

    def preview(self) -> dict[str, int]:
        return self.stack.preview().changes

    def replaced(self) -> set[str]:
        """Names of the resources that an update would replace or delete."""
        names: set[str] = set()

        def look(event: Any) -> None:
            step = event.resource_pre_event
            if step and step.metadata.op.value in REPLACING:
                names.add(step.metadata.urn.rpartition("::")[2])

        self.stack.preview(look)
        return names

    def called(self, name: str) -> Record:
        """The only resource that the program calls so."""
        (record,) = (record for record in self.world if record.urn.endswith(f"::{name}"))
        return record


@contextmanager
def _opened(cluster: Cluster, folder: Path) -> Iterator[Account]:
    cli = {row["program"]: row for row in programs.states()}["pulumi"]
    if not cli["built"]:
        pytest.skip("pulumi is not built; `make lab` and `make test` build it")
    world = World()
    with simulated_clouds(world, clouds=["aws"]) as environment, pytest.MonkeyPatch.context() as patch:
        for name, value in {**environment, "PULUMI_CONFIG_PASSPHRASE": "tests"}.items():
            patch.setenv(name, value)
        yield Account(cluster, Path(str(cli["path"])), folder, world)


@pytest.fixture(scope="session")
def opened() -> Callable[[Cluster, Path], AbstractContextManager[Account]]:
    """opened(cluster, folder): an account in which there is nothing, for the length of a block."""
    return _opened


@pytest.fixture
def account(lemur: Cluster, tmp_path: Path) -> Iterator[Account]:
    """Lemur's, in which there is nothing."""
    with _opened(lemur, tmp_path) as made:
        yield made


def network(cluster: Cluster, source=UPSTREAM, operators=(OFFICE,), flow_logs=None) -> None:
    """The program of a network and its firewalls."""
    opts = pulumi.ResourceOptions(provider=provider(cluster))
    made = Network(cluster, opts, flow_logs)
    security = SecurityGroups(cluster, made, source, operators, opts)
    Endpoints(cluster, made, security, opts)


@pytest.fixture(scope="session")
def declare() -> Callable[..., None]:
    return network


@pytest.fixture(scope="session")
def networks(
    lemur: Cluster, jackal: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Cluster, Account]]:
    """Name of a cluster -> itself, and the account in which its network was made."""
    made = {}
    for cluster in (lemur, jackal):
        with _opened(cluster, tmp_path_factory.mktemp(cluster.name)) as account:
            account.program = lambda cluster=cluster: network(cluster)
            account.up()
        made[cluster.name] = (cluster, account)
    return made
