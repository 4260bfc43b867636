"""Kubelets' serving certificates get a separate authority in a cluster without one, with a real API server and controller
manager, which reads logs from kubelets all the time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from cluster.errors import FailedError, RefusedError
from cluster.key_rings import Ring, RingName
from operations.keys import rings
from operations.keys.status import key_status
from stacks.certificates import Request, Signed, issue, new_authority
from tests.control_plane.serving_support import listener
from tests.operations.keys.region import Region
from tests.operations.keys.test_kubernetes_authority import MOST_CONFIGURES, following, issuer
from tests.operations.keys.test_rotation import Cut, rotation
from tests.operations.keys.workers import ADDRESS, Worker, worker
from tests.ports import free_port
from tests.waiting import until

pytestmark = pytest.mark.timeout(2400)
RING: RingName = "kubelet-serving-ca"


class Stack:
    """The part of a stack that `carry_over` needs."""

    def __init__(self, **configured: str) -> None:
        self.configured = configured

    def values(self) -> dict[str, str]:
        return dict(self.configured)

    def configure(self, _provider: str, key: str, value: str) -> None:
        self.configured[key] = value

    def unset(self, _provider: str, key: str) -> None:
        del self.configured[key]


BEFORE = {"outputs": "{}", "key_rings": '{"kubernetes-ca": "1"}'}


@pytest.mark.parametrize(
    ("outputs", "configured", "made"),
    [
        ({}, {}, {}),
        (BEFORE, {}, {f"ring-{RING}": "0,1"}),
        ({"outputs": "{}"}, {}, {f"ring-{RING}": "0,1"}),
        (BEFORE, {f"ring-{RING}": "0,1"}, {f"ring-{RING}": "0,1"}),
        (BEFORE | {"key_rings": f'{{"{RING}": "1"}}'}, {}, {}),
        # After a rollback, it does not start again.
        (BEFORE | {"key_rings": f'{{"{RING}": "0"}}'}, {f"ring-{RING}": "0"}, {f"ring-{RING}": "0"}),
    ],
)
def test_up_introduces_the_authority_in_an_older_stack_and_a_new_stack_has_only_it(
    outputs: Mapping[str, object], configured: dict[str, str], made: dict[str, str]
) -> None:
    stack = Stack(**configured)
    rings.carry_over(stack, outputs)  # type: ignore[arg-type]
    assert stack.configured == made
    rings.refuse_foreign("horus", stack, outputs)  # type: ignore[arg-type]


def test_a_preview_does_not_change_the_configuration() -> None:
    stack = Stack()
    with rings.carried_over(stack, BEFORE):  # type: ignore[arg-type]
        assert stack.configured == {f"ring-{RING}": "0,1"}
    assert stack.configured == {}


def test_an_older_configuration_is_refused_while_the_ring_is_carried_over() -> None:
    with pytest.raises(RefusedError, match="built with 0,1"):
        rings.refuse_foreign("horus", Stack(), {"key_rings": f'{{"{RING}": "0,1"}}'})  # type: ignore[arg-type]


class Pods:
    """A pod on each worker, whose logs are read through the API server. ports: of the kubelets."""

    def __init__(self, world: Region, workers: tuple[Worker, ...]) -> None:
        self.world, self.ports = world, {each.host.name: free_port() for each in workers}
        for name, port in self.ports.items():
            status = {
                "addresses": [{"type": "InternalIP", "address": ADDRESS}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            }
            self.core.patch_node_status(name, {"status": status})
            spec = {"nodeName": name, "containers": [{"name": "c", "image": "x:1"}]}
            self.core.create_namespaced_pod("default", {"metadata": {"name": name}, "spec": spec})

    @property
    def core(self) -> client.CoreV1Api:
        return client.CoreV1Api(self.world.access().api())

    def logs(self, of: Worker, shown: Signed | None = None) -> str:
        """Return the log of a worker's pod, from a kubelet that presents its certificate, or `shown`."""
        # It has none while it is replaced.
        until(of.link("server").exists, f"{of.host.name} has no serving certificate")
        pem = of.link("server").read_text()
        with listener(ADDRESS, self.ports[of.host.name], shown or Signed(pem, pem), [], "of the kubelet"):
            try:
                answer = self.core.read_namespaced_pod_log(of.host.name, "default", _preload_content=False)
                return str(answer.data.decode())
            except ApiException as error:
                return str(error.body)

    def remove(self) -> None:
        for name in self.ports:
            self.core.delete_namespaced_pod(name, "default", grace_period_seconds=0)


@contextmanager
def before(world: Region) -> Iterator[None]:
    """Put the cluster into the state before the ring existed: its API servers know only the cluster's authority."""
    rings.configure(world, RING, Ring((0,)))
    world.up()
    rotation(world, RING)._prove(None)
    yield


@pytest.fixture
def carried(world: Region) -> Iterator[tuple[Worker, Worker, Pods]]:
    with (
        before(world),
        worker(world, "w-region", in_region=True) as near,
        worker(world, "w-site", in_region=False) as far,
        following(near),
    ):
        far.follow()
        pods = Pods(world, (near, far))
        yield near, far, pods
        pods.remove()


def run(world: Region, after: Callable[[str], None], site: Worker) -> list[str]:
    """Rotate as an operator does, with an interruption in every state."""
    steps: list[str] = []

    def done(step: str) -> None:
        if step not in steps:
            steps.append(step)
            if step.startswith(RING):
                raise Cut

    while True:
        try:
            rotation(world, RING, done).run()
        except Cut:
            after(steps[-1])
        except FailedError as error:
            assert "w-site" in str(error)
            assert steps.count("configure") < MOST_CONFIGURES, "the worker is still behind after `configure`"
            steps.append("configure")
            site.follow()
        else:
            return steps


@pytest.mark.soak
def test_a_cluster_is_carried_over_without_downtime_and_its_authority_is_valid_for_no_kubelet_afterwards(
    world: Region, carried: tuple[Worker, Worker, Pods]
) -> None:
    near, far, pods = carried
    pki = world.api.root / "etc/kubernetes/pki"
    authority = Signed((pki / "ca.crt").read_text(), (pki / "ca.key").read_text())
    of_the_cluster = issue(authority, Request("system:node:w-site", ("system:nodes",), addresses=(ADDRESS,)))
    by_state: dict[str, tuple[str, str]] = {}

    def seen_in(state: str) -> None:
        assert pods.logs(far) == pods.logs(near) == "of the kubelet", "whoever is a step behind is believed"
        pem = far.link("server").read_text()
        by_state[state] = (issuer(Signed(pem, pem)), pods.logs(far, of_the_cluster))

    seen_in("before")
    assert not key_status(world.engine).ok(datetime.now(UTC)), "a monitor says that there is something to do"
    steps = run(world, seen_in, far)
    assert [each for each in steps if each != f"every kubelet follows {RING} 1,0"] == [
        f"{RING} 0,1", "configure", f"every kubelet follows {RING} 0,1",
        f"{RING} 1,0", "configure",
        f"{RING} 1", "configure", f"every kubelet follows {RING} 1",
    ]  # fmt: skip
    assert {state: issued for state, (issued, _) in by_state.items()} == {
        "before": "CN=kubernetes",
        f"{RING} 0,1": "CN=kubernetes",
        f"{RING} 1,0": "CN=kubernetes",
        f"{RING} 1": "CN=kubelet-serving",
    }
    assert [believed for _, believed in by_state.values()] == ["of the kubelet"] * 3 + [by_state[f"{RING} 1"][1]]
    assert by_state[f"{RING} 1"][1] != "of the kubelet"
    assert "certificate signed by unknown authority" in pods.logs(far, of_the_cluster)
    stranger = issue(new_authority("kubelet-serving"), Request("w-site", addresses=(ADDRESS,)))
    assert "certificate signed by unknown authority" in pods.logs(far, stranger)
    assert rings.built(world.outputs())[RING] == Ring((1,))
    assert key_status(world.engine).unproven == ""
