"""gangs: whose PodGroup is made, when a gang is ended, when it is resumed, and what the program may do in the API."""

from __future__ import annotations

import json
from typing import Any

import pytest

from control_plane import flags, gangs, units
from control_plane.host.api import ApiError
from control_plane.host.gangs import ANSWERED, LABEL, RESTARTING, WITHIN, Keeper, change, pod_group
from network.addresses import plan
from scheduling import gangs as words

ALPHA = "scheduling.k8s.io/v1alpha2"


def job(failed: int = 0, **more: Any) -> dict[str, Any]:
    """A gang of 4. more: annotations, suspend, active, terminating, conditions that are true."""
    made = words.job("train", 4, {"containers": []})
    made["metadata"] |= {"namespace": "vision", "uid": "u", "resourceVersion": "7"}
    made["metadata"].setdefault("annotations", {}).update(more.get("annotations", {}))
    made["spec"]["suspend"] = more.get("suspend", False)
    true = [{"type": each, "status": "True"} for each in more.get("conditions", ())]
    made["status"] = {
        "failed": failed,
        "conditions": true,
        **{key: more[key] for key in ("active", "terminating") if key in more},
    }
    return made


def suspended(**more: Any) -> dict[str, Any]:
    return job(1, suspend=True, annotations={RESTARTING: "1"}, **more)


def test_names_on_hosts_are_those_of_the_model() -> None:
    assert (LABEL, WITHIN) == (words.LABEL, words.WITHIN)


def test_a_gang_is_ended_once_for_each_failure_that_was_not_answered() -> None:
    assert change(job(0)) is None
    wanted = change(job(2))
    assert wanted == {"metadata": {"annotations": {RESTARTING: "2"}}, "spec": {"suspend": True}}
    assert change(job(2, annotations={ANSWERED: "2"})) is None
    assert change(job(3, annotations={ANSWERED: "2"})) is not None


@pytest.mark.parametrize(
    "there",
    [{"active": 1, "conditions": ["Suspended"]}, {"terminating": 1, "conditions": ["Suspended"]}, {}],
    ids=["a member runs", "a member is on its way out", "the controller has not seen it yet"],
)
def test_it_is_not_resumed_while_a_member_may_still_run(there: dict[str, Any]) -> None:
    assert change(suspended(**there)) is None


def test_it_is_resumed_when_no_member_is_left_and_failures_so_far_are_answered() -> None:
    wanted = change(suspended(conditions=["Suspended"]))
    assert wanted == {"metadata": {"annotations": {RESTARTING: None, ANSWERED: "1"}}, "spec": {"suspend": False}}


def test_a_gang_that_somebody_suspended_stays_so() -> None:
    assert change(job(1, suspend=True)) is None


@pytest.mark.parametrize("end", ["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"])
def test_a_gang_that_is_over_is_left_alone(end: str) -> None:
    assert change(job(1, conditions=[end])) is None


def test_a_pod_group_is_the_jobs_own_and_as_large() -> None:
    made = pod_group(job(annotations={WITHIN: "menagerie.dev/rack"}), ALPHA)
    assert made
    (owner,) = made["metadata"].pop("ownerReferences")
    assert (owner["kind"], owner["uid"]) == ("Job", "u")
    made["metadata"].pop("namespace")
    assert made == words.pod_group("1.36.4", "train", 4, "menagerie.dev/rack")


def test_a_pod_group_is_of_the_class_of_its_pods() -> None:
    urgent = job()
    urgent["spec"]["template"]["spec"]["priorityClassName"] = "services"
    made = pod_group(urgent, ALPHA)
    assert made
    assert made["spec"] == words.pod_group("1.36.4", "train", 4, priority="services")["spec"]


class FakeApi:
    def __init__(self, status: int = 0) -> None:
        self.calls: list[tuple[str, str, Any]] = []
        self._status = status

    def call(self, method: str, path: str, body: Any = None, kind: str = "") -> Any:
        self.calls.append((method, path, body))
        if self._status:
            raise ApiError(self._status, "no")


def test_its_pod_group_is_made_once_and_a_change_is_bound_to_what_was_read(capsys: pytest.CaptureFixture[str]) -> None:
    api = FakeApi()
    keeper = Keeper(api, ALPHA)  # type: ignore[arg-type]
    keeper.decide(job(0))
    keeper.decide(job(1))
    assert [call[:2] for call in api.calls] == [
        ("POST", "/apis/scheduling.k8s.io/v1alpha2/namespaces/vision/podgroups"),
        ("PATCH", "/apis/batch/v1/namespaces/vision/jobs/train"),
    ]
    assert api.calls[1][2]["metadata"]["resourceVersion"] == "7"
    assert "1 failures of members: ended, to be started anew as a whole" in capsys.readouterr().out


@pytest.mark.parametrize("status", [404, 409, 422])
def test_losing_a_race_is_no_error(status: int) -> None:
    Keeper(FakeApi(status), ALPHA).decide(job(1))  # type: ignore[arg-type]


def test_a_refusal_of_the_api_is_an_error() -> None:
    with pytest.raises(ApiError):
        Keeper(FakeApi(403), ALPHA).decide(job(1))  # type: ignore[arg-type]


def test_a_cluster_without_gangs_has_none_of_it(lab: Any) -> None:
    assert gangs.objects(lab) == ()
    assert "feature-gates" not in flags.api_server(lab, plan(lab))
    assert "gangs.service" not in [unit.name for unit in units.units(lab, plan(lab))]


def test_gates_are_those_of_the_release(build: Any) -> None:
    cluster = build({"scheduling": {"gangs": True}})
    api = flags.api_server(cluster, plan(cluster))
    assert api["runtime-config"] == f"{ALPHA}=true"
    assert "GangScheduling=true" in flags.scheduler(cluster, "/c", "/k")["feature-gates"]
    assert "WorkloadAwarePreemption=true" in flags.scheduler(cluster, "/c", "/k")["feature-gates"]
    assert (
        flags.controller_manager(cluster)["feature-gates"] == "RotateKubeletServerCertificate=true,GenericWorkload=true"
    )
    assert "GangScheduling" not in words.gates("1.37.1", "kube-scheduler")
    assert words.pod_group("1.37.1", "x", 2)["apiVersion"] == "scheduling.k8s.io/v1beta1"


def test_a_release_before_pod_groups_has_no_words_for_a_gang() -> None:
    with pytest.raises(KeyError):
        words.pod_group("1.35.4", "x", 2)


def test_the_program_sees_and_changes_jobs_makes_groups_and_nothing_else(build: Any) -> None:
    role, binding, *_ = gangs.objects(build({"scheduling": {"gangs": True}}))
    assert role["rules"] == [
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list", "patch", "watch"]},
        {"apiGroups": ["scheduling.k8s.io"], "resources": ["podgroups"], "verbs": ["create"]},
    ]
    assert binding["subjects"][0]["name"] == gangs.USER
    assert "*" not in json.dumps(role)
