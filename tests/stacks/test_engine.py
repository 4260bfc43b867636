"""Keys and certificates under the real Pulumi engine, with its state in a folder.

All keys of a cluster are created once, and their rings rotated at the same time (`life`); tests that need fewer keys create
their own.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pulumi
import pytest

from cluster.key_rings import Ring, RingName, ring_key
from cluster.load import load_cluster
from cluster.spec import Cluster
from etcd.members import members
from network import addresses
from stacks import pki, pki_resources
from stacks.automation import ClusterStack, Summary
from stacks.certificates import Request
from stacks.errors import StackError
from stacks.protection import is_protected
from stacks.steps import Recording
from stacks.validation.plugin import dynamic_resources
from tests.programs import program

ROOT = Path(__file__).resolve().parents[2]
PROVIDERS = "PULUMI_DEBUG_PROVIDERS"
PROVIDER = "pulumi:providers:"

STATES = ("created", "both", "promoted", "last")
ROTATED: Mapping[RingName, tuple[str, ...]] = {
    "encryption": ("1", "1,2", "2,1", "2"),
    "service-account": ("1", "1,2", "2,1", "2"),
    "etcd-main-ca": ("1", "1,2", "2,1", "2"),
    "front-proxy-ca": ("1", "1,2", "2,1", "2"),
    "kubelet-serving-ca": ("0", "0,1", "1,0", "1"),
}
"""Ring -> its state in each of `STATES`."""


@dataclass
class Life:
    """A stack with every key of a cluster; results by the name given to each `up`.

    done: operation and name of each change, except providers, whose inputs are the configuration. values: outputs.
    protected: names. refused: the error for a wrong state. untouched: whether that run changed nothing.
    """

    cluster: Cluster
    program: Callable[[], None]
    folder: Path
    summaries: dict[str, Summary] = field(default_factory=dict)
    done: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    values: dict[str, dict[str, str]] = field(default_factory=dict)
    protected: dict[str, set[str]] = field(default_factory=dict)
    refused: str = ""
    untouched: bool = False

    def opened(self) -> ClusterStack:
        return ClusterStack(self.cluster, self.program, program("pulumi"), self.folder)

    def up(self, name_: str, stack: ClusterStack) -> None:
        recording = Recording()
        self.summaries[name_], outputs = stack.up(recording)
        steps = [step for step in recording.steps if not step.type.startswith(PROVIDER)]
        self.done[name_] = {(step.operation, step.name) for step in steps}
        self.values[name_] = {name: str(value) for name, value in outputs.items()}

    def of(self, *names: str) -> list[tuple[str, ...]]:
        """Return the values of these names in each of `STATES`."""
        return [tuple(self.values[state][name] for name in names) for state in STATES]

    def changed(self, prefix: str) -> list[set[str]]:
        """Return, for each step of the rotation, the names with this prefix whose values changed."""
        return [
            {name for name in after if name.startswith(prefix) and after[name] != before[name]}
            for before, after in pairwise(self.values[state] for state in STATES)
        ]


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    return load_cluster(ROOT / "inventories" / "lab" / "cluster.yaml")


@pytest.fixture(scope="session")
def engine() -> Path:
    return program("pulumi")


@pytest.fixture(scope="module")
def plugin() -> Iterator[str]:
    """A process that serves the keys of all runs but the first: an engine would start two for each."""
    with dynamic_resources() as served:
        yield served


@pytest.fixture(scope="module")
def life(plugin: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    """Created by an engine that starts its own plugins, then updated without changes, and every ring of `ROTATED` rotated to the end."""
    horus = load_cluster(ROOT / "examples" / "horus" / "cluster.yaml")
    life = Life(horus, _keys(horus), tmp_path_factory.mktemp("life"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULUMI_CONFIG_PASSPHRASE", "of this test")
        patch.delenv(PROVIDERS, raising=False)
        stack = life.opened()
        for number, state in enumerate(STATES):
            _configure(stack, {ring: states[number] for ring, states in ROTATED.items()})
            life.up(state, stack)
            life.protected[state] = {urn.rpartition("::")[2] for urn in stack.protected()}
            patch.setenv(PROVIDERS, plugin)
            if state == "created":
                life.up("again", stack)
        life.up("at the end", stack)
        before = _ids(stack)
        _configure(stack, {"encryption": "1,3"})
        with pytest.raises(StackError) as refused:
            stack.up()
        life.refused, life.untouched = str(refused.value), _ids(stack) == before
        yield life


def _ids(stack: ClusterStack) -> dict[str, str]:
    """Return URN -> ID of everything in the state except providers."""
    resources = stack.deployment()["resources"]
    return {
        resource["urn"]: resource.get("id", "") for resource in resources if not resource["type"].startswith(PROVIDER)
    }


def _configure(stack: ClusterStack, rings: Mapping[RingName, str]) -> None:
    config = {f"menagerie:{ring_key(ring)}": pulumi.automation.ConfigValue(state) for ring, state in rings.items()}
    stack._stack.set_all_config(config)


def _keys(cluster: Cluster) -> Callable[[], None]:
    def program() -> None:
        keys = pki.Pki(cluster, addresses.plan(cluster))
        for name, value in {**keys.for_api_server(), **keys.for_member("etcd-main-1")}.items():
            pulumi.export(name, pulumi.Output.secret(value))
        pulumi.export("operator", keys.admin.certificate)
        pulumi.export("operator_key", keys.admin.private_key)

    return program


@pytest.fixture
def stack(
    cluster: Cluster, engine: Path, plugin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., ClusterStack]:
    """stack(program): the lab's, with that program. Its state is in the test's own folder."""
    monkeypatch.setenv(PROVIDERS, plugin)
    return lambda program, settings=None: ClusterStack(cluster, program, engine, tmp_path, settings)


def _few() -> None:
    """Declare an authority, and a certificate with its key."""
    authority = pki_resources.Authority("few-ca", "few", pulumi.ResourceOptions())
    certificate = pki_resources.Certificate("few", authority, Request("few"), pulumi.ResourceOptions())
    pulumi.export("certificate", certificate.certificate)
    pulumi.export("key", certificate.private_key)


def test_a_second_up_changes_no_key(life: Life) -> None:
    first, second = life.summaries["created"], life.summaries["again"]
    assert first.changed == first.changes["create"] > 20
    assert set(second.changes) == {"same"}
    assert life.values["again"] == life.values["created"]
    assert life.opened().outputs() == life.values["at the end"]
    assert life.opened().secret_outputs() == set(life.values["created"]) - {"operator"}


def test_no_file_next_to_a_checkpoint_can_be_left_empty_by_a_killed_run(life: Life) -> None:
    assert list(life.folder.rglob("stacks/**/horus.json"))
    assert list(life.folder.rglob("*.attrs")) == []


def test_keys_are_encrypted_in_the_state(life: Life) -> None:
    texts = [path.read_text(errors="replace") for path in (life.folder / "pulumi").rglob("*") if path.is_file()]
    assert any("BEGIN CERTIFICATE" in text for text in texts)
    assert not any("PRIVATE KEY" in text for text in texts)


def test_a_lock_whose_holder_died_does_not_stop_the_next_run(
    cluster: Cluster, stack: Callable[..., ClusterStack], tmp_path: Path
) -> None:
    opened = stack(_few)
    lock = tmp_path / "pulumi" / ".pulumi" / "locks" / "organization" / "menagerie" / cluster.name / "dead.json"
    lock.parent.mkdir(parents=True, exist_ok=True)
    # 2^22 is Linux's largest process ID, and 64-bit machines never reach it.
    holder = {
        "pid": 2**22 + 1,
        "username": "mia",
        "hostname": socket.gethostname(),
        "timestamp": "2026-01-01T00:00:00Z",
    }
    lock.write_text(json.dumps(holder))
    assert opened.up()[0].changes == {"create": 3}


def test_pending_creates_of_a_killed_run_are_dropped_and_no_key_is_written_in_clear(
    cluster: Cluster, stack: Callable[..., ClusterStack], tmp_path: Path
) -> None:
    opened = stack(_few)
    _, before = opened.up()
    (state,) = (tmp_path / "pulumi" / ".pulumi" / "stacks").rglob(f"{cluster.name}.json")
    content = json.loads(state.read_text())
    latest = content["checkpoint"]["latest"]
    latest["pending_operations"] = [{"resource": latest["resources"][-1], "type": "creating"}]
    state.write_text(json.dumps(content))
    (tmp_path / "turn").write_text("process 1, since 07:00:00")
    summary, after = opened.up()
    assert (set(summary.changes), after) == ({"same"}, before)
    assert "PRIVATE KEY" in str(before["key"])
    assert "creating" not in state.read_text()
    # The engine's own program has these words too.
    files = [path for path in tmp_path.rglob("*") if path.is_file() and "pulumi-cli" not in path.parts]
    assert state in files
    assert not [path for path in files if "PRIVATE KEY" in path.read_text(errors="replace")]


def test_an_error_of_the_program_is_reported_without_the_engines_own_text(
    stack: Callable[..., ClusterStack],
) -> None:
    def program() -> None:
        raise ValueError("network.nodes 10.0.0.0/28 has no room for api-1; use a /24 or larger")

    with pytest.raises(StackError, match="use a /24 or larger"):
        stack(program).up()


def test_a_secret_of_the_configuration_is_encrypted_in_the_file_of_the_ordinary_cli(
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


def test_protection_is_removed_without_creating_anything(stack: Callable[..., ClusterStack]) -> None:
    names = ["kept"]

    def program() -> None:
        for name in names:
            pki_resources.Secret(name, "hex", pulumi.ResourceOptions(protect=is_protected()))

    opened = stack(program)
    opened.up()
    assert [urn.rpartition("::")[2] for urn in opened.protected()] == ["kept"]
    names.append("new")
    opened.remove_protection()
    assert opened.protected() == []
    assert [r["urn"].rpartition("::")[2] for r in opened.deployment()["resources"]].count("new") == 0
    opened.up()
    assert sorted(urn.rpartition("::")[2] for urn in opened.protected()) == ["kept", "new"]


@pytest.mark.timeout(400)
def test_selected_resources_are_updated_with_their_dependencies_only(
    stack: Callable[..., ClusterStack],
) -> None:
    """As `upgrade` does to replace one API server of a lab."""

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
            for resource in opened.deployment()["resources"]
            if "kind" in resource.get("inputs", {})
        }

    stack(program("hex")).up()
    opened = stack(program("ecdsa-key"))
    _, outputs = opened.up(only=("api-1",))
    assert forms() == {"store": "ecdsa-key", "api-1": "ecdsa-key", "api-2": "hex"}
    assert outputs["form"] == "ecdsa-key"
    summary, _ = opened.up()
    assert (summary.changed, forms()["api-2"]) == (1, "ecdsa-key")


def test_an_authority_is_added_promoted_and_the_former_removed(life: Life) -> None:
    assert life.done["both"] == {
        ("create", name)
        for name in (
            "etcd-main-ca-2",
            "front-proxy-ca-2",
            "kubelet-serving-ca",
            "encryption-key-2",
            "service-account-key-2",
        )
    }
    first, both, promoted, last = (values for (values,) in life.of("etcd-main-ca.crt"))
    assert both.startswith(first)
    of_members = [member.name for member in members(life.cluster, "main", addresses.plan(life.cluster))]
    issued = {f"{name}-{end}" for name in of_members for end in ("server", "peer")} | {"etcd-client", "operator-etcd"}
    assert len(issued) == 2 * 3 + 2
    assert life.done["promoted"] == {("update", name) for name in issued}
    # The authorities stay the same, so this step requires no restarts.
    names = ("etcd-main-1-server", "etcd-main-1-peer", "etcd-client")
    reissued = {f"{name}.{end}" for name in names for end in ("crt", "key")}
    assert life.changed("etcd-") == [{"etcd-main-ca.crt"}, reissued, {"etcd-main-ca.crt"}]
    assert life.done["last"] == {("delete", name) for name in ("etcd-main-ca", "front-proxy-ca", "service-account-key")}
    assert promoted == first + last
    assert set(life.summaries["at the end"].changes) == {"same"}


def test_a_stack_without_a_serving_authority_gets_one_trusted_with_the_clusters_until_the_end(
    life: Life,
) -> None:
    names = ("kubelet-serving-ca.crt", "kubelet-serving-ca-signing.crt", "kubelet-serving-ca.key")
    former, both, promoted, last = life.of(*names)
    of_cluster = life.of("kubernetes-ca.crt", "kubernetes-ca-signing.crt", "kubernetes-ca.key")[0]
    assert former == of_cluster, "unchanged"
    assert both == (of_cluster[0] + last[0], *of_cluster[1:]), "both are trusted, and the cluster's authority signs"
    assert promoted == (both[0], *last[1:])
    assert of_cluster[0] not in last[0]
    assert last[0] == last[1]
    of_ring = [{step for step in life.done[state] if "kubelet-serving" in step[1]} for state in STATES]
    assert of_ring == [set(), {("create", "kubelet-serving-ca")}, set(), set()]
    assert life.changed("kubelet-serving") == [{names[0]}, set(names[1:]), {names[0]}]


def test_a_former_encryption_key_leaves_the_hosts_and_stays_in_the_stack(life: Life) -> None:
    """Snapshots of etcd contain data encrypted with it."""
    names = [re.findall(r"name: (key-\d)", text) for (text,) in life.of("encryption-config.yaml")]
    assert names == [["key-1"], ["key-1", "key-2"], ["key-2", "key-1"], ["key-2"]]
    (state,) = (life.folder / "pulumi").rglob("stacks/**/horus.json")
    kept = {
        resource["urn"].rpartition("::")[2]
        for resource in json.loads(state.read_text())["checkpoint"]["latest"]["resources"]
    }
    assert {"encryption-key", "encryption-key-2"} <= kept


def test_a_former_service_account_key_is_removed_at_the_end_of_its_rotation(life: Life) -> None:
    pairs = life.of("service-account.pub", "service-account.key")
    assert [public.count("BEGIN PUBLIC KEY") for public, _ in pairs] == [1, 2, 2, 1]
    signing = [key for _, key in pairs]
    assert signing[0] == signing[1] != signing[2] == signing[3]


def test_only_the_signing_authority_is_protected_in_every_state(life: Life) -> None:
    for number, state in enumerate(STATES):
        generation = Ring.parse(ROTATED["front-proxy-ca"][number]).at_work
        assert {name for name in life.protected[state] if name.startswith("front-proxy-ca")} == {
            "front-proxy-ca" if generation == 1 else f"front-proxy-ca-{generation}"
        }


def test_a_malformed_state_in_the_configuration_is_refused_before_anything_changes(life: Life) -> None:
    assert "isn't a state of a key ring" in life.refused
    assert life.untouched
