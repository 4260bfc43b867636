"""The loop with a real API server, scheduler and controllers. Machines are Nodes with simulated kubelets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from clients.lease import HeldError, Lease
from cluster.autoscaler import LEASE
from cluster.spec import Cluster
from controllers.autoscaler.actuator import Actuator
from controllers.autoscaler.decision import Act
from controllers.autoscaler.pod_events import EventWriter
from controllers.autoscaler.settings import settings_of
from controllers.planner import Fate
from operations.drain import mark_of
from tests.operations.real_cluster import World
from tests.scheduling.autoscaler.machines import POOL, Machines, around, every_death, loop, passes
from tests.waiting import until

pytestmark = pytest.mark.xdist_group("autoscaler")

QUICK = {
    "interval": "1s", "settle": "0s", "idle": {"cpu": "1s", "gpu": "1s"}, "solver": "0s", "removed_step": "2",
    "added_step": "4",
}  # fmt: skip
HERE = {"nodeSelector": {"menagerie/pool": POOL}}


@pytest.fixture
def cluster(build: Callable[..., Cluster]) -> Cluster:
    pools = {POOL: {"machine": "lab-small", "min": 1, "max": 4, "labels": {"openai.org/location": "lab-local"}}}
    return build({"pools": pools, "autoscaler": QUICK, "repair": {"max_removed": "4", "max_unhealthy": "3"}})


@pytest.fixture
def machines(real: World, cluster: Cluster) -> Machines:
    """Return a group with one machine, the pool's minimum."""
    machines_ = Machines(real, cluster)
    machines_.grow(POOL, 1)
    machines_.boot()
    return machines_


def job(real: World, name: str, pods: int, cpu: str = "6", **more: Any) -> None:
    template = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "c", "image": "pause", "resources": {"requests": {"cpu": cpu}}}],
        **HERE,
    }
    spec = {"parallelism": pods, "completions": pods, "template": {"metadata": more, "spec": template}}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
    real.call("POST", "/apis/batch/v1/namespaces/default/jobs", body)


def bound(real: World) -> dict[str, str]:
    return {each.metadata.name: each.spec.node_name for each in real.core.list_namespaced_pod("default").items}


def nodes(real: World) -> list[str]:
    return sorted(node.metadata.name for node in real.core.list_node().items if "region" in node.metadata.name)


def unplaced(real: World) -> int:
    """Return the number of pods that the scheduler could not place."""
    pods = real.core.list_namespaced_pod("default").items
    return sum(any(c.reason == "Unschedulable" for c in pod.status.conditions or ()) for pod in pods)


def test_a_job_gets_a_machine_that_is_removed_when_idle_although_the_process_dies_at_every_step(
    real: World, cluster: Cluster, machines: Machines
) -> None:
    deaths = every_death(Act.GROW, Act.CORDON, Act.REMOVE, Act.FORGET)
    job(real, "train", 2)
    until(lambda: unplaced(real) == 1)

    def make() -> Any:
        return loop(cluster, real, machines, deaths)

    rounds = passes(make, real, lambda: machines.size == 2)
    waiting = [pod for pod in rounds[-1].world.waiting]
    verdicts = [verdict for round_ in rounds for verdict in round_.decided.verdicts.values()]
    assert {verdict.fate for verdict in verdicts} <= {Fate.NEW, Fate.ROOM}
    assert len(waiting) == 1
    for _ in range(2):
        loop(cluster, real, machines).once()
    assert machines.size == 2, "a machine that boots is not ordered again"
    machines.boot()
    until(lambda: all(bound(real).values()))
    assert sorted(bound(real).values()) == ["lab-region-i-1", "lab-region-i-2"]
    for _ in range(2):
        loop(cluster, real, machines).once()
    assert nodes(real) == ["lab-region-i-1", "lab-region-i-2"], "no host is removed while a Job runs there"
    for pod in bound(real):
        real.end(pod)
    passes(make, real, lambda: len(nodes(real)) == 1)
    assert (machines.size, len(machines.removed), deaths) == (1, 1, [])
    (left,) = nodes(real)
    node = real.core.read_node(left)
    assert (bool(node.spec.unschedulable), mark_of(node)) == (False, None)


def test_pods_that_may_move_are_evicted_from_a_host_that_is_hardly_used(
    real: World, build: Callable[..., Cluster], cluster: Cluster, machines: Machines
) -> None:
    machines.grow(POOL, 2)
    machines.boot()
    loose = build(
        {
            "pools": {POOL: {"machine": "lab-small", "min": 1, "max": 4}},
            "autoscaler": {**QUICK, "idle_below": 30},
            "repair": {"max_removed": "4", "max_unhealthy": "3"},
        }
    )
    request = {"containers": [{"name": "c", "image": "pause", "resources": {"requests": {"cpu": "2"}}}]}
    real.replicas("web", 2, **request, **HERE)
    until(lambda: real.ready("web") == 2)
    # The scheduler spreads them, so no host is idle.
    before = bound(real)
    assert sorted(before.values()) == nodes(real)
    passes(lambda: loop(loose, real, machines), real, lambda: len(nodes(real)) == 1)
    (left,) = nodes(real)
    until(lambda: real.ready("web") == 2)
    after = bound(real)
    assert set(after.values()) == {left}
    assert {name for name, node in before.items() if node == left} < set(after), "only what had to move has moved"
    assert machines.size == 1


def test_a_host_with_a_pod_without_a_controller_stays_or_returns_to_service(
    real: World, cluster: Cluster, machines: Machines
) -> None:
    machines.grow(POOL, 3)
    machines.boot()
    first, *_ = nodes(real)
    real.pod("alone", first)
    round_ = loop(cluster, real, machines)
    assert "which has no controller" in round_.once().decided.kept[first]
    passes(lambda: loop(cluster, real, machines), real, lambda: bool(marked(real)))
    node = marked(real)[0]
    real.pod("late", node)
    rounds = passes(lambda: loop(cluster, real, machines), real, lambda: node not in marked(real))
    back = [each for round_ in rounds for each in round_.decided.decisions if each.act is Act.GIVE_BACK]
    assert [each.why for each in back] == ["it runs default/late, which has no controller that would recreate it"]
    assert {first, node} <= set(nodes(real))


def marked(real: World) -> list[str]:
    return [each.metadata.name for each in real.core.list_node().items if mark_of(each)]


def test_nothing_is_added_or_removed_while_the_groups_do_not_answer_or_the_control_plane_is_unhealthy(
    real: World, cluster: Cluster, machines: Machines
) -> None:
    machines.grow(POOL, 2)
    machines.boot()
    job(real, "train", 3)
    until(lambda: unplaced(real) == 1)
    machines.silent = "403 from the cloud: log in again"
    result = loop(cluster, real, machines).once().decided
    assert result.decisions == ()
    assert "the groups of machines (403 from the cloud: log in again) did not answer" in result.refused
    machines.silent = ""
    for pod in bound(real):
        real.server.call("DELETE", f"/api/v1/namespaces/default/pods/{pod}", {"gracePeriodSeconds": 0})
    real.server.call("DELETE", "/apis/batch/v1/namespaces/default/jobs/train", {"propagationPolicy": "Background"})
    until(lambda: not bound(real))
    unwell = "etcd main: 1 of 3 members answer"
    braked: list[str] = []

    def is_braked() -> bool:
        kept = loop(cluster, real, machines, control_plane=unwell).once().decided.kept
        braked.extend(why for why in kept.values() if unwell in why)
        return bool(braked)

    until(is_braked)
    assert "No scale-in will start" in braked[0]
    assert len(nodes(real)) == 2
    assert marked(real) == []


def test_a_pool_that_the_cloud_refuses_to_grow_backs_off(real: World, cluster: Cluster, machines: Machines) -> None:
    job(real, "train", 2)
    until(lambda: unplaced(real) == 1)
    machines.refuses = "VcpuLimitExceeded: ask AWS for more"
    round_ = loop(cluster, real, machines).once()
    assert [(each.failed, each.text) for each in round_.done] == [(True, machines.refuses)]
    again = loop(cluster, real, machines).once()
    assert again.decided.decisions == ()
    (verdict,) = again.decided.verdicts.values()
    assert verdict.fate is Fate.WAITING
    assert "pool region is not grown for" in verdict.reason
    assert machines.refuses in verdict.reason


def test_a_dry_run_changes_nothing(real: World, cluster: Cluster, machines: Machines) -> None:
    job(real, "train", 2)
    until(lambda: unplaced(real) == 1)
    round_ = loop(cluster, real, machines).once(dry_run=True)
    assert [str(each.act) for each in round_.decided.decisions] == ["grow"]
    assert machines.size == 1
    settings = settings_of(cluster)
    assert Actuator(real.api, machines, around(cluster, real).limits).recall().orders == ()
    assert settings.tries == 3


def test_events_on_pods_report_decisions_once(real: World, cluster: Cluster, machines: Machines) -> None:
    job(real, "large", 1, cpu="9")
    job(real, "train", 2, annotations={"scheduling.menagerie.dev/spot": "sometimes"})
    until(lambda: unplaced(real) == 2)
    teller = EventWriter(real.api)
    one = loop(cluster, real, machines).once()
    assert teller.tell(one) == (3, 0)
    assert teller.tell(one) == (0, 0)
    events = real.core.list_namespaced_event("default", field_selector="source=menagerie-autoscaler").items
    messages = {(each.reason, each.type): each.message for each in events}
    assert set(messages) == {
        ("NoMachineEver", "Warning"),
        ("MachineOrdered", "Normal"),
        ("BadRequestOfMachines", "Warning"),
    }
    assert "it requests 9 CPUs, but the largest host has 8 CPUs" in messages["NoMachineEver", "Warning"]
    assert "write any, never or only" in messages["BadRequestOfMachines", "Warning"]


def test_two_never_act_at_once_and_a_dead_holder_is_replaced(real: World) -> None:
    first, second = Lease(real.api(), LEASE, "one", lasts_s=3), Lease(real.api(), LEASE, "two", lasts_s=3)
    with first.holding():
        assert first.held()
        with pytest.raises(HeldError, match="one acts on this cluster"), second.holding():
            pass
        assert not second.held()
        assert (first.other(), second.other()) == ("", "one")
    assert second.other() == ""
    third = Lease(real.api(), LEASE, "three", lasts_s=3)
    third._take()  # and dies

    def follows() -> bool:
        try:
            with Lease(real.api(), LEASE, "four", lasts_s=3).holding():
                return True
        except HeldError:
            return False

    until(follows)


def test_a_process_that_lost_the_lock_notices_it(real: World) -> None:
    lease = Lease(real.api(), LEASE, "one", lasts_s=6)
    with lease.holding():
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/menagerie-autoscaler"

        def taken() -> bool:
            body = {"spec": {"holderIdentity": "another"}}
            real.server.call("PATCH", path, body, "application/merge-patch+json")
            return not lease.held()

        until(taken)
