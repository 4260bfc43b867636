"""Stacks of AWS under the real engine, against the simulated cloud: two runs, whose results tests inspect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pulumi import automation

from cluster.load import load_cluster
from cluster.sources import without_checksum
from cluster.spec import Cluster, ClusterSpec
from network import addresses
from network.addresses import AddressPlan
from sandbox.simcloud.faults import Faults
from sandbox.simcloud.world import Record
from stacks.policies.model import Resource
from stacks.program import declare
from stacks.steps import Recording
from stacks.validation.account import Account, opened
from stacks.validation.offers import of_catalogue
from tests import programs
from tests.stacks.engines import QUICK

ROOT = Path(__file__).resolve().parents[3]
SMALL = ROOT / "examples" / "aws-small" / "cluster.yaml"
WHOLE = Path(__file__).with_name("whole.yaml")
KEYS = {"vpn-sjc1-edge-1": "first.key.of.a.router"}


@dataclass(frozen=True)
class Deployed:
    """The result of a run of the engine. records: in the cloud. resources: in the state, secrets as marks.

    kept: in the cloud after an attempt to destroy it without a release. left: after release and destroy.
    """

    cluster: Cluster
    records: tuple[Record, ...]
    resources: tuple[Resource, ...]
    deployment: Mapping[str, Any]
    runs: Mapping[str, Recording] = field(default_factory=dict)
    kept: tuple[Record, ...] = ()
    left: tuple[Record, ...] = ()

    @property
    def plan(self) -> AddressPlan:
        return addresses.plan(self.cluster)

    def of_type(self, token: str) -> list[Record]:
        return [record for record in self.records if record.type == token]

    def called(self, token: str, name: str) -> Record:
        """Return the only resource of a type with this name in the program."""
        (record,) = (candidate for candidate in self.of_type(token) if candidate.urn.endswith(f"::{name}"))
        return record

    def tagged(self, token: str, role: str) -> Record:
        """Return the only resource of a type with a role's tag."""
        (record,) = (
            candidate for candidate in self.of_type(token) if (candidate.inputs.get("tags") or {}).get("role") == role
        )
        return record


def loaded(path: Path) -> Cluster:
    """Return the cluster of a spec, with a checksum for each program that has no published one."""
    cluster = load_cluster(path)
    unknown = {artefact.source: "0" * 64 for artefact in without_checksum(cluster.spec)}
    return changed(cluster, {"artefacts": {"sha256": {**unknown, **cluster.spec.artefacts.sha256}}})


def changed(cluster: Cluster, changes: Mapping[str, Any]) -> Cluster:
    """Return the cluster with another spec; mappings are merged."""
    merged = _merged(cluster.spec.model_dump(mode="json"), changes)
    return cluster.model_copy(update={"spec": ClusterSpec.model_validate(merged)})


def _merged(base: Any, changes: Mapping[str, Any]) -> Any:
    nested = {
        key: _merged(base[key], value) if isinstance(value, Mapping) and base.get(key) else value
        for key, value in changes.items()
    }
    return {**base, **nested}


@contextmanager
def account_of(cluster: Cluster, folder: Path, faults: Faults | None = None) -> Iterator[Account]:
    cli = programs.program("pulumi")
    with (
        opened(cluster, declare, cli, folder, of_catalogue(), faults) as account,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in QUICK.items():
            patch.setenv(name, value)
        yield account


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Deployed:
    """The small example through its whole lifecycle."""
    cluster = loaded(SMALL)
    with account_of(cluster, tmp_path_factory.mktemp("small")) as account:
        runs = {"up": account.up()}
        deployed = Deployed(cluster, tuple(account.world), account.resources, account.stack.deployment())
        runs["again"] = account.preview()
        for name, changes in UPDATES.items():
            account.cluster = changed(cluster, changes)
            runs[name] = account.preview(refresh=False)
        account.cluster = cluster
        runs["forbidden"] = account.destroy()
        kept = tuple(account.world)
        runs["release"] = Recording()
        account.stack.remove_protection(runs["release"])
        runs["destroy"] = account.destroy()
        return replace(deployed, runs=runs, kept=kept, left=tuple(account.world))


UPDATES: Mapping[str, Mapping[str, Any]] = {
    "more hosts": {"etcd": {"main": {"members": 5}}, "control_plane": {"api_servers": 3}},
    "everything else": {
        "control_plane": {"machine": "m7i.xlarge"},
        "etcd": {
            "main": {"heartbeat_interval": "200ms", "machine": "m7i.xlarge", "iops": 4000, "disk_size": "80GiB"},
        },
        "pools": {"cpu": {"min": 5, "max": 60, "labels": {"a": "b"}}},
    },
}


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Deployed:
    """Everything that a cluster can have, with the longest name."""
    cluster = loaded(WHOLE)
    with account_of(cluster, tmp_path_factory.mktemp("whole")) as account:
        for name, value in KEYS.items():
            account.stack._stack.set_config(name, automation.ConfigValue(value, secret=True))
        runs = {"up": account.up()}
        runs["again"] = account.preview()
        return Deployed(cluster, tuple(account.world), account.resources, account.stack.deployment(), runs)


@pytest.fixture
def deployed(request: pytest.FixtureRequest) -> Deployed:
    """One of the two runs, by its name: for parametrized tests."""
    fixture: Deployed = request.getfixturevalue(request.param)
    return fixture


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the first test that uses both runs enough time for both."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.timeout(400))
