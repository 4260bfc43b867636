"""The checkout that built a cluster is deleted: a new one knows all that the other one knew."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pulumi
import pytest

from clients.access import Access
from cluster.artefacts import catalogue
from cluster.load import load_cluster
from cluster.outputs import ArtefactOutput
from cluster.spec import Cluster
from operations import configure, machines, stack
from operations.machines_journal import journal_of, shared
from operations.provisioning.journal import InstallStage
from operations.provisioning.machines import SiteMachine, every
from operations.record.take import take
from tests.cli.terminal import Menagerie
from tests.operations.existence.conftest import in_checkout
from tests.operations.record.conftest import ELSEWHERE, KEY, access_to, make_bucket, record, versitygw
from tests.programs import program

LYNX = Path(__file__).parents[2] / "specs" / "valid-provisioning.yaml"
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG0BQ0bGZ4JbNd1gVqE0sX5fF1jE0b0p6T6Yb5jO1k9z"

__all__ = ["versitygw"]


@pytest.fixture
def lynx() -> Cluster:
    return load_cluster(LYNX)


@pytest.fixture
def laptop(
    menagerie: Menagerie, lynx: Cluster, versitygw: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Path]:
    """The checkout that has built lynx. State and records are in buckets of a real S3 server."""
    cli = program("pulumi")
    monkeypatch.setattr("operations.stack.pulumi_cli", lambda _: cli)
    monkeypatch.setenv("PULUMI_DEBUG_PROVIDERS", "azure-native:1")
    for name, value in json.loads(KEY).items():
        monkeypatch.setenv(f"AWS_{name.upper()}", value)
    monkeypatch.setenv(
        "PULUMI_BACKEND_URL", f"s3://state-lynx?endpoint={versitygw}&s3ForcePathStyle=true&region=us-east-1"
    )
    for bucket in ("state-lynx", "records-lynx"):
        make_bucket(versitygw, bucket)
    sums = {artefact.source: f"{number:064x}" for number, artefact in enumerate(catalogue().values())}
    artefacts = ArtefactOutput(mirror=None, sha256=sums, registry=None)
    outputs = access_to(versitygw, "records-lynx").outputs.model_copy(update={"artefacts": artefacts})

    def declare(_: Cluster) -> None:
        pulumi.ComponentResource("tests:of:Existence", "cloud")
        pulumi.export("outputs", outputs.model_dump_json())
        pulumi.export("bucket_key", pulumi.Output.secret(KEY))
        for name in ("operator_certificate", "operator_key", "operator_etcd_certificate", "operator_etcd_key"):
            pulumi.export(name, "")

    folder = tmp_path / "laptop"
    folder.mkdir()
    in_checkout(monkeypatch, folder)
    monkeypatch.setattr("stacks.program.declare", declare)
    stack.make_stack(lynx, lambda _: None).up()
    yield folder


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No BMC, no server of installers and no API server is asked."""

    @contextmanager
    def connect(_: SiteMachine) -> Any:
        yield None

    monkeypatch.setattr("operations.bmcs.connections", lambda *_: connect)
    monkeypatch.setattr(machines, "read_all", lambda *_: ())
    monkeypatch.setattr(machines, "nodes", lambda _: frozenset())
    monkeypatch.setattr(machines, "stale", lambda _: ([], []))


def test_a_new_clone_knows_the_cluster_its_installed_machines_their_keys_and_who_worked_on_it(
    laptop: Path, quiet: None, lynx: Cluster, menagerie: Menagerie, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    access = stack.access_to(lynx)
    one, *others = every(lynx)
    install(lynx, access, one)
    store = shared(access)
    assert store
    take(store, record("configure", "", holder=ELSEWHERE).model_copy(update={"cluster": "lynx"}), print).done("workers")
    shutil.rmtree(laptop)
    in_checkout(monkeypatch, tmp_path / "clone")

    operations = menagerie("status", str(LYNX), "operations", "--json").json
    assert operations["current"]["verb"] == "configure"
    planned = menagerie("machines", "install", str(LYNX), "--dry-run", "--json").json
    assert planned["left_out"] == [one.name]
    work = configure.plan(lynx, stack.access_to(lynx), configure.PlaybookRequest())
    assert work.inventory.known_hosts == f"{one.known_as} {HOST_KEY}\n"
    assert {machine.name for machine in others} <= set(work.inventory.unknown_hosts)


def install(cluster: Cluster, access: Access, machine: SiteMachine) -> None:
    """Write what an installation of the machine writes."""
    journal = journal_of(cluster.name, shared(access))
    journal.note(machine, InstallStage.INSTALLING)
    journal.keep_key(machine, HOST_KEY)
    journal.note(machine, InstallStage.DONE)
