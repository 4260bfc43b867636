"""What root on a worker gets out of kubelets' serving certificates, tried on a real control plane."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http import HTTPStatus

import pytest

from cluster.spec import Cluster
from components.control_plane import manifests
from components.control_plane.flags import KONNECTIVITY_AUDIENCE
from components.control_plane.host.api import ApiError
from network.addresses import plan
from tests.control_plane.serving_support import Plane, agent, listener, tunnels, up, wait
from tests.ports import own_network

API = "kubernetes.default.svc"
"""A name of the API, by which pods ask it."""
CONFIGMAPS = "/api/v1/namespaces/menagerie-serving/configmaps"


@pytest.fixture(scope="module")
def made(build: Callable[..., Cluster], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
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


def site(made: Plane, index: int) -> tuple[str, str]:
    """Name and address of a machine of the spec."""
    _, host = made.cluster.host_list()[index]
    return host.name, str(host.address)


def worker(made: Plane, number: int) -> str:
    """An address of workers in the region."""
    return str(made.cluster.spec.network.nodes[128 + number])


def good(made: Plane) -> tuple[str, list[str], list[str]]:
    """A request of which nothing is wrong."""
    name, address = site(made, 0)
    return name, [name], [address]


def test_a_node_that_is_called_as_the_api_gets_no_certificate_by_which_it_could_pose_as_it(made: Plane) -> None:
    request, key = made.ask(API, [API])
    refused = made.refused(request, good(made))
    if not refused:
        posing = made.trusted_by_clients_of_the_api(made.given(request, key), API)
        assert posing, "a node has a certificate that every client of the API takes for the API's"
    assert refused


def test_whatever_is_signed_for_a_kubelet_no_client_of_the_api_trusts_it(made: Plane) -> None:
    request, key = made.ask(API, [API])
    made.approve(request)
    assert "CERTIFICATE_VERIFY_FAILED" in made.trusted_by_clients_of_the_api(made.given(request, key), API)


def test_a_machine_at_a_site_gets_its_own_address_and_not_its_neighbours(made: Plane) -> None:
    (name, own), (neighbour, other) = site(made, 0), site(made, 1)
    assert made.refused(made.ask(name, [name], [other])[0], good(made))
    made.register(name, other)
    assert made.refused(made.ask(name, [name], [own, other])[0], good(made)), "whatever it says on its Node"
    made.given(*made.ask(neighbour, [neighbour], [other]))


def test_a_worker_in_the_region_has_one_address_for_as_long_as_its_node_exists(made: Plane) -> None:
    first, second = worker(made, 1), worker(made, 2)
    made.register("region-a", first)
    made.given(*made.ask("region-a", ["region-a"], [first]))
    # It says that it has the address of a neighbour that is about to come.
    made.say("region-a", second, first)
    assert made.refused(made.ask("region-a", ["region-a"], [second])[0], good(made))
    made.register("region-b", second)
    made.given(*made.ask("region-b", ["region-b"], [second]))
    # And once that has it, again, and so does one which has asked for nothing yet.
    assert made.refused(made.ask("region-a", ["region-a"], [second])[0], good(made))
    made.register("region-c", second)
    assert made.refused(made.ask("region-c", ["region-c"], [second])[0], good(made))
    made.given(*made.ask("region-b", ["region-b"], [second])), "who had it goes on having it"
    made.given(*made.ask("region-a", ["region-a"], [first]))


@pytest.mark.parametrize("number", [11, 21, 31, 10])
def test_a_worker_in_the_region_gets_no_address_of_the_control_plane(made: Plane, number: int) -> None:
    name, address = f"region-{number}", str(made.cluster.spec.network.nodes[number])
    made.register(name, address)
    assert made.refused(made.ask(name, [name], [address])[0], good(made))


def test_a_worker_whose_node_comes_later_than_its_request_is_not_forgotten(made: Plane) -> None:
    request, key = made.ask("region-late", ["region-late"], [worker(made, 9)])
    assert made.refused(request, good(made))
    made.register("region-late", worker(made, 9))
    made.given(request, key)


def test_a_kubelet_can_t_delete_its_node_to_be_given_another_address(made: Plane) -> None:
    made.register("region-d", worker(made, 4))
    with pytest.raises(ApiError, match="403"):
        made.node("region-d").call("DELETE", "/api/v1/nodes/region-d")


def test_a_kubelet_reads_and_writes_nothing_of_who_has_which_address(made: Plane) -> None:
    for name in ("hosts", "workers"):
        with pytest.raises(ApiError, match="403"):
            made.node("region-d").call("GET", f"{CONFIGMAPS}/{name}")
        with pytest.raises(ApiError, match="403"):
            made.node("region-d").call("PATCH", f"{CONFIGMAPS}/{name}", {"data": {}}, "application/merge-patch+json")


def _token(made: Plane, node: str) -> str:
    """Of the agent's account, for its pod on a node: what root there reads. It says on which node it counts."""
    pods = "/api/v1/namespaces/kube-system/pods"
    template = manifests.konnectivity_agent(made.cluster, plan(made.cluster))["spec"]["template"]["spec"]
    pod = {"metadata": {"name": f"agent-{node}"}, "spec": {**template, "nodeName": node}}
    made.api().call("POST", pods, pod)
    uid = made.api().call("GET", f"{pods}/agent-{node}")["metadata"]["uid"]
    bound = {"kind": "Pod", "apiVersion": "v1", "name": f"agent-{node}", "uid": uid}
    asked = made.node(node).call(
        "POST",
        "/api/v1/namespaces/kube-system/serviceaccounts/konnectivity-agent/token",
        {"spec": {"audiences": [KONNECTIVITY_AUDIENCE], "boundObjectRef": bound}},
    )
    return str(asked["status"]["token"])


def _log(made: Plane, pod: str) -> str:
    """`kubectl logs` of a pod."""
    return made.api().text(f"/api/v1/namespaces/kube-system/pods/{pod}/log")


def _register_both(made: Plane) -> tuple[str, str]:
    """Addresses of a worker that is attacked, whose pod is `agent-victim`, and of one where the attacker is root."""
    victim, own = worker(made, 20), worker(made, 21)
    for name, address in (("victim", victim), ("attacker", own)):
        made.register(name, address)
    return victim, own


def test_who_registers_as_another_node_s_agent_sees_no_logs_of_it(made: Plane) -> None:
    victim, own = _register_both(made)
    serving = made.given(*made.ask("victim", ["victim"], [victim]))
    stolen, key = made.ask("attacker", ["attacker"], [victim])
    refused = made.refused(stolen, good(made))
    posing = made.given(*made.ask("attacker", ["attacker"], [own])) if refused else made.given(stolen, key)
    _token(made, "victim")
    seen: list[str] = []
    with tunnels(made) as at, agent(made, at, _token(made, "attacker"), victim, "attacker") as said:
        # Upstream's server takes the agent's word: its token counts on another node (pkg/server, validateAuthToken).
        wait(lambda: "Connected" in said.read_text() or "connected" in said.read_text(), said.read_text)
        with listener(victim, 10250, serving, seen, "of the kubelet"):
            wait(lambda: _log(made, "agent-victim") == "of the kubelet", said.read_text)
        seen.clear()
        # As root on its node, the attacker leads what comes for that address to a server of its own.
        with listener(victim, 10250, posing, seen):
            with pytest.raises(ApiError, match=f"certificate is valid for {own}, not {victim}"):
                _log(made, "agent-victim")
            assert seen == [], "not even which pod was asked about"
