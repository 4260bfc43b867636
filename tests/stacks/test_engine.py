"""Keys and certificates under the real Pulumi engine, with its state in a folder."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pulumi
import pytest

from cluster.load import load_cluster
from cluster.spec import Cluster
from network import addresses
from stacks import pki, pki_resources
from stacks.automation import ClusterStack, StackError
from stacks.protection import is_protected
from tools import build

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    return load_cluster(ROOT / "inventories" / "lab" / "cluster.yaml")


@pytest.fixture(scope="session")
def engine() -> Path:
    built = {row["program"]: row for row in build.states()}["pulumi"]
    if not built["built"]:
        pytest.skip("pulumi is not built; `make lab` and `make test` build it")
    return Path(str(built["path"]))


@pytest.fixture
def stack(cluster: Cluster, engine: Path, tmp_path: Path) -> Callable[[Callable[[], None]], ClusterStack]:
    return lambda program: ClusterStack(cluster, program, engine, tmp_path)


def _keys(cluster: Cluster) -> Callable[[], None]:
    def program() -> None:
        made = pki.Pki(cluster, addresses.plan(cluster))
        pulumi.export("operator", made.admin.certificate)
        pulumi.export("operator_key", made.admin.private_key)

    return program


def test_a_second_up_finds_every_key_as_it_was(
    cluster: Cluster, stack: Callable[[Callable[[], None]], ClusterStack]
) -> None:
    first, before = stack(_keys(cluster)).up()
    assert first.changed == first.changes["create"] > 20
    second, after = stack(_keys(cluster)).up()
    assert set(second.changes) == {"same"}
    assert stack(_keys(cluster)).outputs() == after == before


def test_beside_a_checkpoint_lies_no_file_that_a_killed_run_could_leave_empty(
    stack: Callable[[Callable[[], None]], ClusterStack], tmp_path: Path
) -> None:
    stack(lambda: pulumi.export("a", "b")).up()
    assert list(tmp_path.rglob("stacks/**/lab.json"))
    assert list(tmp_path.rglob("*.attrs")) == []


def test_keys_are_ciphertext_in_the_state(
    cluster: Cluster, stack: Callable[[Callable[[], None]], ClusterStack], tmp_path: Path
) -> None:
    stack(_keys(cluster)).up()
    texts = [path.read_text(errors="replace") for path in (tmp_path / "pulumi").rglob("*") if path.is_file()]
    assert any("BEGIN CERTIFICATE" in text for text in texts)
    assert not any("PRIVATE KEY" in text for text in texts)


def test_a_lock_whose_holder_died_does_not_stop_the_next_run(
    cluster: Cluster, stack: Callable[[Callable[[], None]], ClusterStack], tmp_path: Path
) -> None:
    stack(_keys(cluster)).preview()
    lock = tmp_path / "pulumi" / ".pulumi" / "locks" / "organization" / "menagerie" / cluster.name / "dead.json"
    lock.parent.mkdir(parents=True, exist_ok=True)
    # 2^22 is Linux's largest process id, and 64-bit machines never reach it.
    holder = {
        "pid": 2**22 + 1,
        "username": "mia",
        "hostname": socket.gethostname(),
        "timestamp": "2026-01-01T00:00:00Z",
    }
    lock.write_text(json.dumps(holder))
    assert stack(_keys(cluster)).up()[0].changes["create"] > 20


def test_creates_that_a_killed_run_left_under_way_are_forgotten_and_no_key_is_written_in_clear(
    cluster: Cluster, stack: Callable[[Callable[[], None]], ClusterStack], tmp_path: Path
) -> None:
    _, before = stack(_keys(cluster)).up()
    (state,) = (tmp_path / "pulumi" / ".pulumi" / "stacks").rglob(f"{cluster.name}.json")
    content = json.loads(state.read_text())
    latest = content["checkpoint"]["latest"]
    latest["pending_operations"] = [{"resource": latest["resources"][-1], "type": "creating"}]
    state.write_text(json.dumps(content))
    (tmp_path / "turn").write_text("process 1, since 07:00:00")
    summary, after = stack(_keys(cluster)).up()
    assert (set(summary.changes), after) == ({"same"}, before)
    assert "creating" not in state.read_text()
    assert not [path for path in tmp_path.glob("*.json") if "PRIVATE KEY" in path.read_text()]


def test_what_a_program_refuses_is_told_without_the_engine_s_own_words(
    stack: Callable[[Callable[[], None]], ClusterStack],
) -> None:
    def program() -> None:
        raise ValueError("network.nodes 10.0.0.0/28 has no room for api-1; use a /24 or larger")

    with pytest.raises(StackError, match="use a /24 or larger"):
        stack(program).up()


def test_a_secret_of_the_configuration_lies_encrypted_in_the_file_that_the_ordinary_cli_reads(
    cluster: Cluster, engine: Path, tmp_path: Path
) -> None:
    file = tmp_path / "Pulumi.lab.yaml"
    read: list[str] = []

    def program() -> None:
        pulumi.Config().require_secret("vpn-sjc1-a").apply(read.append)

    stack = ClusterStack(cluster, program, engine, tmp_path / "state", file)
    stack.set_secret("vpn-sjc1-a", "not-to-be-seen")
    stack.preview()
    assert read == ["not-to-be-seen"]
    assert (stack.secret("vpn-sjc1-a"), stack.secret("vpn-sjc1-b")) == ("not-to-be-seen", None)
    assert "menagerie:vpn-sjc1-a" in file.read_text()
    assert "not-to-be-seen" not in file.read_text()


def test_protection_is_let_go_without_making_anything_new(cluster: Cluster, engine: Path, tmp_path: Path) -> None:
    names = ["kept"]

    def program() -> None:
        for name in names:
            pki_resources.Secret(name, "hex", pulumi.ResourceOptions(protect=is_protected()))

    stack = ClusterStack(cluster, program, engine, tmp_path)
    stack.up()
    assert [urn.rpartition("::")[2] for urn in stack.protected()] == ["kept"]
    names.append("new")
    stack.let_go()
    assert stack.protected() == []
    assert [r["urn"].rpartition("::")[2] for r in stack.deployment()["resources"]].count("new") == 0
    stack.up()
    assert sorted(urn.rpartition("::")[2] for urn in stack.protected()) == ["kept", "new"]
