"""Namespaces, rights and quotas on a real API server, tried with people's own tokens, including attempts to cheat."""

from __future__ import annotations

import pytest

from cluster.errors import FailedError
from cluster.tenancy import DirectorySource, Leavers, PeopleAllowance, TeamsAllowance, Tenancy
from controllers.tenancy.directory import directory_error
from controllers.tenancy.sync.objects import EDITORS, OWNER_ROLE
from controllers.tenancy.sync.run import Sync
from tests.tenancy.real import RBAC, Given, Server, cut_after
from tests.tenancy.test_plan import roster
from tests.waiting import until

pytestmark = pytest.mark.xdist_group("tenancy")

SETTINGS = Tenancy(
    directory=DirectorySource(file="people.yaml"),
    people=PeopleAllowance.model_validate({"quota": {"pods": 2}}),
    teams=TeamsAllowance.model_validate(
        {
            "quota": {"requests.nvidia.com/gpu": 64, "limits.memory": "2048Gi"},
            "limits": {"max": {"memory": "1Ti"}, "default": {"cpu": "1000m", "memory": "1Gi"}},
            "only": {"vision": {"quota": {"requests.nvidia.com/gpu": 8}, "pod_security": "restricted"}},
        }
    ),
)
STOPPING = SETTINGS.model_copy(update={"leavers": Leavers.STOP})
ALL = roster("ana bo cleo", robotics="ana* bo", vision="cleo*")
CREATED, OK, FORBIDDEN = 201, 200, 403


def config(name: str = "c") -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def pod(name: str, **security: object) -> dict[str, object]:
    container = {"name": "c", "image": "none", "securityContext": security}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


def bound(name: str, role: str, user: str, kind: str = "ClusterRole") -> dict[str, object]:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": kind, "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }


def makes(server: Server, person: str, namespace: str, name: str = "c") -> bool:
    """Whether a person may create objects in a namespace, by a dry run."""
    path = f"/api/v1/namespaces/{namespace}/configmaps?dryRun=All"
    return server.as_(person, "POST", path, config(name)) == CREATED


def synced(server: Server, who=ALL, settings: Tenancy = SETTINGS) -> None:
    """Sync, and wait until the API server knows all rights; it learns of bindings a moment later."""
    _, applied = server.sync(who, settings)
    assert applied.failed == ()
    for id in who.active:
        for space in (f"user-{id}", *(f"team-{team}" for team in who.teams_of(id))):
            until(lambda id=id, space=space: makes(server, id, space))


def test_after_a_sync_a_second_one_changes_nothing(server: Server) -> None:
    for who, settings in ((ALL, SETTINGS), (roster("ana bo", robotics="ana"), STOPPING), (ALL, Tenancy(directory=SETTINGS.directory)), (ALL, SETTINGS)):  # fmt: skip
        review, applied = server.sync(who, settings)
        assert (applied.failed, len(applied.changes)) == ((), len(review.plan.changes))
        assert review.plan.changes
        before = server.versions()
        again, _ = server.sync(who, settings)
        assert again.plan.changes == ()
        assert server.versions() == before


def test_people_edit_their_own_and_their_teams_namespaces_and_no_other(server: Server) -> None:
    synced(server)
    can = {
        (id, space)
        for id in ("ana", "bo", "cleo", "dan")
        for space in ("user-ana", "user-bo", "user-cleo", "team-robotics", "team-vision", "default", "kube-system")
        if makes(server, id, space)
    }
    own = {("ana", "user-ana"), ("bo", "user-bo"), ("cleo", "user-cleo")}
    assert can == own | {("ana", "team-robotics"), ("bo", "team-robotics"), ("cleo", "team-vision")}


def test_nobody_reaches_beyond_their_namespaces(server: Server) -> None:
    synced(server)
    own, others = "/api/v1/namespaces/user-ana", "/api/v1/namespaces/user-bo"
    labels = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}
    quota = {"spec": {"hard": {"pods": "1000"}}}
    role = f"{RBAC}/namespaces/user-ana"
    tries = {
        "read another's secrets": ("GET", f"{others}/secrets", None),
        "create pods in another's namespace": ("POST", f"{others}/pods", pod("p")),
        "relabel one's namespace": ("PATCH", own, labels),
        "raise one's quota": ("PATCH", f"{own}/resourcequotas/menagerie", quota),
        "delete one's quota": ("DELETE", f"{own}/resourcequotas/menagerie", None),
        "delete one's limits": ("DELETE", f"{own}/limitranges/menagerie", None),
        "delete one's namespace": ("DELETE", own, None),
        "create a namespace": ("POST", "/api/v1/namespaces", {"metadata": {"name": "team-mine"}}),
        "bind oneself": ("POST", f"{role}/rolebindings", bound("mine", "admin", "ana")),
        "create a role": ("POST", f"{role}/roles", {"metadata": {"name": "r"}, "rules": []}),
        "bind oneself in the whole cluster": (
            "POST", f"{RBAC}/clusterrolebindings", {**bound("mine", "cluster-admin", "ana"), "kind": "ClusterRoleBinding"},
        ),
        "change the role of owners": ("PATCH", f"{RBAC}/clusterroles/{OWNER_ROLE}", {"rules": []}),
        "list nodes": ("GET", "/api/v1/nodes", None),
        "make the directory forget": ("DELETE", "/api/v1/namespaces/kube-system/configmaps/menagerie-tenancy", None),
    }  # fmt: skip
    statuses = {what: server.as_("ana", *request) for what, request in tries.items()}
    assert statuses == dict.fromkeys(tries, FORBIDDEN)
    posing = server.as_("ana", "GET", f"{others}/configmaps", Impersonate_User="bo")
    assert (posing, "impersonate" in server.said) == (FORBIDDEN, True), server.said


def test_owners_share_their_rights_and_cannot_grant_more(server: Server) -> None:
    synced(server)
    bindings = f"{RBAC}/namespaces/team-robotics/rolebindings"
    assert server.as_("bo", "POST", bindings, bound("guest", "edit", "dan")) == FORBIDDEN
    assert (
        server.as_("ana", "POST", f"{RBAC}/namespaces/team-vision/rolebindings", bound("g", "edit", "dan")) == FORBIDDEN
    )
    for role in ("cluster-admin", "admin", "system:node"):
        assert server.as_("ana", "POST", bindings, bound(f"more-{role[:5]}", role, "ana")) == FORBIDDEN
        assert "attempting to grant RBAC permissions not currently held" in server.said
    assert server.as_("ana", "POST", bindings, bound("guest", "edit", "dan")) == CREATED
    until(lambda: makes(server, "dan", "team-robotics"))
    review, _ = server.sync(ALL, SETTINGS)
    assert (review.plan.changes, makes(server, "dan", "team-robotics")) == ((), True)


def test_an_owners_changes_to_our_bindings_are_undone(server: Server) -> None:
    synced(server)
    path = f"{RBAC}/namespaces/team-robotics/rolebindings"
    bo = {"subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "dan"}]}
    assert server.as_("ana", "PATCH", f"{path}/{EDITORS}", bo) == OK
    until(lambda: makes(server, "dan", "team-robotics"))
    (change,) = server.sync(ALL, SETTINGS)[0].plan.changes
    assert change.reason == "subjects is [dan], not [ana, bo]"
    until(lambda: makes(server, "bo", "team-robotics") and not makes(server, "dan", "team-robotics"))

    assert server.as_("ana", "DELETE", f"{path}/{EDITORS}") == OK
    until(lambda: not makes(server, "bo", "team-robotics"))
    answer = server.real.call("POST", path, bound(EDITORS, "view", "dan"))
    assert answer[0] == CREATED
    (change,) = server.sync(ALL, SETTINGS)[0].plan.changes
    assert (change.verb, "roleRef is view, not edit" in change.reason) == ("rebind", True)
    until(lambda: makes(server, "bo", "team-robotics"))
    assert server.sync(ALL, SETTINGS)[0].plan.changes == ()


@pytest.mark.parametrize(
    ("space", "who", "security", "status"),
    [
        ("user-ana", "ana", {}, CREATED),
        ("user-ana", "ana", {"privileged": True}, FORBIDDEN),
        ("team-vision", "cleo", {}, FORBIDDEN),
    ],
)
def test_pods_are_admitted_according_to_the_settings(
    server: Server, space: str, who: str, security: dict[str, object], status: int
) -> None:
    synced(server)
    path = f"/api/v1/namespaces/{space}/pods?dryRun=All"

    def counted() -> bool:
        """Whether the quota has been counted; before that, it admits nothing."""
        server.as_(who, "POST", path, pod("p", **security))
        return "status unknown" not in server.said

    until(counted)
    assert server.as_(who, "POST", path, pod("p", **security)) == status, server.said
    assert status == CREATED or "violates PodSecurity" in server.said


def test_a_quota_is_enforced_and_a_frozen_persons_pods_run_on(server: Server) -> None:
    synced(server)
    pods = "/api/v1/namespaces/user-cleo/pods"
    until(lambda: server.as_("cleo", "POST", pods, pod("one")) == CREATED)
    assert server.as_("cleo", "POST", pods, pod("two")) == CREATED
    assert (server.as_("cleo", "POST", pods, pod("three")), "exceeded quota" in server.said) == (FORBIDDEN, True)

    gone = roster("ana bo", robotics="ana* bo", vision="ana*")
    server.sync(gone, SETTINGS)
    until(lambda: not makes(server, "cleo", "user-cleo") and not makes(server, "cleo", "team-vision"))
    assert server.as_("cleo", "GET", pods) == FORBIDDEN
    names = [each["metadata"]["name"] for each in server.get(pods)["items"]]
    assert names == ["one", "two"]
    until(lambda: server.get("/api/v1/namespaces/user-cleo/resourcequotas/menagerie")["status"]["hard"]["pods"] == "0")
    status, answer = server.real.call("POST", pods, pod("by-an-operator"))
    assert (status, "exceeded quota" in answer["message"]) == (FORBIDDEN, True)
    assert server.sync(gone, SETTINGS)[0].plan.changes == ()

    synced(server)
    assert server.real.call("DELETE", f"{pods}/one", {"gracePeriodSeconds": 0})[0] == OK
    until(lambda: server.as_("cleo", "POST", pods, pod("three")) == CREATED)
    space = server.get("/api/v1/namespaces/user-cleo")["metadata"]
    assert "menagerie.dev/frozen" not in {**space["labels"], **space["annotations"]}


def test_workloads_are_stopped_if_the_settings_say_so_and_return(server: Server) -> None:
    synced(server, settings=STOPPING)
    base = "/apis/apps/v1/namespaces/team-vision/deployments"
    security = {"allowPrivilegeEscalation": False, "runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}}  # fmt: skip
    container = {"name": "c", "image": "none", "securityContext": security}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    serve = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "serve"}, "spec": spec}
    assert server.as_("cleo", "POST", base, serve) == CREATED
    job = {"template": {"spec": {"template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}}}
    cron = {"metadata": {"name": "nightly"}, "spec": {"schedule": "0 3 * * *", "jobTemplate": job["template"]}}
    crons = "/apis/batch/v1/namespaces/team-vision/cronjobs"
    assert server.as_("cleo", "POST", crons, cron) == CREATED
    pods = "/api/v1/namespaces/team-vision/pods"
    until(lambda: len(server.get(pods)["items"]) == 3)

    gone = roster("ana bo cleo", robotics="ana* bo")
    review, _ = server.sync(gone, STOPPING)
    assert {(change.verb, change.key[0]) for change in review.plan.changes if change.verb == "patch"} == {
        ("patch", "Deployment"),
        ("patch", "CronJob"),
    }
    until(lambda: not [each for each in server.get(pods)["items"] if "deletionTimestamp" not in each["metadata"]])
    assert server.get(f"{crons}/nightly")["spec"]["suspend"] is True
    assert server.sync(gone, STOPPING)[0].plan.changes == ()

    synced(server, settings=STOPPING)
    assert server.get(f"{base}/serve")["spec"]["replicas"] == 3
    assert server.get(f"{crons}/nightly")["spec"]["suspend"] is False
    until(lambda: len([each for each in server.get(pods)["items"] if "deletionTimestamp" not in each["metadata"]]) == 3)


def test_additions_of_others_stay_and_drift_in_our_fields_is_corrected(server: Server) -> None:
    synced(server)
    space, quota = "/api/v1/namespaces/team-robotics", "/api/v1/namespaces/team-robotics/resourcequotas/menagerie"
    merge = "application/merge-patch+json"
    labels = {"cost-centre": "7", "menagerie.dev/team": "vision", "menagerie.dev/tenant": None}
    server.real.call("PATCH", space, {"metadata": {"labels": labels}}, merge)
    server.real.call("PATCH", quota, {"spec": {"hard": {"services": "5", "limits.memory": "9Ti"}}}, merge)
    review, _ = server.sync(ALL, SETTINGS)
    reasons = {change.key[0]: change.reason for change in review.plan.changes}
    assert reasons == {
        "Namespace": "metadata.labels.menagerie.dev/tenant is missing, not team; "
        "metadata.labels.menagerie.dev/team is vision, not robotics",
        "ResourceQuota": "spec.hard.limits.memory is 9Ti, not 2048Gi",
    }
    now = server.get(space)["metadata"]["labels"]
    assert (now["cost-centre"], now["menagerie.dev/team"]) == ("7", "robotics")
    hard = server.get(quota)["spec"]["hard"]
    assert (hard["services"], hard["limits.memory"], hard["requests.nvidia.com/gpu"]) == ("5", "2Ti", "64")
    assert server.sync(ALL, SETTINGS)[0].plan.changes == ()


def test_a_sync_that_was_killed_anywhere_is_completed_by_the_next(server: Server) -> None:
    number = 0
    while not cut_after(number, Sync(server, Given(ALL), SETTINGS)):
        number += 3
    gone = roster("ana", robotics="ana*")
    number = 0
    while not cut_after(number, Sync(server, Given(gone), SETTINGS)):
        number += 1
    review, _ = server.sync(gone, SETTINGS)
    assert review.plan.changes == ()
    frozen = {each.name for each in review.state.spaces.values() if each.frozen}
    assert frozen == {"user-bo", "user-cleo", "team-vision"}


def test_a_refused_directory_changes_nothing(server: Server) -> None:
    server.sync(ALL, SETTINGS)
    before = server.versions()
    sync = Sync(server, Given(roster("ana", robotics="ana*")), SETTINGS)
    review = sync.look()
    assert [text.split(" are missing since ")[0] for text in review.refused] == [
        "2 of 3 people", "1 of 2 teams", "2 of 3 memberships",
    ]  # fmt: skip
    assert review.plan.changes == ()
    with pytest.raises(ValueError, match="never applied"):
        sync.apply(review)
    assert Sync(server, Given(roster("", "")), SETTINGS).look(accept_loss=True).refused
    with pytest.raises(FailedError, match="it does not answer"):
        Sync(server, Given(directory_error("ldaps://x", ["it does not answer"])), SETTINGS).look()
    assert server.versions() == before


def test_a_namespace_that_is_being_deleted_waits(server: Server) -> None:
    server.sync(ALL, SETTINGS)
    path = "/api/v1/namespaces/team-vision"
    held = {"metadata": {"name": "held", "finalizers": ["menagerie.dev/test"]}}
    server.real.call("POST", f"{path}/configmaps", held)
    server.real.call("DELETE", path)
    review, applied = server.sync(ALL, SETTINGS)
    assert (review.plan.conflicts, applied.failed) == (
        ("namespace team-vision of team vision is being deleted; when it is gone, the next run creates it again",), (),
    )  # fmt: skip
    server.real.call(
        "PATCH", f"{path}/configmaps/held", {"metadata": {"finalizers": None}}, "application/merge-patch+json"
    )
    until(lambda: server.real.call("GET", path)[0] == 404)
    synced(server)
