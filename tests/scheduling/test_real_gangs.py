"""Gangs in real programs: all or nothing, no deadlock of two halves, and a restart of the whole gang when a member dies."""

from __future__ import annotations

import http
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from cluster.places import GPU_KIND, RACK
from cluster.spec import Cluster
from components.scheduling import gangs
from tests.scheduling.real import Scheduled, container, scheduled

pytestmark = pytest.mark.xdist_group("scheduling_gangs")
JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
GROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
EXAMPLES = Path(__file__).parents[2] / "examples" / "jobs"


@pytest.fixture(scope="module")
def whole(build: Callable[..., Cluster], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scheduled]:
    with scheduled(build({"scheduling": {"gangs": True}}), tmp_path_factory.mktemp("gangs")) as cluster:
        yield cluster


@pytest.fixture
def at(whole: Scheduled) -> Iterator[Scheduled]:
    yield whole
    whole.clear()


def gang(at: Scheduled, name: str, members: int, within: str = "", **spec: object) -> None:
    """Create a gang whose members need a whole host each."""
    at.make(JOBS, gangs.job(name, members, {**container(8), "schedulerName": "pack", **spec}, within))


def of(at: Scheduled, name: str) -> dict[str, str]:
    """Return the job's bound pods -> node."""
    return at.places(f"batch.kubernetes.io/job-name={name}")


def waits(at: Scheduled, name: str) -> bool:
    """Whether the scheduler tried to place the gang and found no room."""
    conditions = at.world.server.call("GET", f"{GROUPS}/{name}")[1].get("status", {}).get("conditions", [])
    return any(each["type"] == "PodGroupScheduled" and each["status"] == "False" for each in conditions)


def refusal(at: Scheduled, path: str, body: object, as_user: str = "") -> str:
    """Return why a request is refused. Policies take effect a moment after their creation."""
    messages: list[str] = []

    def refused() -> bool:
        status, answer = at.world.server.call("POST", f"{path}?dryRun=All", body, as_user=as_user)
        messages.append(str(answer.get("message", "")))
        return status == http.HTTPStatus.UNPROCESSABLE_ENTITY

    at.until(refused)
    return messages[-1]


def finish(at: Scheduled, name: str) -> None:
    for pod in of(at, name):
        at.end_pod(pod)


def test_a_gang_that_fits_starts(at: Scheduled) -> None:
    at.nodes(4)
    gang(at, "a", 4)
    at.until(lambda: len(of(at, "a")) == 4)
    assert len(set(of(at, "a").values())) == 4


def test_a_gang_that_does_not_fit_starts_no_pod_until_it_does(at: Scheduled) -> None:
    at.nodes(3)
    at.pod("other", 8)
    at.until(lambda: "other" in at.places())
    gang(at, "a", 3)
    at.until(lambda: waits(at, "a"))
    assert of(at, "a") == {}
    at.end_pod("other")
    at.until(lambda: len(of(at, "a")) == 3)


def test_two_gangs_that_each_need_most_hosts_run_one_after_the_other(at: Scheduled) -> None:
    at.nodes(10)
    gang(at, "a", 6)
    gang(at, "b", 6)
    at.until(lambda: 6 in (len(of(at, "a")), len(of(at, "b"))))
    first, second = ("a", "b") if of(at, "a") else ("b", "a")
    assert of(at, second) == {}
    at.until(lambda: at.world.ready("test") == 0)
    finish(at, first)
    at.until(lambda: len(of(at, second)) == 6)


def test_when_a_member_dies_the_whole_gang_restarts(at: Scheduled) -> None:
    at.nodes(4)
    gang(at, "a", 4)
    at.until(lambda: len(of(at, "a")) == 4)
    before = set(of(at, "a"))
    at.until(lambda: all(status_of(at, pod) == "Running" for pod in before))
    at.end_pod(min(before), "Failed")
    at.until(lambda: len(of(at, "a")) == 4 and not before & set(of(at, "a")))
    job = at.world.call("GET", f"{JOBS}/a")
    assert "menagerie.dev/gang-restarting" not in job["metadata"]["annotations"]
    assert job["spec"]["suspend"] is False


def status_of(at: Scheduled, pod: str) -> str:
    return str(at.world.call("GET", f"/api/v1/namespaces/default/pods/{pod}")["status"]["phase"])


def test_a_gang_that_lost_a_host_releases_the_others_while_it_waits(at: Scheduled) -> None:
    """Its remaining half must not keep hosts that another gang could use."""
    at.nodes(4)
    gang(at, "a", 4)
    at.until(lambda: len(of(at, "a")) == 4)
    (victim,) = [pod for pod, node in of(at, "a").items() if node == "n0"]
    at.world.merge("/api/v1/nodes/n0", {"spec": {"unschedulable": True}})
    at.end_pod(victim, "Failed")
    gang(at, "b", 3)
    at.until(lambda: len(of(at, "b")) == 3)
    assert of(at, "a") == {}


def test_a_gang_is_placed_in_one_rack_if_it_requests_that(at: Scheduled) -> None:
    """The rack with the fullest hosts is too small for the gang."""
    racks = ["r1", "r1", "r2", "r2", "r2"]
    at.nodes(5, lambda number: {RACK: racks[number]})
    at.pod("other", 4, nodeSelector={RACK: "r1"})
    at.until(lambda: "other" in at.places())
    gang(at, "a", 3, within=RACK)
    at.until(lambda: len(of(at, "a")) == 3)
    assert {racks[int(node.removeprefix("n"))] for node in of(at, "a").values()} == {"r2"}


@pytest.mark.parametrize(("lower", "own"), [("balloons", ""), ("normal", "services")])
def test_a_gang_of_a_higher_class_preempts_only_as_much_as_it_needs(at: Scheduled, lower: str, own: str) -> None:
    at.nodes(4)
    for number in range(4):
        at.pod(f"low{number}", 8, priorityClassName=lower)
    at.until(lambda: len(at.places()) == 4)
    gang(at, "a", 3, **({"priorityClassName": own} if own else {}))
    at.until(lambda: len(of(at, "a")) == 3)
    assert len(at.places("app=test")) == 1


def test_a_gang_that_would_not_fit_anyway_preempts_nobody(at: Scheduled) -> None:
    at.nodes(4)
    for number in range(4):
        at.pod(f"other{number}", 8, priorityClassName="balloons" if number else "services")
    at.until(lambda: len(at.places()) == 4)
    gang(at, "a", 4)
    at.until(lambda: waits(at, "a"))
    assert len(at.places("app=test")) == 4


def test_a_gang_in_one_rack_waits_and_preempts_nobody(at: Scheduled) -> None:
    """This is how Kubernetes behaves so far; the docs say so."""
    at.nodes(2, lambda number: {RACK: "r1"})
    for number in range(2):
        at.pod(f"low{number}", 8, priorityClassName="balloons")
    at.until(lambda: len(at.places()) == 2)
    gang(at, "a", 2, within=RACK)
    at.until(lambda: waits(at, "a"))
    assert len(at.places("app=test")) == 2


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"completionMode": "NonIndexed"}, "a gang is a Job with completionMode Indexed"),
        ({"completions": 9}, "a gang is a Job with completionMode Indexed"),
        ({"backoffLimit": 1}, "backoffLimit counts failed pods"),
    ],
)
def test_a_job_that_cannot_be_a_gang_is_refused_with_the_reason(
    at: Scheduled, change: dict[str, object], why: str
) -> None:
    job = gangs.job("a", 4, container(8))
    job["spec"].update(change)
    assert why in refusal(at, JOBS, job)


def test_a_gang_whose_pods_do_not_name_it_is_refused(at: Scheduled) -> None:
    job = gangs.job("a", 4, container(8))
    job["spec"]["template"]["spec"]["schedulingGroup"] = {"podGroupName": "other"}
    assert "the pods of a gang name it" in refusal(at, JOBS, job)


def test_a_job_that_names_a_group_without_being_a_gang_is_refused(at: Scheduled) -> None:
    job = gangs.job("a", 4, container(8))
    del job["metadata"]["labels"]
    assert "give it the label menagerie.dev/gang" in refusal(at, JOBS, job)


def test_an_editor_of_a_namespace_can_not_create_a_group_of_another_class_than_its_pods(at: Scheduled) -> None:
    """With borrowing pods in it, such a group would preempt the owners of hosts."""
    # A part of `edit`, because the controller that aggregates it does not run here.
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:aggregate-to-edit"}
    body = {"metadata": {"name": "ann"}, "roleRef": role, "subjects": [{"kind": "User", "name": "ann"}]}
    at.world.server.call("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", body)
    group = gangs.pod_group("1.36.4", "a", 2, priority="services")
    assert "PodGroups are made for Jobs that are gangs" in refusal(at, GROUPS, group, "ann")
    pod = {"metadata": {"name": "p"}, "spec": {**container(8), "schedulingGroup": {"podGroupName": "a"}}}
    assert "only pods of a Job can be a gang's" in refusal(at, PODS, pod, "ann")
    assert at.world.server.call("POST", JOBS, gangs.job("a", 2, container(8)), as_user="ann")[0] == 201
    at.until(lambda: len(at.world.pods()) == 2)


ODD = {
    "number": ({"menagerie.dev/gang-failures": "x"}, {}, "is 'x', no number of failures"),
    "class": ({}, {"priorityClassName": "no-such-class"}, "no PriorityClass with name no-such-class was found"),
    "label": ({"menagerie.dev/gang-within": "no label\x1b[2J"}, {}, "topology[0].key"),
}
"""Name of a Job -> (its annotations, fields of its pods, the message to its owner)."""


def test_an_invalid_gang_is_reported_and_blocks_no_other(at: Scheduled) -> None:
    """The keeper runs with its rights in a cluster. The invalid gangs precede the valid one in every list."""
    at.nodes(2)
    for name, (notes, spec, _) in ODD.items():
        job = gangs.job(f"a-{name}", 2, {**container(8), **spec})
        job["metadata"]["annotations"] = notes
        at.make(JOBS, job)
    gang(at, "b", 2)
    at.until(lambda: at.world.server.call("GET", f"{GROUPS}/b")[0] == 200)
    at.keep()
    events = at.world.call("GET", "/api/v1/namespaces/default/events?fieldSelector=reason=GangNotKept")["items"]
    messages = {each["involvedObject"]["name"]: each["message"] for each in events}
    assert {f"a-{name}" for name in ODD} == messages.keys()
    assert all(
        words in messages[f"a-{name}"] and messages[f"a-{name}"].isprintable() for name, (*_, words) in ODD.items()
    )
    assert at.world.server.call("GET", f"{GROUPS}/a-number")[0] == 200


def test_a_group_that_the_api_refused_is_created_when_its_owner_has_corrected_the_job(at: Scheduled) -> None:
    job = gangs.job("a", 2, container(8))
    job["metadata"]["annotations"] = {gangs.WITHIN: "no label"}
    at.make(JOBS, job)
    at.keep()
    assert at.world.server.call("GET", f"{GROUPS}/a")[0] == 404
    at.world.merge(f"{JOBS}/a", {"metadata": {"annotations": {gangs.WITHIN: RACK}}})
    at.keep()
    assert at.world.server.call("GET", f"{GROUPS}/a")[0] == 200


def test_the_example_gang_is_placed_on_whole_hosts_of_its_kind_in_one_rack(at: Scheduled) -> None:
    """One of three racks has four free hosts with this kind of GPU; another has more hosts, of another kind."""
    racks = ["r1"] * 3 + ["r2"] * 4 + ["r3"] * 5
    kinds = ["NVIDIA-H100-80GB-HBM3"] * 7 + ["NVIDIA-A100-SXM4-40GB"] * 5
    at.nodes(12, lambda number: {RACK: racks[number], GPU_KIND: kinds[number]})
    at.make(JOBS, yaml.safe_load((EXAMPLES / "gang.yaml").read_text()))
    at.until(lambda: len(of(at, "train")) == 4)
    assert set(of(at, "train").values()) == {"n3", "n4", "n5", "n6"}


def test_the_example_of_packed_pods_is_placed_on_one_host(at: Scheduled) -> None:
    at.nodes(4)
    at.make(JOBS, yaml.safe_load((EXAMPLES / "packed.yaml").read_text()))
    at.until(lambda: len(of(at, "sweep")) == 6)
    assert len(set(of(at, "sweep").values())) == 1
