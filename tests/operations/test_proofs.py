"""What proofs do to machines and require of them, with machines that only record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes import client

from cluster.spec import Cluster, ClusterSpec
from operations.verify import everyday, faults, site
from operations.verify.proof import Context, FailedProofError, Traffic
from operations.verify.workload import Pod
from tests.operations.conftest import FakeAccess, outputs

EVENTS = ["etcd-events-1", "etcd-events-2", "etcd-events-3"]


@dataclass
class FakeMachines:
    """See `operations.verify.proof.Machines`. interrupted: the host at which Ctrl-C is pressed."""

    interrupted: str = ""
    reached: Callable[[str, str], bool] = lambda host, address: address.startswith("10.77.")
    done: list[str] = field(default_factory=list)

    def _do(self, what: str, host: str) -> None:
        self.done.append(f"{what} {host}")
        if host == self.interrupted and what in ("kill", "stop"):
            raise KeyboardInterrupt

    def kill(self, host: str) -> None:
        self._do("kill", host)

    def stop_unit(self, host: str, unit: str, at_most_s: int) -> None:
        assert (unit, at_most_s > 0) == ("etcd-events.service", True)
        self._do("stop", host)

    def start_unit(self, host: str, unit: str) -> None:
        self._do("start", host)

    def reaches(self, host: str, address: str) -> bool:
        return self.reached(host, address)

    def traffic(self, host: str, while_doing: Callable[[], None]) -> Traffic:
        raise NotImplementedError

    def isolate(self, racks: Sequence[str], at_most_s: int) -> None:
        assert at_most_s > 0
        self.done.append(f"isolate {' '.join(racks)}")

    def rejoin(self) -> None:
        self.done.append("rejoin")

    def repair(self) -> None:
        self.done.append("up")


class FakeWorkload:
    """Pods with correct responses."""

    namespace, word = "menagerie-verify-x", "word"

    def __init__(self, cluster: Cluster) -> None:
        self.core = self
        self.answers: list[str] = []
        names = [host.name for _, host in cluster.host_list()]
        self._pods = {name: Pod(f"probe-{name}", name, f"10.200.{n}.2") for n, name in enumerate(names)}

    def pods(self) -> dict[str, Pod]:
        return self._pods

    def run(self, _pod: Pod, *argv: str) -> str:
        return argv[-1]

    def fetch(self, pod: Pod, _url: str) -> str:
        return self.answers.pop(0) if self.answers else f"{pod.name} {self.word}\n"

    def read_namespaced_pod_log(self, *_: object, **__: object) -> str:
        return "started word"


@pytest.fixture
def machines() -> FakeMachines:
    return FakeMachines()


@pytest.fixture
def context(lab: Cluster, machines: FakeMachines, monkeypatch: pytest.MonkeyPatch) -> Context:
    """A cluster where writes succeed, API servers are up, and the stopped etcd is down."""
    monkeypatch.setattr(faults, "_write", lambda workload, seconds: "written")
    monkeypatch.setattr(faults, "unhealthy_parts", lambda cluster, access: "")
    answer(monkeypatch, {"api-1": "UP", "api-2": "UP"}, dict.fromkeys(EVENTS, "context deadline exceeded"))
    workload: Any = FakeWorkload(lab)
    access: Any = FakeAccess(outputs())
    return Context(lab, access, access.api(), lambda: workload, machines, lambda _: None)


def answer(monkeypatch: pytest.MonkeyPatch, states: dict[str, str], ailments: dict[str, str]) -> None:
    """Set what the load balancer and the etcd report while the etcd is stopped."""

    class Etcd:
        def __init__(self, _: object, role: str) -> None:
            assert role == "events"

        def ailments(self) -> dict[str, str]:
            return ailments

    monkeypatch.setattr(faults, "balancer_states", lambda _: states)
    monkeypatch.setattr(faults, "EtcdClient", Etcd)


def test_every_member_of_the_events_etcd_is_stopped_and_started_again(context: Context, machines: FakeMachines) -> None:
    assert "2 of 2 backends up" in faults.a_dead_events_etcd_leaves_the_api_serving(context)
    # Members of one step are stopped, or started, at the same time.
    stopped, started = machines.done[: len(EVENTS)], machines.done[len(EVENTS) :]
    assert sorted(stopped) == [f"stop {host}" for host in EVENTS]
    assert sorted(started) == [f"start {host}" for host in EVENTS]


@pytest.mark.parametrize("host", EVENTS)
def test_members_are_started_again_after_an_interrupt_while_they_are_being_stopped(
    context: Context, machines: FakeMachines, host: str
) -> None:
    machines.interrupted = host
    with pytest.raises(KeyboardInterrupt):
        faults.a_dead_events_etcd_leaves_the_api_serving(context)
    assert machines.done[-3:] == [f"start {host}" for host in EVENTS]


@pytest.mark.parametrize("state", ["DOWN", "absent"])
def test_an_api_server_that_is_taken_out_with_the_events_etcd_fails_the_proof(
    context: Context, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    answer(monkeypatch, {"api-1": "UP", "api-2": state}, dict.fromkeys(EVENTS, "gone"))
    with pytest.raises(FailedProofError, match="1 of 2 backends up"):
        faults.a_dead_events_etcd_leaves_the_api_serving(context)


def test_an_events_etcd_that_still_responds_proves_nothing(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, {"api-1": "UP", "api-2": "UP"}, {**dict.fromkeys(EVENTS, "gone"), "etcd-events-2": ""})
    with pytest.raises(FailedProofError, match="events etcd responded: .*etcd-events-2"):
        faults.a_dead_events_etcd_leaves_the_api_serving(context)


def test_a_killed_host_is_repaired_also_after_an_interrupt(context: Context, machines: FakeMachines) -> None:
    machines.interrupted = "api-1"
    with pytest.raises(KeyboardInterrupt):
        faults.writes_go_on_without_an_api_server(context)
    assert machines.done == ["kill api-1", "up"]


def test_nothing_is_broken_when_the_pods_can_not_be_started(context: Context, machines: FakeMachines) -> None:
    def start() -> Any:
        raise LookupError("no API")

    unstarted = Context(context.cluster, context.access, context.api, start, machines, context.report)
    for proof in faults.PROOFS:
        with pytest.raises(LookupError, match="no API"):
            proof.run(unstarted)
    assert machines.done == []


def test_api_servers_reach_an_etcd_and_no_worker_and_all_of_them_are_asked(context: Context) -> None:
    assert "api-1, api-2 have no route to" in everyday.logs_and_exec_work_without_a_route(context)


@pytest.mark.parametrize(
    ("reached", "why"),
    [
        (lambda host, address: False, "api-1 does not reach 10.77.0.21 of etcd main"),
        (lambda host, address: host == "api-1" and address == "10.77.0.21", "api-2 does not reach 10.77.0.21"),
        (lambda host, address: address == "10.77.0.21" or host == "api-2", "api-2 reaches 10.78.1."),
        (lambda host, address: address in ("10.77.0.21", "10.200.2.2"), "api-1 reaches 10.200.2.2"),
    ],
)
def test_a_failing_ping_or_an_api_server_with_a_route_fails_the_proof(
    context: Context, machines: FakeMachines, reached: Callable[[str, str], bool], why: str
) -> None:
    machines.reached = reached
    with pytest.raises(FailedProofError, match=why):
        everyday.logs_and_exec_work_without_a_route(context)


def test_a_name_that_a_resolver_learns_late_is_waited_for_and_the_proof_says_so(context: Context) -> None:
    workload: Any = context.workload
    workload.answers = ["wget: bad address"]
    outcome = everyday.a_service_name_resolves_and_answers(context)
    assert "worker-1 → probe-worker-1 (2 attempts, the first got 'wget: bad address'), worker-2 → probe-" in outcome


def test_a_name_that_never_resolves_fails_the_proof(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(everyday, "_NAMES_TIMEOUT_S", 0)
    workload: Any = context.workload
    workload.answers = ["wget: bad address"] * 10
    with pytest.raises(FailedProofError, match=r"from worker-1, http://probe\..* responded 'wget: bad address'"):
        everyday.a_service_name_resolves_and_answers(context)


def at_two_sites(lab: Cluster, racks: tuple[str, str, str]) -> Cluster:
    """The lab's workers, the last one at a second site."""
    site, pool = lab.spec.sites["onprem"], lab.spec.pools["workers"]
    spec: ClusterSpec = lab.spec.model_copy(
        update={
            "sites": {"onprem": site, "other": site},
            "pools": {"workers": pool, "others": pool.model_copy(update={"site": "other"})},
        }
    )
    hosts = [host.model_copy(update={"rack": rack}) for (_, host), rack in zip(lab.host_list(), racks, strict=True)]
    return Cluster(spec=spec, hosts={"workers": tuple(hosts[:2]), "others": tuple(hosts[2:])})


def test_racks_of_the_same_name_at_two_sites_are_two_segments(lab: Cluster) -> None:
    assert everyday.three_hosts(lab) == ("worker-1", "worker-2", "worker-3")
    assert everyday.three_hosts(at_two_sites(lab, ("r1", "r1", "r1"))) == ("worker-1", "worker-2", "worker-3")
    with pytest.raises(FailedProofError, match="needs two hosts in one rack"):
        everyday.three_hosts(at_two_sites(lab, ("r1", "r2", "r1")))


def test_without_a_second_segment_there_are_no_three_hosts(lab: Cluster) -> None:
    together = [host.model_copy(update={"rack": "r1"}) for _, host in lab.host_list()]
    with pytest.raises(FailedProofError, match="one in another"):
        everyday.three_hosts(Cluster(spec=lab.spec, hosts={"workers": tuple(together)}))


def pings(inside: bool, outside: bool) -> Callable[[str, str], bool]:
    """Whether worker-1 reaches the pod in its own rack, and the one in another."""
    return lambda _, address: {"10.200.1.2": inside, "10.200.2.2": outside}[address]


def test_a_rack_is_rejoined_after_the_check(context: Context, machines: FakeMachines) -> None:
    machines.reached = pings(inside=True, outside=False)
    assert "nothing routed out of r1: worker-1 reaches the pod on worker-2" in site.pods_of_a_rack_talk_within_it(
        context
    )
    assert machines.done == ["isolate r1", "rejoin"]


@pytest.mark.parametrize(("inside", "outside"), [(False, False), (True, True)])
def test_a_packet_that_leaves_its_rack_fails_the_proof(
    context: Context, machines: FakeMachines, inside: bool, outside: bool
) -> None:
    machines.reached = pings(inside, outside)
    with pytest.raises(FailedProofError, match="worker-1"):
        site.pods_of_a_rack_talk_within_it(context)
    assert machines.done == ["isolate r1", "rejoin"]


class Site:
    """A site that is cut off, as the API shows it. after: the state of its pod afterwards."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, context: Context, after: tuple[str, int, bool], tolerated: float
    ):
        states = iter([{"kube-system/dns": ("uid", 0, False)}, {"kube-system/dns": after}, {"kube-system/dns": after}])
        monkeypatch.setattr(site, "CUT_S", 1)
        monkeypatch.setattr(site, "_pods_on", lambda *_: next(states))
        monkeypatch.setattr(site, "_still_known", lambda *_: "")
        monkeypatch.setattr(site, "nodes_missing", lambda *_: "")
        monkeypatch.setattr(site, "_tolerated_s", lambda _: tolerated)
        workload: Any = context.workload
        workload.alone = lambda node: node


def test_a_site_is_rejoined_and_has_the_same_pods_as_before(
    context: Context, machines: FakeMachines, monkeypatch: pytest.MonkeyPatch
) -> None:
    Site(monkeypatch, context, ("uid", 0, False), 86400)
    machines.reached = pings(inside=True, outside=True)
    assert "1 pods kept running" in site.a_site_outlives_its_uplink(context)
    assert machines.done == ["isolate r1 r2", "rejoin"]


@pytest.mark.parametrize("after", [("another", 0, False), ("uid", 1, False), ("uid", 0, True)])
def test_a_pod_that_was_replaced_restarted_or_deleted_fails_the_proof(
    context: Context, machines: FakeMachines, monkeypatch: pytest.MonkeyPatch, after: tuple[str, int, bool]
) -> None:
    Site(monkeypatch, context, after, 86400)
    machines.reached = pings(inside=True, outside=True)
    with pytest.raises(FailedProofError, match="kube-system/dns"):
        site.a_site_outlives_its_uplink(context)


def test_pods_that_would_be_evicted_after_a_longer_cut_fail_the_proof_before_anything_is_cut(
    context: Context, machines: FakeMachines, monkeypatch: pytest.MonkeyPatch
) -> None:
    Site(monkeypatch, context, ("uid", 0, False), 300)
    with pytest.raises(FailedProofError, match="for only 300 s"):
        site.a_site_outlives_its_uplink(context)
    assert machines.done == []


def test_pods_with_a_toleration_shorter_than_the_cut_are_not_counted(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pod(name: str, key: str | None, seconds: int | None) -> Any:
        toleration = client.V1Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=seconds)
        return client.V1Pod(
            metadata=client.V1ObjectMeta(namespace="kube-system", name=name, uid=name),
            spec=client.V1PodSpec(node_name="worker-1", containers=[], tolerations=[toleration]),
            status=client.V1PodStatus(),
        )

    pods = [pod("dns", site.UNREACHABLE, 60), pod("job", site.UNREACHABLE, 86400), pod("daemon", None, None)]
    api = SimpleNamespace(
        list_pod_for_all_namespaces=lambda **_: SimpleNamespace(items=pods, metadata=client.V1ListMeta())
    )
    monkeypatch.setattr(site.client, "CoreV1Api", lambda _: api)
    assert set(site._pods_on(context, ["worker-1"])) == {"kube-system/job", "kube-system/daemon"}


def test_pods_in_racks_that_do_not_reach_one_another_fail_the_proof(
    context: Context, machines: FakeMachines, monkeypatch: pytest.MonkeyPatch
) -> None:
    Site(monkeypatch, context, ("uid", 0, False), 86400)
    machines.reached = pings(inside=True, outside=False)
    with pytest.raises(FailedProofError, match="worker-3"):
        site.a_site_outlives_its_uplink(context)
