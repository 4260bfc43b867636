"""Kubelets' serving certificates get an authority of their own in a cluster that had none, with a real API server and controller
manager, which asks kubelets for logs all the while."""

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
from operations.keys.status import look
from stacks.certificates import Request, Signed, issue, new_authority
from tests.control_plane.serving_support import listener
from tests.operations.keys.region import Region
from tests.operations.keys.test_kubernetes_authority import following, issuer
from tests.operations.keys.test_rotation import Cut, rotation
from tests.operations.keys.workers import ADDRESS, Worker, worker
from tests.ports import free_port

pytestmark = pytest.mark.timeout(2400)
RING: RingName = "kubelet-serving-ca"


class Stack:
    """What `carry_over` needs of one."""

    def __init__(self, **configured: str) -> None:
        self.configured = configured

    def values(self) -> dict[str, str]:
        return dict(self.configured)

    def configure(self, _provider: str, key: str, value: str) -> None:
        self.configured[key] = value

    def forget(self, _provider: str, key: str) -> None:
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
        # Who gave it up is not made to begin again.
        (BEFORE | {"key_rings": f'{{"{RING}": "0"}}'}, {f"ring-{RING}": "0"}, {f"ring-{RING}": "0"}),
    ],
)
def test_up_introduces_the_authority_in_a_stack_from_before_it_and_a_new_one_has_it_alone(
    outputs: Mapping[str, object], configured: dict[str, str], made: dict[str, str]
) -> None:
    stack = Stack(**configured)
    rings.carry_over(stack, outputs)  # type: ignore[arg-type]
    assert stack.configured == made
    rings.refuse_foreign("horus", stack, outputs)  # type: ignore[arg-type]


def test_a_preview_leaves_the_configuration_as_it_was() -> None:
    stack = Stack()
    with rings.carried_over(stack, BEFORE):  # type: ignore[arg-type]
        assert stack.configured == {f"ring-{RING}": "0,1"}
    assert stack.configured == {}


def test_who_has_an_older_configuration_is_refused_while_the_ring_is_carried_over() -> None:
    with pytest.raises(RefusedError, match="built with 0,1"):
        rings.refuse_foreign("horus", Stack(), {"key_rings": f'{{"{RING}": "0,1"}}'})  # type: ignore[arg-type]


class Pods:
    """A pod on each worker, whose logs the API server is asked for. port: of each kubelet."""

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
        """Of a worker's pod, from a kubelet that shows its certificate, or another one."""
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
    """The cluster as if it had been made before there was the ring: its API servers know the cluster's authority alone."""
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
    """The rotation as an operator goes through it, whose run is also cut off in every state."""
    seen: list[str] = []

    def done(step: str) -> None:
        if step not in seen:
            seen.append(step)
            if step.startswith(RING):
                raise Cut

    while True:
        try:
            rotation(world, RING, done).run()
        except Cut:
            after(seen[-1])
        except FailedError as error:
            assert "w-site" in str(error)
            seen.append("configure")
            site.follow()
        else:
            return seen


@pytest.mark.soak
def test_a_cluster_is_carried_over_without_a_stop_and_the_cluster_s_authority_counts_for_no_kubelet_after(
    world: Region, carried: tuple[Worker, Worker, Pods]
) -> None:
    near, far, pods = carried
    pki = world.api.root / "etc/kubernetes/pki"
    authority = Signed((pki / "ca.crt").read_text(), (pki / "ca.key").read_text())
    of_the_cluster = issue(authority, Request("system:node:w-site", ("system:nodes",), addresses=(ADDRESS,)))
    told: dict[str, tuple[str, str]] = {}

    def seen_in(state: str) -> None:
        assert pods.logs(far) == pods.logs(near) == "of the kubelet", "whoever is a step behind is believed"
        pem = far.link("server").read_text()
        told[state] = (issuer(Signed(pem, pem)), pods.logs(far, of_the_cluster))

    seen_in("before")
    assert not look(world.engine).ok(datetime.now(UTC)), "a monitor says that there is something to do"
    seen = run(world, seen_in, far)
    assert [each for each in seen if each != f"every kubelet follows {RING} 1,0"] == [
        f"{RING} 0,1", "configure", f"every kubelet follows {RING} 0,1",
        f"{RING} 1,0", "configure",
        f"{RING} 1", "configure", f"every kubelet follows {RING} 1",
    ]  # fmt: skip
    assert {state: issued for state, (issued, _) in told.items()} == {
        "before": "CN=kubernetes",
        f"{RING} 0,1": "CN=kubernetes",
        f"{RING} 1,0": "CN=kubernetes",
        f"{RING} 1": "CN=kubelet-serving",
    }
    assert [believed for _, believed in told.values()] == ["of the kubelet"] * 3 + [told[f"{RING} 1"][1]]
    assert told[f"{RING} 1"][1] != "of the kubelet"
    assert "certificate signed by unknown authority" in pods.logs(far, of_the_cluster)
    stranger = issue(new_authority("kubelet-serving"), Request("w-site", addresses=(ADDRESS,)))
    assert "certificate signed by unknown authority" in pods.logs(far, stranger)
    assert rings.built(world.outputs())[RING] == Ring((1,))
    assert look(world.engine).unproven == ""
