"""ConfigMaps that verbs write, while others write them too; the API is stood in for."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

import pytest
from kubernetes.client import V1ConfigMap, V1ObjectMeta
from kubernetes.client.exceptions import ApiException

from cluster.spec import Cluster
from control_plane.host.claims import HOSTS, KEY
from control_plane.serving import NAMESPACE
from operations import config_maps, notebook, serving


class Core:
    """ConfigMaps by name in the namespaces that there are. quicker: what somebody else does before the next write."""

    def __init__(self, *namespaces: str) -> None:
        self.namespaces = set(namespaces)
        self.kept: dict[str, V1ConfigMap] = {}
        self.quicker: list[Any] = []
        self.writes = 0

    def read_namespaced_config_map(self, name: str, namespace: str, **_: object) -> V1ConfigMap:
        if name not in self.kept:
            raise ApiException(HTTPStatus.NOT_FOUND)
        found = self.kept[name]
        about = found.metadata
        return V1ConfigMap(
            metadata=V1ObjectMeta(name=name, labels=about.labels, resource_version=about.resource_version),
            data=found.data,
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


def holding(data: dict[str, str], **labels: str) -> V1ConfigMap:
    return V1ConfigMap(metadata=V1ObjectMeta(name="it", labels=labels), data=data)


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> Core:
    made = Core("kube-system")
    monkeypatch.setattr("kubernetes.client.CoreV1Api", lambda _: made)
    return made


def publish(data: dict[str, str]) -> bool:
    return config_maps.publish(None, "kube-system", "it", data)


def test_it_is_made_replaced_as_a_whole_and_otherwise_left_alone(core: Core) -> None:
    assert [publish({"a": "1"}), publish({"a": "1"}), publish({"b": "2"})] == [True, False, True]
    assert (core.kept["it"].data, core.writes) == ({"b": "2"}, 2)


@pytest.mark.parametrize("before", [None, {"a": "0"}], ids=["made", "replaced"])
def test_where_somebody_else_is_quicker_it_is_written_again(core: Core, before: dict[str, str] | None) -> None:
    if before:
        core.put(holding(before))
    core.quicker = [lambda: core.put(holding({"theirs": "3"}))]
    assert publish({"a": "1"})
    assert core.kept["it"].data == {"a": "1"}


def test_a_page_of_somebody_who_is_quicker_is_kept_and_so_are_labels(core: Core) -> None:
    core.put(holding({"mine": "0"}, app="x"))
    core.quicker = [lambda: core.put(holding({"mine": "0", "theirs": "3"}, app="x"))]
    notebook.change(None, "it", lambda pages: pages.update(mine=1))
    assert core.kept["it"].data == {"mine": "1", "theirs": "3"}
    assert core.kept["it"].metadata.labels == {"app": "x"}


def test_the_addresses_of_hosts_are_told_to_api_servers_of_an_older_release_too(core: Core, lab: Cluster) -> None:
    core.quicker = [lambda: None, lambda: core.namespaces.add(NAMESPACE)]
    serving.tell(lab, None)
    told = json.loads(core.kept[HOSTS].data[KEY])
    assert told == {host.name: str(host.address) for _, host in lab.host_list()}
