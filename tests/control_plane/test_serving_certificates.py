"""What root on a worker can do with kubelets' serving certificates, on a real control plane."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http import HTTPStatus

import pytest

from cluster.spec import Cluster
from components.control_plane import konnectivity
from components.control_plane.host.api import ApiError
from components.control_plane.konnectivity import AUDIENCE
from network.addresses import plan
from tests.control_plane.serving_support import Plane, agent, listener, tunnels, up, wait
from tests.ports import own_network

API = "kubernetes.default.svc"
"""A name of the API that pods use."""
CONFIGMAPS = "/api/v1/namespaces/menagerie-serving/configmaps"


@pytest.fixture(scope="module")
def plane(build: Callable[..., Cluster], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    cluster = build(
        {
            "network": {"nodes": own_network()},
            "control_plane": {"api_servers": 1},
            "pools": {"cpu": {"machine": "m", "min": 1, "max": 9}},
        }
    )
    etcds = cluster.spec.etcd.model_copy(
        update={
            "main": cluster.spec.etcd.main.model_copy(update={"members": 1}),
            "events": cluster.spec.etcd.events.model_copy(update={"members": 1}),
        }
    )
    alone = cluster.model_copy(update={"spec": cluster.spec.model_copy(update={"etcd": etcds})})
    with up(alone, tmp_path_factory.mktemp("plane")) as plane:
        hosts = {host.name: str(host.address) for _, host in cluster.host_list()}
        try:
            plane.api().call(
                "PATCH",
                f"{CONFIGMAPS}/hosts",
                {"data": {"hosts.json": json.dumps(hosts)}},
                "application/merge-patch+json",
            )
        except ApiError as error:
            assert error.status == HTTPStatus.NOT_FOUND, "only a release that knows no such thing"
        yield plane


def site(plane: Plane, index: int) -> tuple[str, str]:
    """Return name and address of a machine in the spec."""
    _, host = plane.cluster.host_list()[index]
    return host.name, str(host.address)


def worker(plane: Plane, number: int) -> str:
    """Return an address of a worker in the region."""
    return str(plane.cluster.spec.network.nodes[128 + number])


def good(plane: Plane) -> tuple[str, list[str], list[str]]:
    """Return a valid request."""
    name, address = site(plane, 0)
    return name, [name], [address]


def test_a_node_with_the_name_of_the_api_gets_no_certificate_to_impersonate_it(plane: Plane) -> None:
    request, key = plane.ask(API, [API])
    refused = plane.refused(request, good(plane))
    if not refused:
        posing = plane.trusted_by_clients_of_the_api(plane.given(request, key), API)
        assert posing, "a node has a certificate that every client of the API takes for the API's"
    assert refused


def test_no_client_of_the_api_trusts_a_certificate_that_was_signed_for_a_kubelet(plane: Plane) -> None:
    request, key = plane.ask(API, [API])
    plane.approve(request)
    assert "CERTIFICATE_VERIFY_FAILED" in plane.trusted_by_clients_of_the_api(plane.given(request, key), API)


def test_a_machine_at_a_site_gets_its_own_address_and_not_its_neighbours(plane: Plane) -> None:
    (name, own), (neighbour, other) = site(plane, 0), site(plane, 1)
    assert plane.refused(plane.ask(name, [name], [other])[0], good(plane))
    plane.register(name, other)
    assert plane.refused(plane.ask(name, [name], [own, other])[0], good(plane)), "whatever it reports in its Node"
    plane.given(*plane.ask(neighbour, [neighbour], [other]))


def test_a_worker_in_the_region_has_one_address_for_as_long_as_its_node_exists(plane: Plane) -> None:
    first, second = worker(plane, 1), worker(plane, 2)
    plane.register("region-a", first)
    plane.given(*plane.ask("region-a", ["region-a"], [first]))
    # It claims the address of a neighbour that is about to join.
    plane.say("region-a", second, first)
    assert plane.refused(plane.ask("region-a", ["region-a"], [second])[0], good(plane))
    plane.register("region-b", second)
    plane.given(*plane.ask("region-b", ["region-b"], [second]))
    # It claims it again after the neighbour has it, and so does a node without any request yet.
    assert plane.refused(plane.ask("region-a", ["region-a"], [second])[0], good(plane))
    plane.register("region-c", second)
    assert plane.refused(plane.ask("region-c", ["region-c"], [second])[0], good(plane))
    plane.given(*plane.ask("region-b", ["region-b"], [second])), "the owner keeps it"
    plane.given(*plane.ask("region-a", ["region-a"], [first]))


@pytest.mark.parametrize("number", [11, 21, 31, 10])
def test_a_worker_in_the_region_gets_no_address_of_the_control_plane(plane: Plane, number: int) -> None:
    name, address = f"region-{number}", str(plane.cluster.spec.network.nodes[number])
    plane.register(name, address)
    assert plane.refused(plane.ask(name, [name], [address])[0], good(plane))


def test_a_worker_whose_node_appears_after_its_request_is_not_forgotten(plane: Plane) -> None:
    request, key = plane.ask("region-late", ["region-late"], [worker(plane, 9)])
    assert plane.refused(request, good(plane))
    plane.register("region-late", worker(plane, 9))
    plane.given(request, key)


def test_a_kubelet_can_not_delete_its_node_to_get_another_address(plane: Plane) -> None:
    plane.register("region-d", worker(plane, 4))
    with pytest.raises(ApiError, match="403"):
        plane.node("region-d").call("DELETE", "/api/v1/nodes/region-d")


def test_a_kubelet_can_not_read_or_write_the_records_of_addresses(plane: Plane) -> None:
    for name in ("hosts", "workers"):
        with pytest.raises(ApiError, match="403"):
            plane.node("region-d").call("GET", f"{CONFIGMAPS}/{name}")
        with pytest.raises(ApiError, match="403"):
            plane.node("region-d").call("PATCH", f"{CONFIGMAPS}/{name}", {"data": {}}, "application/merge-patch+json")


def _token(plane: Plane, node: str) -> str:
    """Return a token of the agent's account for its pod on a node, which root there can read. The token names its node."""
    pods = "/api/v1/namespaces/kube-system/pods"
    template = konnectivity.agent(plane.cluster, plan(plane.cluster))["spec"]["template"]["spec"]
    pod = {"metadata": {"name": f"agent-{node}"}, "spec": {**template, "nodeName": node}}
    plane.api().call("POST", pods, pod)
    uid = plane.api().call("GET", f"{pods}/agent-{node}")["metadata"]["uid"]
    bound = {"kind": "Pod", "apiVersion": "v1", "name": f"agent-{node}", "uid": uid}
    response = plane.node(node).call(
        "POST",
        "/api/v1/namespaces/kube-system/serviceaccounts/konnectivity-agent/token",
        {"spec": {"audiences": [AUDIENCE], "boundObjectRef": bound}},
    )
    return str(response["status"]["token"])


def _log(plane: Plane, pod: str) -> str:
    """Return the output of `kubectl logs` for a pod."""
    return plane.api().text(f"/api/v1/namespaces/kube-system/pods/{pod}/log")


def _register_both(plane: Plane) -> tuple[str, str]:
    """Return the addresses of the attacked worker, whose pod is `agent-victim`, and of the one where the attacker is root."""
    victim, own = worker(plane, 20), worker(plane, 21)
    for name, address in (("victim", victim), ("attacker", own)):
        plane.register(name, address)
    return victim, own


def test_registering_as_another_nodes_agent_does_not_give_access_to_its_logs(plane: Plane) -> None:
    victim, own = _register_both(plane)
    serving = plane.given(*plane.ask("victim", ["victim"], [victim]))
    stolen, key = plane.ask("attacker", ["attacker"], [victim])
    refused = plane.refused(stolen, good(plane))
    posing = plane.given(*plane.ask("attacker", ["attacker"], [own])) if refused else plane.given(stolen, key)
    _token(plane, "victim")
    requested: list[str] = []
    with tunnels(plane) as at, agent(plane, at, _token(plane, "attacker"), victim, "attacker") as log_file:
        # The upstream server trusts the agent's claim, although its token is for another node (pkg/server, validateAuthToken).
        wait(lambda: "Connected" in log_file.read_text() or "connected" in log_file.read_text(), log_file.read_text)
        with listener(victim, 10250, serving, requested, "of the kubelet"):
            wait(lambda: _log(plane, "agent-victim") == "of the kubelet", log_file.read_text)
        requested.clear()
        # As root on its node, the attacker redirects traffic for that address to its own server.
        with listener(victim, 10250, posing, requested):
            with pytest.raises(ApiError, match=f"certificate is valid for {own}, not {victim}"):
                _log(plane, "agent-victim")
            assert requested == [], "not even the name of the requested pod"
