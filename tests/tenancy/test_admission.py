"""Whose hosts a pod may use, on a real API server: people with their own tokens, and their attempts to get more."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cluster.allocations import BORROWED, TEAM_KEY
from cluster.spec import Cluster
from tests.tenancy import hosts
from tests.tenancy.real import Server, serving
from tests.tenancy.test_plan import roster
from tests.tenancy.test_real_api import makes
from tests.waiting import until

pytestmark = pytest.mark.xdist_group("tenancy_admission")

ALL = roster("ana bo cleo dan", robotics="ana* bo", vision="cleo* ana")
CREATED, OK, FORBIDDEN, INVALID = 201, 200, 403, 422
OWN = {"key": TEAM_KEY, "operator": "Equal", "value": "robotics", "effect": "NoSchedule"}
OTHERS = {**OWN, "value": "vision"}
ANY = {"key": TEAM_KEY, "operator": "Exists", "effect": "NoSchedule"}
EVERYTHING = {"operator": "Exists"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, build: Callable[..., Cluster]) -> Iterator[Server]:
    """An API server with four people, two teams, and hosts of these teams."""
    with serving(tmp_path_factory.mktemp("admission")) as server_:
        cluster = hosts.of_pools(build, {"workers": 2}, ("workers", "robotics", 1), ("workers", "vision", 1))
        assert cluster.spec.tenancy
        server_.sync(ALL, cluster.spec.tenancy)
        hosts.join(server_, "workers-0", "workers-1")
        _, applied = hosts.converge(server_, cluster)
        assert applied.failed == ()
        for id in ALL.active:
            for space in (f"user-{id}", *(f"team-{team}" for team in ALL.teams_of(id))):
                until(lambda id=id, space=space: makes(server_, id, space))
        # Policies take effect a moment after their creation, validating and mutating ones independently.
        for body in (pod(OTHERS), pod(priorityClassName=BORROWED)):
            until(lambda body=body: _in_force(server_, body))
        for space in ("team-robotics", "user-bo"):
            until(lambda space=space: bool(given(server_, "bo", space, pod())))
        yield server_


def _in_force(server: Server, body: dict[str, Any]) -> bool:
    status = server.as_("bo", "POST", "/api/v1/namespaces/team-robotics/pods?dryRun=All", body)
    return status == INVALID or status == FORBIDDEN or '"operator":"Exists","effect":"NoSchedule"' in server.said


def pod(*tolerations: dict[str, Any], name: str = "p", **spec: Any) -> dict[str, Any]:
    given = {"tolerations": list(tolerations)} if tolerations else {}
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "none"}], **given, **spec}}


def tried(server: Server, person: str, namespace: str, body: dict[str, Any]) -> tuple[int, str]:
    """Return the API's answer to a dry run of a pod."""
    status = server.as_(person, "POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", body)
    return status, json.loads(server.said).get("message", "")


def given(server: Server, person: str, namespace: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the team tolerations that a pod finally has."""
    status = server.as_(person, "POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", body)
    assert status == CREATED, server.said
    tolerations = json.loads(server.said)["spec"]["tolerations"]
    # To a policy, labels are a Go map: their order varies.
    return sorted(
        (each for each in tolerations if each.get("key", TEAM_KEY) == TEAM_KEY), key=lambda each: each.get("value", "")
    )


def test_a_pod_gets_the_toleration_of_its_team(server: Server) -> None:
    assert given(server, "bo", "team-robotics", pod()) == [OWN]
    assert given(server, "cleo", "team-vision", pod()) == [OTHERS]
    assert given(server, "bo", "team-robotics", pod(OWN)) == [OWN]


def test_a_persons_pods_may_use_the_hosts_of_all_their_teams_or_of_the_named_one(server: Server) -> None:
    assert given(server, "bo", "user-bo", pod()) == [OWN]
    assert given(server, "ana", "user-ana", pod()) == [OWN, OTHERS]
    assert given(server, "ana", "user-ana", pod(OTHERS)) == [OTHERS]
    assert given(server, "dan", "user-dan", pod()) == []


def test_a_borrowing_pod_may_use_any_teams_hosts_and_has_time_to_end(server: Server) -> None:
    for body in (pod(priorityClassName=BORROWED), pod(ANY, priorityClassName=BORROWED)):
        assert given(server, "dan", "user-dan", body) == [ANY]
    status = server.as_("dan", "POST", "/api/v1/namespaces/user-dan/pods?dryRun=All", pod(priorityClassName=BORROWED))
    spec = json.loads(server.said)["spec"]
    assert (status, spec["terminationGracePeriodSeconds"], spec["priority"]) == (CREATED, 120, -1_000_000)
    assert spec["preemptionPolicy"] == "Never"


REFUSED = {
    "another team's": (pod(OTHERS), "it tolerates openai.com/team=vision, but namespace team-robotics belongs to robotics"),
    "another team's with its own": (pod(OWN, OTHERS), "it tolerates openai.com/team=vision"),
    "another team's without an effect": (pod({**OTHERS, "effect": ""}), "it tolerates openai.com/team=vision"),
    "another team's without an operator": (
        pod({key: value for key, value in OTHERS.items() if key != "operator"}), "it tolerates openai.com/team=vision",
    ),
    "nobody's": (pod({**OTHERS, "value": ""}), "it tolerates openai.com/team="),
    "any team's": (pod(ANY), "set priorityClassName: menagerie-borrowed"),
    "any team's without an effect": (pod({**ANY, "effect": ""}), "set priorityClassName: menagerie-borrowed"),
    "everything": (pod(EVERYTHING), "it tolerates every taint (operator Exists without a key)"),
    "everything while it borrows": (pod(EVERYTHING, priorityClassName=BORROWED), "it tolerates every taint"),
    "every NoSchedule": (pod({**EVERYTHING, "effect": "NoSchedule"}), "it tolerates every taint"),
    "a node by its name": (pod(nodeName="workers-1"), "it sets nodeName, which bypasses taints"),
    "borrowing for longer": (
        pod(priorityClassName=BORROWED, terminationGracePeriodSeconds=601), "must be at least 120 s and at most 600 s (tenancy.borrowing.most)",
    ),
    "another's while it borrows": (pod(OTHERS, priorityClassName=BORROWED), "it tolerates openai.com/team=vision"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_a_pod_is_refused_with_the_way_out(server: Server, what: str) -> None:
    body, expected = REFUSED[what]
    status, message = tried(server, "bo", "team-robotics", body)
    assert (status, expected in message) == (FORBIDDEN, True), message


def test_a_class_that_is_not_the_borrowers_gives_no_right_to_borrow(server: Server) -> None:
    mine = {"metadata": {"name": "cheap"}, "value": -1_000_000}
    assert server.as_("bo", "POST", "/apis/scheduling.k8s.io/v1/priorityclasses", mine) == FORBIDDEN
    server.real.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", mine)
    # The priority admission plugin learns of a class a moment after its creation.
    until(lambda: "no PriorityClass" not in tried(server, "bo", "team-robotics", pod(priorityClassName="cheap"))[1])
    status, message = tried(server, "bo", "team-robotics", pod(ANY, priorityClassName="cheap"))
    assert (status, "set priorityClassName: menagerie-borrowed" in message) == (FORBIDDEN, True), message
    # Only the value, without the class.
    status, _ = tried(server, "bo", "team-robotics", pod(ANY, priority=-1_000_000))
    assert status == FORBIDDEN
    status, _ = tried(server, "bo", "team-robotics", pod(ANY, priorityClassName=BORROWED, priority=1000))
    assert status == FORBIDDEN


def test_unrelated_tolerations_are_accepted(server: Server) -> None:
    for each in ({"operator": "Exists", "effect": "NoExecute"}, {"key": "nvidia.com/gpu", "operator": "Exists"}):
        assert tried(server, "bo", "team-robotics", pod(each))[0] == CREATED


def test_tolerations_cannot_be_added_later(server: Server) -> None:
    path = "/api/v1/namespaces/team-robotics/pods"
    assert server.as_("bo", "POST", path, pod(name="later")) == CREATED
    spec = json.loads(server.said)["spec"]["tolerations"]
    for each in (OTHERS, ANY, EVERYTHING):
        status = server.as_("bo", "PATCH", f"{path}/later", {"spec": {"tolerations": [*spec, each]}})
        assert (status, "it tolerates" in server.said) == (FORBIDDEN, True), server.said
    assert server.as_("bo", "PATCH", f"{path}/later", {"metadata": {"labels": {"a": "b"}}}) == OK
    status = server.as_("bo", "PATCH", f"{path}/later", {"spec": {"priorityClassName": BORROWED}})
    assert status == INVALID


TEMPLATES = {
    "deployments": ("apps", lambda pod: {"replicas": 1, "selector": {"matchLabels": {"app": "w"}}, "template": pod}),
    "statefulsets": (
        "apps",
        lambda pod: {"selector": {"matchLabels": {"app": "w"}}, "template": pod, "serviceName": "s"},
    ),
    "daemonsets": ("apps", lambda pod: {"selector": {"matchLabels": {"app": "w"}}, "template": pod}),
    "replicasets": ("apps", lambda pod: {"selector": {"matchLabels": {"app": "w"}}, "template": pod}),
    "jobs": ("batch", lambda pod: {"template": pod}),
    "cronjobs": ("batch", lambda pod: {"schedule": "@daily", "jobTemplate": {"spec": {"template": pod}}}),
}


def template(kind: str, *tolerations: dict[str, Any], **spec: Any) -> tuple[str, dict[str, Any]]:
    group, made = TEMPLATES[kind]
    inner = pod(*tolerations, **({"restartPolicy": "Never"} if group == "batch" else {}), **spec)
    body = {"metadata": {"name": "w"}, "spec": made({"metadata": {"labels": {"app": "w"}}, "spec": inner["spec"]})}
    return f"/apis/{group}/v1/namespaces/team-robotics/{kind}", body


@pytest.mark.parametrize("kind", TEMPLATES)
def test_a_template_is_refused_when_it_is_written(server: Server, kind: str) -> None:
    for each in (OTHERS, ANY, EVERYTHING):
        path, body = template(kind, each)
        status = server.as_("bo", "POST", f"{path}?dryRun=All", body)
        assert (status, "it tolerates" in server.said) == (FORBIDDEN, True), server.said
    for body in (template(kind)[1], template(kind, ANY, priorityClassName=BORROWED)[1]):
        assert server.as_("bo", "POST", f"{path}?dryRun=All", body) == CREATED, server.said


def pods_of(server: Server, name: str) -> list[dict[str, Any]]:
    """Return the pods that a controller created for the workload with this name."""
    items = server.get("/api/v1/namespaces/team-robotics/pods")["items"]
    return [each for each in items if each["metadata"]["name"].startswith(f"{name}-")]


def test_pods_of_controllers_get_the_toleration_of_their_namespaces_team(server: Server) -> None:
    path, body = template("deployments")
    body["metadata"]["name"] = "made"
    assert server.as_("bo", "POST", path, body) == CREATED
    until(lambda: bool(pods_of(server, "made")))
    (made,) = pods_of(server, "made")
    assert [each for each in made["spec"]["tolerations"] if each.get("key") == TEAM_KEY] == [OWN]
    assert server.as_("bo", "DELETE", f"{path}/made") == OK
    # There is no garbage collector here, and another controller would adopt the remaining objects.
    for kind in ("replicasets", "pods"):
        group = "/apis/apps/v1" if kind == "replicasets" else "/api/v1"
        server.real.call(
            "DELETE", f"{group}/namespaces/team-robotics/{kind}?labelSelector=app%3Dw", {"gracePeriodSeconds": 0}
        )


def test_a_controllers_pod_is_refused_although_its_template_predates_the_policy(server: Server) -> None:
    """The policy for pods is decisive: templates of unknown kinds are not checked."""
    binding = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/menagerie-team-templates"
    kept = server.get(binding)
    server.real.call("DELETE", binding)
    for kind in ("replicasets", "jobs"):
        path, body = template(kind, OTHERS)
        body["metadata"]["name"] = "before"
        until(lambda path=path, body=body: server.as_("bo", "POST", path, body) in (CREATED, 409))
    server.real.call(
        "POST",
        binding.rpartition("/")[0],
        {**kept, "metadata": {"name": kept["metadata"]["name"], "labels": kept["metadata"]["labels"]}},
    )

    def failed_kinds() -> set[str]:
        events = server.get("/api/v1/namespaces/team-robotics/events")["items"]
        return {
            each["involvedObject"]["kind"]
            for each in events
            if each["reason"] == "FailedCreate" and "it tolerates openai.com/team=vision" in each["message"]
        }

    until(lambda: failed_kinds() == {"ReplicaSet", "Job"}, seconds=180)
    assert pods_of(server, "before") == []
    # Existing workloads can still be scaled and deleted.
    until(
        lambda: (
            server.as_("bo", "POST", f"{template('replicasets')[0]}?dryRun=All", template("replicasets", OTHERS)[1])
            == FORBIDDEN
        )
    )
    path = template("replicasets")[0]
    assert server.as_("bo", "PATCH", f"{path}/before", {"spec": {"replicas": 0}}) == OK, server.said
    assert server.as_("bo", "DELETE", f"{path}/before") == OK
    assert server.as_("bo", "DELETE", f"{template('jobs')[0]}/before?propagationPolicy=Background") == OK


def test_nobody_can_change_what_the_policies_depend_on(server: Server) -> None:
    own = "/api/v1/namespaces/team-robotics"
    admission = "/apis/admissionregistration.k8s.io/v1"
    binding = {"metadata": {"name": "p"}, "target": {"apiVersion": "v1", "kind": "Node", "name": "workers-1"}}
    tries = {
        "relabel the namespace": ("PATCH", own, {"metadata": {"labels": {"menagerie.dev/team": "vision"}}}),
        "join a team": ("PATCH", "/api/v1/namespaces/user-bo", {"metadata": {"labels": {"teams.menagerie.dev/vision": "true"}}}),
        "become a system namespace": ("PATCH", own, {"metadata": {"labels": {"menagerie.dev/system": "true"}}}),
        "replace the namespace": ("PUT", own, {"metadata": {"name": "team-robotics"}}),
        "finalize the namespace": ("PUT", f"{own}/finalize", {"metadata": {"name": "team-robotics"}}),
        "bind a pod": ("POST", f"{own}/pods/p/binding", binding),
        "bind pods": ("POST", f"{own}/bindings", binding),
        "create system pods": ("POST", "/api/v1/namespaces/kube-system/pods", pod(EVERYTHING)),
        "create pods of another team": ("POST", "/api/v1/namespaces/team-vision/pods", pod()),
        "label a host": ("PATCH", "/api/v1/nodes/workers-1", {"metadata": {"labels": {TEAM_KEY: "robotics"}}}),
        "untaint a host": ("PATCH", "/api/v1/nodes/workers-1", {"spec": {"taints": []}}),
        "delete a policy": ("DELETE", f"{admission}/validatingadmissionpolicies/menagerie-team-pods", None),
        "delete a binding": ("DELETE", f"{admission}/validatingadmissionpolicybindings/menagerie-team-pods", None),
        "delete a mutating policy": ("DELETE", f"{admission}/mutatingadmissionpolicies/menagerie-team-tolerations", None),
        "create a class": ("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "x"}, "value": 9}),
        "change a class": ("PATCH", f"/apis/scheduling.k8s.io/v1/priorityclasses/{BORROWED}", {"value": 9}),
    }  # fmt: skip
    assert {what: server.as_("bo", *each) for what, each in tries.items()} == dict.fromkeys(tries, FORBIDDEN)


def test_a_service_account_of_another_namespace_gets_the_target_namespaces_team(server: Server) -> None:
    """The team that admits it gives it its hosts; the account can't bring its own team's hosts along."""
    account = "/api/v1/namespaces/team-robotics/serviceaccounts"
    assert server.as_("bo", "POST", account, {"metadata": {"name": "bot"}}) == CREATED
    status = server.as_("bo", "POST", f"{account}/bot/token", {"spec": {}})
    assert status == CREATED, server.said
    token = json.loads(server.said)["status"]["token"]
    bearer = {"Authorization": f"Bearer {token}"}
    vision = "/api/v1/namespaces/team-vision/pods?dryRun=All"
    assert server.as_("bot", "POST", vision, pod(), **bearer) == FORBIDDEN
    rights = {
        "metadata": {"name": "bot"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "ServiceAccount", "name": "bot", "namespace": "team-robotics"}],
    }
    bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/team-vision/rolebindings"
    assert server.as_("cleo", "POST", bindings, rights) == CREATED
    until(lambda: server.as_("bot", "POST", vision, pod(), **bearer) == CREATED)
    tolerated = [each for each in json.loads(server.said)["spec"]["tolerations"] if each.get("key") == TEAM_KEY]
    assert tolerated == [OTHERS]
    assert server.as_("bot", "POST", vision, pod(OWN), **bearer) == FORBIDDEN


def test_ephemeral_containers_change_nothing_about_hosts(server: Server) -> None:
    path = "/api/v1/namespaces/team-robotics/pods"
    assert server.as_("bo", "POST", path, pod(name="looked-into")) == CREATED
    body = {"spec": {"ephemeralContainers": [{"name": "e", "image": "none"}], "tolerations": [EVERYTHING]}}
    server.as_("bo", "PATCH", f"{path}/looked-into/ephemeralcontainers", body)
    tolerations = server.get(f"{path}/looked-into")["spec"]["tolerations"]
    assert [each for each in tolerations if each.get("key", TEAM_KEY) == TEAM_KEY] == [OWN]


def test_a_borrowing_pod_cannot_make_the_owner_wait_with_a_long_grace_period(server: Server) -> None:
    path = "/api/v1/namespaces/team-robotics/pods"
    assert server.as_("bo", "POST", path, pod(name="slow", priorityClassName=BORROWED)) == CREATED
    server.real.call(
        "POST", f"{path}/slow/binding", {"metadata": {"name": "slow"}, "target": {"kind": "Node", "name": "workers-1"}}
    )
    long = {"gracePeriodSeconds": 1_000_000}
    assert server.as_("bo", "DELETE", f"{path}/slow", long) == FORBIDDEN
    assert "the grace period of a borrowing pod must be at most 600 s" in server.said
    assert server.as_("bo", "DELETE", f"{path}?labelSelector=", long) == FORBIDDEN
    eviction = {"metadata": {"name": "slow"}, "deleteOptions": long}
    assert server.as_("bo", "POST", f"{path}/slow/eviction", eviction) == FORBIDDEN
    assert "the grace period of an eviction must be at most 600 s" in server.said
    assert server.as_("bo", "DELETE", f"{path}/slow", {"gracePeriodSeconds": 300}) == OK, server.said
    assert server.real.call("DELETE", f"{path}/slow", {"gracePeriodSeconds": 0})[0] == OK


def test_the_system_is_never_locked_out(server: Server) -> None:
    """DNS runs on any host, and administrators can work from kube-system and delete a harmful policy."""
    answer = server.real.call("POST", "/api/v1/namespaces/kube-system/pods?dryRun=All", pod())
    assert (answer[0], [each for each in answer[1]["spec"]["tolerations"] if each.get("key") == TEAM_KEY]) == (
        CREATED,
        [ANY],
    )
    body = pod(EVERYTHING, nodeName="workers-1")
    assert server.real.call("POST", "/api/v1/namespaces/kube-system/pods?dryRun=All", body)[0] == CREATED
    assert server.real.call("POST", "/api/v1/namespaces/default/pods?dryRun=All", body)[0] == FORBIDDEN
    space = {"metadata": {"name": "monitoring", "labels": {"menagerie.dev/system": "true"}}}
    server.real.call("POST", "/api/v1/namespaces", space)
    until(lambda: server.real.call("POST", "/api/v1/namespaces/monitoring/pods?dryRun=All", body)[0] == CREATED)
    policy = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/menagerie-team-pods?dryRun=All"
    assert server.real.call("DELETE", policy)[0] == OK
