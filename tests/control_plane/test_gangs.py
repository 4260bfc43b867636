"""gangs: which PodGroups are created, when a gang is suspended and resumed, and what the program may do in the API."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from components.control_plane import controller_manager, gangs, kube_apiserver, scheduler, units
from components.control_plane.host.api import ApiError
from components.control_plane.host.following import RETRY_S
from components.control_plane.host.gangs import ANSWERED, LABEL, LIST, RESTARTING, WITHIN, Keeper, change, pod_group
from components.scheduling import gangs as words
from network.addresses import plan

ALPHA = "scheduling.k8s.io/v1alpha2"


def job(failed: int = 0, **more: Any) -> dict[str, Any]:
    """Return a gang of 4. more: annotations, suspend, active, terminating, conditions that are true."""
    gang = words.job("train", 4, {"containers": []})
    gang["metadata"] |= {"namespace": "vision", "uid": "u", "resourceVersion": "7"}
    gang["metadata"].setdefault("annotations", {}).update(more.get("annotations", {}))
    gang["spec"]["suspend"] = more.get("suspend", False)
    true = [{"type": each, "status": "True"} for each in more.get("conditions", ())]
    gang["status"] = {
        "failed": failed,
        "conditions": true,
        **{key: more[key] for key in ("active", "terminating") if key in more},
    }
    return gang


def suspended(**more: Any) -> dict[str, Any]:
    return job(1, suspend=True, annotations={RESTARTING: "1"}, **more)


def test_names_on_hosts_match_the_model() -> None:
    assert (LABEL, WITHIN) == (words.LABEL, words.WITHIN)


def test_a_gang_is_suspended_once_for_each_unhandled_failure() -> None:
    assert change(job(0)) is None
    patch = change(job(2))
    assert patch == {"metadata": {"annotations": {RESTARTING: "2"}}, "spec": {"suspend": True}}
    assert change(job(2, annotations={ANSWERED: "2"})) is None
    assert change(job(3, annotations={ANSWERED: "2"})) is not None


@pytest.mark.parametrize(
    "there",
    [{"active": 1, "conditions": ["Suspended"]}, {"terminating": 1, "conditions": ["Suspended"]}, {}],
    ids=["a member runs", "a member is terminating", "the controller has not noticed yet"],
)
def test_a_gang_is_not_resumed_while_a_member_may_still_run(there: dict[str, Any]) -> None:
    assert change(suspended(**there)) is None


def test_a_gang_is_resumed_when_no_member_is_left_and_its_failures_are_handled() -> None:
    patch = change(suspended(conditions=["Suspended"]))
    assert patch == {"metadata": {"annotations": {RESTARTING: None, ANSWERED: "1"}}, "spec": {"suspend": False}}


def test_a_gang_that_somebody_suspended_stays_suspended() -> None:
    assert change(job(1, suspend=True)) is None


@pytest.mark.parametrize("end", ["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"])
def test_a_finished_gang_is_left_alone(end: str) -> None:
    assert change(job(1, conditions=[end])) is None


def test_a_pod_group_belongs_to_its_job_and_has_its_size() -> None:
    group = pod_group(job(annotations={WITHIN: "menagerie.dev/rack"}), ALPHA)
    assert group
    (owner,) = group["metadata"].pop("ownerReferences")
    assert (owner["kind"], owner["uid"]) == ("Job", "u")
    group["metadata"].pop("namespace")
    assert group == words.pod_group("1.36.4", "train", 4, "menagerie.dev/rack")


def test_a_pod_group_has_the_priority_class_of_its_pods() -> None:
    urgent = job()
    urgent["spec"]["template"]["spec"]["priorityClassName"] = "services"
    group = pod_group(urgent, ALPHA)
    assert group
    assert group["spec"] == words.pod_group("1.36.4", "train", 4, priority="services")["spec"]


class FakeApi:
    """A fake API. refuse: method, path and body of a request -> the status of the refusal, 0 for none."""

    def __init__(
        self, jobs: Sequence[dict[str, Any]] = (), refuse: Callable[[str, str, Any], int] | None = None
    ) -> None:
        self.calls: list[tuple[str, str, Any]] = []
        self.jobs, self.refuse = list(jobs), refuse or (lambda *request: 0)
        self.group: dict[str, Any] = {"metadata": {"name": "train", "ownerReferences": [{"uid": "u"}]}}
        self.watched_s: list[float] = []

    def call(self, method: str, path: str, body: Any = None, kind: str = "", timeout_s: float = 0) -> Any:
        if path == LIST:
            return {"items": self.jobs, "metadata": {"resourceVersion": "1"}}
        self.calls.append((method, path, body))
        if status := self.refuse(method, path, body):
            raise ApiError(status, "no")
        return self.group

    def watch(self, path: str, version: str, for_s: float = 300) -> Iterator[Any]:
        self.watched_s.append(for_s)
        return iter(())

    def groups(self) -> list[str]:
        """Return the Jobs for which PodGroups were requested."""
        return [
            body["metadata"]["ownerReferences"][0]["uid"] for _, path, body in self.calls if path.endswith("podgroups")
        ]

    def events(self) -> list[dict[str, Any]]:
        return [body for _, path, body in self.calls if path.endswith("/events")]


def keeper(api: FakeApi) -> Keeper:
    return Keeper(api, ALPHA)  # type: ignore[arg-type]


def other(**more: Any) -> dict[str, Any]:
    """Return a gang of another owner."""
    gang = job(**more)
    gang["metadata"] |= {"name": "other", "namespace": "nlp", "uid": "o"}
    return gang


def only(method: str, what: str, status: int) -> Callable[[str, str, Any], int]:
    """Return a function that refuses one kind of request, only for the Job train."""
    return lambda used, path, body: status if (used == method and what in path and "/vision/" in path) else 0


def test_its_pod_group_is_created_once_and_a_change_needs_the_version_that_was_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    api = FakeApi()
    kept = keeper(api)
    kept.decide(job(0))
    kept.decide(job(1))
    assert [call[:2] for call in api.calls] == [
        ("POST", "/apis/scheduling.k8s.io/v1alpha2/namespaces/vision/podgroups"),
        ("PATCH", "/apis/batch/v1/namespaces/vision/jobs/train"),
    ]
    assert api.calls[1][2]["metadata"]["resourceVersion"] == "7"
    assert "1 failures of members: ended, to be restarted as a whole" in capsys.readouterr().out


@pytest.mark.parametrize("status", [404, 409])
def test_losing_a_race_is_no_error(status: int) -> None:
    keeper(FakeApi(refuse=only("PATCH", "", status))).decide(job(1))


@pytest.mark.parametrize(
    "refusal",
    [only("POST", "podgroups", 403), only("POST", "podgroups", 422), only("PATCH", "", 422), only("PATCH", "", 500)],
    ids=[
        "an unknown priority class",
        "a topology that is no label",
        "annotations that are too long",
        "too large for etcd",
    ],
)
def test_a_gang_that_the_api_refuses_is_reported_to_its_owner_and_does_not_stop_others(refusal: Any) -> None:
    api = FakeApi([job(1), other(failed=1)], refusal)
    keeper(api).follow()
    assert "o" in api.groups()
    assert [path for method, path, _ in api.calls if method == "PATCH" and "/nlp/" in path]
    (event,) = api.events()
    assert (event["involvedObject"]["name"], event["type"]) == ("train", "Warning")
    assert api.watched_s == [RETRY_S]


@pytest.mark.parametrize(
    "number", ["x", "", "-1", "1e3", "9" * 50, "2147483648", "\u0663", "1\n", "\x1b[31m\u202e"], ids=ascii
)
def test_an_invalid_number_is_reported_to_its_owner_and_does_not_stop_other_gangs(number: str) -> None:
    api = FakeApi([job(1, annotations={ANSWERED: number}), other(failed=1)])
    keeper(api).follow()
    assert api.groups() == ["u", "o"]
    assert [path for method, path, _ in api.calls if method == "PATCH"] == ["/apis/batch/v1/namespaces/nlp/jobs/other"]
    (event,) = api.events()
    assert f"kubectl annotate job train {ANSWERED}-" in event["message"]
    assert event["message"].isprintable()


_TEXT = st.text(max_size=40)
_ODD = st.one_of(
    st.none(), st.integers(), _TEXT, st.lists(_TEXT, max_size=2), st.dictionaries(_TEXT, _TEXT, max_size=2)
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from((ANSWERED, RESTARTING, WITHIN)), _TEXT), _ODD, st.integers(0, 3), st.data())
def test_nothing_in_a_job_can_stop_another_gang(
    annotations: dict[str, str], odd: Any, failed: int, data: st.DataObject
) -> None:
    """Including what the API would never accept: a field of another type, or a missing one."""
    bad = job(failed, annotations=annotations)
    place = data.draw(st.sampled_from(("none", "spec", "status", "template", "annotations")))
    if place in ("spec", "status"):
        bad[place] = odd
    elif place == "template":
        bad["spec"]["template"]["spec"]["schedulingGroup"] = odd
    elif place == "annotations":
        bad["metadata"]["annotations"] = odd
    api = FakeApi([bad, other()])
    keeper(api).follow()
    assert "o" in api.groups()


def test_the_same_problem_is_reported_once_and_a_new_one_again() -> None:
    api = FakeApi([job(1, annotations={ANSWERED: "x"})])
    kept = keeper(api)
    kept.follow()
    kept.follow()
    assert len(api.events()) == 1
    api.jobs = [job(1, annotations={ANSWERED: "y"})]
    kept.follow()
    assert len({each["metadata"]["name"] for each in api.events()}) == 2


@pytest.mark.parametrize("status", [403, 500])
def test_without_rights_or_room_for_events_gangs_are_still_handled(status: int) -> None:
    api = FakeApi([job(annotations={ANSWERED: "x"}), other()], lambda _, path, __: status if "/events" in path else 0)
    keeper(api).follow()
    assert api.groups() == ["u", "o"]


def test_an_api_that_does_not_authenticate_ends_the_round() -> None:
    with pytest.raises(ApiError):
        keeper(FakeApi([job()], lambda *request: 401)).follow()


@pytest.mark.parametrize("status", [404, 422, 403])
def test_a_pod_group_that_was_not_created_is_requested_again(status: int) -> None:
    api = FakeApi([job()], only("POST", "podgroups", status))
    kept = keeper(api)
    kept.follow()
    api.refuse = lambda *request: 0
    kept.follow()
    assert api.groups() == ["u", "u"]
    kept.follow()
    assert api.groups() == ["u", "u"]


def test_an_existing_pod_group_is_accepted() -> None:
    api = FakeApi([job()], only("POST", "podgroups", 409))
    api.refuse = lambda method, path, _: 409 if method == "POST" else 0
    kept = keeper(api)
    kept.follow()
    kept.follow()
    assert api.groups() == ["u"]


@pytest.mark.parametrize("about", [{"deletionTimestamp": "now"}, {"ownerReferences": [{"uid": "an earlier one"}]}])
def test_the_pod_group_of_an_earlier_job_of_that_name_is_not_used(about: dict[str, Any]) -> None:
    api = FakeApi([job()], lambda method, path, _: 409 if path.endswith("podgroups") else 0)
    api.group = {"metadata": {"name": "train", **about}}
    kept = keeper(api)
    kept.follow()
    api.refuse = lambda *request: 0
    kept.follow()
    assert api.groups() == ["u", "u"]


def test_a_cluster_without_gangs_has_no_objects_for_them(lab: Any) -> None:
    assert gangs.objects(lab) == ()
    assert "feature-gates" not in kube_apiserver.flags(lab, plan(lab))
    assert "gangs.service" not in [unit.name for unit in units.units(lab, plan(lab))]


def test_feature_gates_depend_on_the_release(build: Any) -> None:
    cluster = build({"scheduling": {"gangs": True}})
    api = kube_apiserver.flags(cluster, plan(cluster))
    assert api["runtime-config"] == f"admissionregistration.k8s.io/v1beta1=true,{ALPHA}=true"
    assert "GangScheduling=true" in scheduler.flags(cluster, "/c", "/k")["feature-gates"]
    assert "WorkloadAwarePreemption=true" in scheduler.flags(cluster, "/c", "/k")["feature-gates"]
    assert (
        controller_manager.flags(cluster)["feature-gates"] == "RotateKubeletServerCertificate=true,GenericWorkload=true"
    )
    assert "GangScheduling" not in words.gates("1.37.1", "kube-scheduler")
    assert words.pod_group("1.37.1", "x", 2)["apiVersion"] == "scheduling.k8s.io/v1beta1"


def test_a_flag_that_is_not_a_list_may_occur_only_once(build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = build({"scheduling": {"gangs": True}})
    monkeypatch.setattr(kube_apiserver.gangs, "flags", lambda *_: {"profiling": "true"})
    with pytest.raises(ValueError, match="profiling is false and true"):
        kube_apiserver.flags(cluster, plan(cluster))


def test_a_release_before_pod_groups_has_no_gangs() -> None:
    with pytest.raises(KeyError):
        words.pod_group("1.35.4", "x", 2)


def test_the_program_may_only_read_and_change_jobs_and_create_groups(build: Any) -> None:
    role, binding, *_ = gangs.objects(build({"scheduling": {"gangs": True}}))
    assert role["rules"] == [
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list", "patch", "watch"]},
        {"apiGroups": ["scheduling.k8s.io"], "resources": ["podgroups"], "verbs": ["create", "get"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
    ]
    assert binding["subjects"][0]["name"] == gangs.USER
    assert "*" not in json.dumps(role)
