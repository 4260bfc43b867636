"""ConfigMaps that verbs write concurrently with others; the API is a fake."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

import pytest
from kubernetes.client import V1ConfigMap, V1ObjectMeta
from kubernetes.client.exceptions import ApiException

from clients import config_maps, notebook
from cluster import shared
from cluster.node_labels import TABLE
from cluster.shared import NewerDataError
from cluster.spec import Cluster
from components.control_plane.host.claims import HOSTS, KEY
from components.control_plane.serving import NAMESPACE
from controllers.autoscaler.actuator import Actuator
from controllers.autoscaler.keys import NOTEBOOK
from controllers.autoscaler.memory import PAGE, Backoff, Memory, packed
from controllers.tenancy.sync.run import NOTEBOOK as TENANCY
from controllers.tenancy.sync.run import remembered
from controllers.tenancy.sync.state import Sizes
from operations import node_labels, removals, serving
from operations.breaker import Limits, Removal
from operations.repair import records


class Core:
    """ConfigMaps by name in the existing namespaces. quicker: what another writer does before the next write."""

    def __init__(self, *namespaces: str) -> None:
        self.namespaces = set(namespaces)
        self.kept: dict[str, V1ConfigMap] = {}
        self.quicker: list[Any] = []
        self.writes = 0

    def read_namespaced_config_map(self, name: str, namespace: str, **_: object) -> V1ConfigMap:
        if name not in self.kept:
            raise ApiException(HTTPStatus.NOT_FOUND)
        config_map = self.kept[name]
        about = config_map.metadata
        return V1ConfigMap(
            metadata=V1ObjectMeta(
                name=name,
                labels=about.labels,
                annotations=about.annotations,
                resource_version=about.resource_version,
            ),
            data=config_map.data,
        )

    def create_namespaced_config_map(self, namespace: str, body: V1ConfigMap, **_: object) -> None:
        self._others()
        if namespace not in self.namespaces:
            raise ApiException(HTTPStatus.NOT_FOUND)
        if body.metadata.name in self.kept:
            raise ApiException(HTTPStatus.CONFLICT)
        self.put(body)

    def replace_namespaced_config_map(self, name: str, namespace: str, body: V1ConfigMap, **_: object) -> None:
        self._others()
        if body.metadata.resource_version != self.kept[name].metadata.resource_version:
            raise ApiException(HTTPStatus.CONFLICT)
        self.put(body)

    def create_namespace(self, body: dict[str, Any], **_: object) -> None:
        self._others()
        if body["metadata"]["name"] in self.namespaces:
            raise ApiException(HTTPStatus.CONFLICT)
        self.namespaces.add(body["metadata"]["name"])

    def put(self, body: V1ConfigMap) -> None:
        self.writes += 1
        body.metadata.resource_version = str(self.writes)
        self.kept[body.metadata.name] = body

    def _others(self) -> None:
        if self.quicker:
            self.quicker.pop(0)()


def holding(data: dict[str, str], name: str = "it", version: str | None = None, **labels: str) -> V1ConfigMap:
    annotations = {shared.ANNOTATION: version} if version else None
    return V1ConfigMap(metadata=V1ObjectMeta(name=name, labels=labels, annotations=annotations), data=data)


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> Core:
    made = Core("kube-system")
    monkeypatch.setattr("kubernetes.client.CoreV1Api", lambda _: made)
    return made


def publish(data: dict[str, str]) -> bool:
    return config_maps.publish(None, "kube-system", "it", data)


def test_it_is_created_or_replaced_as_a_whole_and_otherwise_not_written(core: Core) -> None:
    assert [publish({"a": "1"}), publish({"a": "1"}), publish({"b": "2"})] == [True, False, True]
    assert (core.kept["it"].data, core.writes) == ({"b": "2"}, 2)


@pytest.mark.parametrize("before", [None, {"a": "0"}], ids=["made", "replaced"])
def test_after_a_conflict_it_is_written_again(core: Core, before: dict[str, str] | None) -> None:
    if before:
        core.put(holding(before))
    core.quicker = [lambda: core.put(holding({"theirs": "3"}))]
    assert publish({"a": "1"})
    assert core.kept["it"].data == {"a": "1"}


def test_pages_of_a_faster_writer_and_labels_are_kept(core: Core) -> None:
    core.put(holding({"mine": "0"}, app="x"))
    core.quicker = [lambda: core.put(holding({"mine": "0", "theirs": "3"}, app="x"))]
    notebook.change(None, "it", lambda pages: pages.update(mine=1))
    assert core.kept["it"].data == {"mine": "1", "theirs": "3"}
    assert core.kept["it"].metadata.labels == {"app": "x"}


def test_the_addresses_of_hosts_are_published_to_api_servers_of_an_older_release_too(core: Core, lab: Cluster) -> None:
    core.quicker = [lambda: None, lambda: core.namespaces.add(NAMESPACE)]
    serving.publish_addresses(lab, None)
    addresses = json.loads(core.kept[HOSTS].data[KEY])
    assert addresses == {host.name: str(host.address) for _, host in lab.host_list()}


LIMITS = Limits({}, "50%", 3600.0, "./menagerie repair lab --max-removal")
MEMORY = Memory(rests={"region": Backoff(7.0, "no machines left")})


def hands() -> Actuator:
    return Actuator(lambda: None, None, LIMITS)  # type: ignore[arg-type, return-value]


# All ways in which verbs, the autoscaler and controllers use a ConfigMap.
USES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "removals": (
        removals.NAME,
        (
            lambda _: removals.recorded_removals(None),
            lambda _: removals.take(None, Removal("a", 1.0), LIMITS, 9),
            lambda _: removals.pause(None, True),
        ),
    ),
    "repairs": (
        records.NAME,
        (
            lambda _: records.repair_records(None),
            lambda _: records.note(None, "a", lambda record: record.tried()),
            lambda _: records.forget(None, ["a"]),
        ),
    ),
    "the autoscaler's memory": (NOTEBOOK, (lambda _: hands().recall(), lambda _: hands().remember(MEMORY))),
    "the directory's size": (TENANCY, (lambda _: remembered(None),)),
    "labels of hosts": (TABLE, (lambda lab: node_labels.publish(lab, None),)),
    "addresses of hosts": (HOSTS, (lambda lab: serving.publish_addresses(lab, None),)),
}


@pytest.mark.parametrize("name, uses", USES.values(), ids=USES)
def test_data_from_a_newer_menagerie_is_refused_and_not_overwritten(
    core: Core, lab: Cluster, name: str, uses: tuple[Any, ...]
) -> None:
    core.namespaces.add(NAMESPACE)
    core.put(holding({"page": "1"}, name, version="2"))
    for use in uses:
        with pytest.raises(NewerDataError, match=f"ConfigMap .*/{name} has version 2, .* reads at most version 1"):
            use(lab)
    assert (core.kept[name].data, core.writes) == ({"page": "1"}, 1)


def test_a_config_map_gets_its_version_when_it_is_written(core: Core) -> None:
    publish({"a": "1"})
    core.put(holding({"a": "1"}, "from before"))
    notebook.change(None, "from before", lambda pages: pages.update(b=2))
    said = [core.kept[name].metadata.annotations for name in ("it", "from before")]
    assert said == [{shared.ANNOTATION: "1"}] * 2


def test_unknown_fields_of_removals_from_a_newer_menagerie_are_ignored_and_kept(core: Core) -> None:
    written = {"host": "a", "at": 10.0, "by": "repair", "ticket": "T-1"}
    core.put(holding({"removals": json.dumps([written]), "budget": "7"}, removals.NAME))
    assert removals.recorded_removals(None) == ((Removal("a", 10.0, "repair"),), False)
    removals.take(None, Removal("b", 20.0, "autoscaler"), LIMITS, 9)
    kept = core.kept[removals.NAME].data
    assert json.loads(kept["removals"]) == [written, {"host": "b", "at": 20.0, "by": "autoscaler"}]
    assert kept["budget"] == "7"


def test_unknown_fields_of_repairs_from_a_newer_menagerie_are_ignored_and_kept(core: Core) -> None:
    written = {"attempts": 1, "why": "Ready", "firmware": "7.1"}
    core.put(holding({"hosts": json.dumps({"a": written})}, records.NAME))
    assert records.repair_records(None) == {"a": records.RepairRecord(attempts=1, why="Ready")}
    assert records.note(None, "a", lambda record: record.tried()).attempts == 2
    kept = json.loads(core.kept[records.NAME].data["hosts"])["a"]
    assert (kept["attempts"], kept["firmware"]) == (2, "7.1")


def test_unknown_fields_of_a_directory_from_a_newer_menagerie_are_ignored(core: Core) -> None:
    core.put(holding({"last": json.dumps({"people": 3, "teams": 2, "memberships": 4, "guests": 1})}, TENANCY))
    assert remembered(None) == Sizes(3, 2, 4)


def test_an_autoscaler_drops_unreadable_state_but_never_that_of_a_newer_one(
    core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    core.put(holding({PAGE: json.dumps("no memory")}, NOTEBOOK))
    assert hands().recall() == Memory()
    monkeypatch.setattr("controllers.autoscaler.memory._VERSION", 2)
    text = packed(MEMORY)
    monkeypatch.undo()
    monkeypatch.setattr("kubernetes.client.CoreV1Api", lambda _: core)
    core.put(holding({PAGE: json.dumps(text)}, NOTEBOOK))
    with pytest.raises(NewerDataError, match="the autoscaler's memory has version 2"):
        hands().recall()
