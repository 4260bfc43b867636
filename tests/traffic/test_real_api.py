"""Following pods on a real API server, with a kubelet's identity: its own pods as they come and go, and nobody else's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from menagerie_traffic import Refused
from menagerie_traffic.api import Api, Pod

from components.control_plane.host.api import ApiError
from tests.preflight.test_real_api import Server
from tests.programs import needs

pytestmark = needs(("etcd", "kube-apiserver"))
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("api"))
    try:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        made.admin.call("POST", "/api/v1/namespaces/default/serviceaccounts", account)
        yield made
    finally:
        made.stop()


@pytest.fixture
def node(server: Server) -> str:
    name = f"w-{os.urandom(3).hex()}"
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    server.api(f"system:node:{name}", "system:nodes").call("POST", "/api/v1/nodes", body)
    return name


def api(server: Server, node: str) -> Api:
    path = server.ca.kubeconfig(f"system:node:{node}", "system:nodes", server.port)
    return Api(str(path), str(path.with_suffix(".pem")))


def start(server: Server, node: str, name: str, host_network: bool = False) -> Pod:
    spec = {"nodeName": node, "hostNetwork": host_network, "containers": [{"name": "x", "image": "x"}]}
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    uid = server.admin.call("POST", PODS, body)["metadata"]["uid"]
    return Pod(uid, "default", name, host_network)


def test_the_name_of_the_node_is_in_the_kubelets_certificate(server: Server, node: str) -> None:
    assert api(server, node).node() == node


def test_pods_of_this_node_are_known_as_they_come_and_go(server: Server, node: str) -> None:
    first = start(server, node, f"{node}-before")
    start(server, "another", f"{node}-elsewhere")
    second = start(server, node, f"{node}-host", host_network=True)
    steps = [
        ({first.uid: first, second.uid: second}, first.name),
        ({second.uid: second}, second.name),
    ]
    heard: list[dict[str, Pod]] = []

    def take(pods: dict[str, Pod]) -> None:
        """Delete a pod when all that must be there are, and end the watch when none is left."""
        heard.append(pods)
        if steps and pods == steps[0][0]:
            server.admin.call("DELETE", f"{PODS}/{steps.pop(0)[1]}?gracePeriodSeconds=0")
        if not pods:
            raise Refused("enough")

    with pytest.raises(Refused, match="enough"):
        api(server, node).watch(take)
    assert heard[0] == {first.uid: first, second.uid: second}
    assert not steps


def test_pods_of_another_node_are_refused(server: Server, node: str) -> None:
    """By the Node authorizer: the selector must name the kubelet's own node."""

    class Curious(Api):
        def node(self) -> str:
            return "another"

    path = server.ca.kubeconfig(f"system:node:{node}", "system:nodes", server.port)
    with pytest.raises((Refused, ApiError), match="HTTP 403"):
        Curious(str(path), str(path.with_suffix(".pem"))).watch(lambda _: None)
