"""Keys and certificates under the real Pulumi engine, with its state in a folder."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pulumi
import pytest

from cluster.key_rings import Ring, RingName
from cluster.load import load_cluster
from cluster.spec import Cluster
from network import addresses
from stacks import pki, pki_resources
from stacks.automation import ClusterStack, Summary
from stacks.errors import StackError
from stacks.protection import is_protected
from tests.programs import program

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    return load_cluster(ROOT / "inventories" / "lab" / "cluster.yaml")


@pytest.fixture(scope="session")
def engine() -> Path:
    return program("pulumi")


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
    assert stack(_keys(cluster)).secret_outputs() == {"operator_key"}


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


@pytest.mark.timeout(400)
def test_some_resources_are_brought_up_with_what_they_are_made_from_and_no_other(
    cluster: Cluster, engine: Path, tmp_path: Path
) -> None:
    """As `upgrade` replaces one API server of a lab."""

    def program(form: str) -> Callable[[], None]:
        def declared() -> None:
            store = pki_resources.Secret("store", form, pulumi.ResourceOptions())
            for name in ("api-1", "api-2"):
                pki_resources.Secret(name, form, pulumi.ResourceOptions(depends_on=[store]))
            pulumi.export("form", form)

        return declared

    def forms() -> dict[str, str]:
        return {
            resource["urn"].rpartition("::")[2]: resource["inputs"]["kind"]
            for resource in stack.deployment()["resources"]
            if "kind" in resource.get("inputs", {})
        }

    ClusterStack(cluster, program("hex"), engine, tmp_path).up()
    stack = ClusterStack(cluster, program("ecdsa-key"), engine, tmp_path)
    _, outputs = stack.up(only=("api-1",))
    assert forms() == {"store": "ecdsa-key", "api-1": "ecdsa-key", "api-2": "hex"}
    assert outputs["form"] == "ecdsa-key"
    summary, _ = stack.up()
    assert (summary.changed, forms()["api-2"]) == (1, "ecdsa-key")


Open = Callable[[Callable[[], None]], ClusterStack]


def _rotating(cluster: Cluster) -> Callable[[], None]:
    def program() -> None:
        made = pki.Pki(cluster, addresses.plan(cluster))
        for name, value in {**made.for_api_server(), **made.for_member("etcd-main-1")}.items():
            pulumi.export(name, pulumi.Output.secret(value))

    return program


def _go(stack: ClusterStack, ring: RingName, state: str) -> tuple[Summary, dict[str, str]]:
    stack.configure("menagerie", pki.ring_key(ring), state)
    summary, outputs = stack.up()
    return summary, {name: str(value) for name, value in outputs.items()}


def _changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in after if after[name] != before[name]}


def test_an_authority_is_introduced_put_to_work_and_the_former_dropped(cluster: Cluster, stack: Open) -> None:
    opened = stack(_rotating(cluster))
    _, first = _go(opened, "etcd-main-ca", "1")
    summary, both = _go(opened, "etcd-main-ca", "1,2")
    assert summary.changes["create"] == summary.changed == 1
    assert _changed(first, both) == {"etcd-main-ca.crt"}
    assert both["etcd-main-ca.crt"].startswith(first["etcd-main-ca.crt"])
    summary, promoted = _go(opened, "etcd-main-ca", "2,1")
    members = 3  # of main, each with two certificates; then those of API servers and the operator
    assert (summary.changes["update"], summary.changed) == (2 * members + 2, 2 * members + 2)
    # The authorities stay as they are, so nobody has to be restarted for this step.
    assert _changed(both, promoted) == {
        f"{name}.{end}" for name in ("etcd-main-1-server", "etcd-main-1-peer", "etcd-client") for end in ("crt", "key")
    }
    summary, last = _go(opened, "etcd-main-ca", "2")
    assert summary.changes["delete"] == summary.changed == 1
    assert promoted["etcd-main-ca.crt"] == first["etcd-main-ca.crt"] + last["etcd-main-ca.crt"]
    assert set(opened.up()[0].changes) == {"same"}


def test_an_authority_of_serving_certificates_is_made_in_a_stack_that_has_none_and_counts_beside_the_cluster_s_until_the_end(
    cluster: Cluster, stack: Open
) -> None:
    opened = stack(_rotating(cluster))
    names = ("kubelet-serving-ca.crt", "kubelet-serving-ca-signing.crt", "kubelet-serving-ca.key")
    states = ("0", "0,1", "1,0", "1")
    made = [_go(opened, "kubelet-serving-ca", state) for state in states]
    former, both, promoted, last = (tuple(values[name] for name in names) for _, values in made)
    cluster_s = tuple(
        made[0][1][name] for name in ("kubernetes-ca.crt", "kubernetes-ca-signing.crt", "kubernetes-ca.key")
    )
    assert former == cluster_s, "as it was before"
    assert both == (cluster_s[0] + last[0], *cluster_s[1:]), "both are trusted, and the cluster's signs"
    assert promoted == (both[0], *last[1:])
    assert cluster_s[0] not in last[0]
    assert last[0] == last[1]
    assert [summary.changes.get("create", 0) for summary, _ in made[1:]] == [1, 0, 0]
    assert [_changed(before, after) for (_, before), (_, after) in pairwise(made)] == [
        {names[0]},
        set(names[1:]),
        {names[0]},
    ]


def test_an_encryption_key_leaves_the_hosts_and_stays_in_the_stack(cluster: Cluster, stack: Open) -> None:
    """Snapshots of etcd hold what it encrypted."""
    opened = stack(_rotating(cluster))
    texts = [_go(opened, "encryption", state)[1]["encryption-config.yaml"] for state in ("1", "1,2", "2,1", "2")]
    names = [re.findall(r"name: (key-\d)", text) for text in texts]
    assert names == [["key-1"], ["key-1", "key-2"], ["key-2", "key-1"], ["key-2"]]
    kept = [urn["urn"].rpartition("::")[2] for urn in opened.deployment()["resources"]]
    assert {"encryption-key", "encryption-key-2"} <= set(kept)


def test_a_key_of_service_accounts_goes_with_the_end_of_its_rotation(cluster: Cluster, stack: Open) -> None:
    opened = stack(_rotating(cluster))
    made = [_go(opened, "service-account", state)[1] for state in ("1", "1,2", "2,1", "2")]
    assert [each["service-account.pub"].count("BEGIN PUBLIC KEY") for each in made] == [1, 2, 2, 1]
    signing = [each["service-account.key"] for each in made]
    assert signing[0] == signing[1] != signing[2] == signing[3]


def test_what_signs_is_protected_in_every_state_and_nothing_that_is_to_go(
    engine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "of this test")
    cluster = load_cluster(ROOT / "inventories" / "horus" / "cluster.yaml")
    opened = ClusterStack(cluster, _rotating(cluster), engine, tmp_path)
    for state in ("1", "1,2", "2,1", "2"):
        _go(opened, "front-proxy-ca", state)
        generation = Ring.parse(state).at_work
        kept = {urn.rpartition("::")[2] for urn in opened.protected()}
        assert {name for name in kept if name.startswith("front-proxy-ca")} == {
            "front-proxy-ca" if generation == 1 else f"front-proxy-ca-{generation}"
        }


def test_a_wrong_state_in_the_configuration_is_refused_before_anything_changes(cluster: Cluster, stack: Open) -> None:
    opened = stack(_rotating(cluster))
    opened.up()
    with pytest.raises(StackError, match="no state of a key ring"):
        _go(opened, "encryption", "1,3")
