"""Who may use the highest priorities, on a real API server: people with rights in one namespace, without `tenancy sync --hosts`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from cluster.allocations import SYSTEM_LABEL, SYSTEM_NAMESPACES
from components.control_plane import admission
from components.control_plane.objects import Object, applied
from components.scheduling import priorities
from tests.tenancy.real import Server
from tests.tenancy.test_real_api import ALL, bound, synced
from tests.waiting import until

pytestmark = pytest.mark.xdist_group("tenancy")

CREATED, OK, FORBIDDEN = 201, 200, 403
CLASSES = ("system-node-critical", "system-cluster-critical")
PODS = "/api/v1/namespaces/{}/pods"


@pytest.fixture
def guarded(server: Server) -> Iterator[Server]:
    """The API server with the objects that API servers apply when they boot."""
    things: tuple[Object, ...] = (*priorities.objects(), *admission.priorities())
    for thing in things:
        assert server.real.apply(applied(thing)) in ((CREATED, ""), (OK, ""))
    synced(server)
    until(lambda: tried(server, "user-bo", pod(CLASSES[0]))[0] == FORBIDDEN)
    until(lambda: server.real.call("POST", *deployment("user-bo", CLASSES[0]))[0] == FORBIDDEN)
    yield server
    for thing in things:
        server.real.call("DELETE", applied(thing)["path"])


def pod(name: str = "", **spec: Any) -> dict[str, Any]:
    named = {"priorityClassName": name} if name else {}
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "none"}], **named, **spec}}


def tried(server: Server, namespace: str, body: dict[str, Any], who: str = "bo") -> tuple[int, str]:
    status = server.as_(who, "POST", f"{PODS.format(namespace)}?dryRun=All", body)
    return status, json.loads(server.said).get("message", "")


def deployment(namespace: str, name: str) -> tuple[str, dict[str, Any]]:
    labels = {"app": "w"}
    template = {"metadata": {"labels": labels}, "spec": pod(name)["spec"]}
    body = {
        "metadata": {"name": "w"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }
    return f"/apis/apps/v1/namespaces/{namespace}/deployments?dryRun=All", body


def job(namespace: str, name: str) -> tuple[str, dict[str, Any]]:
    spec = {**pod(name)["spec"], "restartPolicy": "Never"}
    body = {"metadata": {"name": "w"}, "spec": {"template": {"spec": spec}}}
    return f"/apis/batch/v1/namespaces/{namespace}/jobs?dryRun=All", body


def cron_job(namespace: str, name: str) -> tuple[str, dict[str, Any]]:
    inner = job(namespace, name)[1]["spec"]
    body = {"metadata": {"name": "w"}, "spec": {"schedule": "@daily", "jobTemplate": {"spec": inner}}}
    return f"/apis/batch/v1/namespaces/{namespace}/cronjobs?dryRun=All", body


@pytest.mark.parametrize("name", CLASSES)
def test_nobody_can_preempt_the_system_from_their_namespace(guarded: Server, name: str) -> None:
    for namespace in ("user-bo", "team-robotics"):
        status, message = tried(guarded, namespace, pod(name))
        assert (status, "system-* priority classes are for namespaces of the system" in message) == (FORBIDDEN, True), (
            message
        )
        for workload in (deployment, job, cron_job):
            assert guarded.as_("bo", "POST", *workload(namespace, name)) == FORBIDDEN, guarded.said
        for fine in ("", "services", "normal", "low"):
            assert tried(guarded, namespace, pod(fine))[0] == CREATED
            for workload in (deployment, job, cron_job):
                assert guarded.as_("bo", "POST", *workload(namespace, fine)) == CREATED, guarded.said


def test_an_explicit_priority_is_no_way_around_it(guarded: Server) -> None:
    for priority in (2_000_001_000, 1_000_000_001):
        assert tried(guarded, "user-bo", pod(priority=priority))[0] == FORBIDDEN
        assert tried(guarded, "user-bo", pod("services", priority=priority))[0] == FORBIDDEN


def test_an_administrator_is_also_refused_in_a_namespace_of_people(guarded: Server) -> None:
    """A controller creates pods, and may have more rights than the author of the template."""
    assert guarded.real.call("POST", f"{PODS.format('default')}?dryRun=All", pod(CLASSES[0]))[0] == FORBIDDEN


def test_pods_from_an_older_template_are_refused(guarded: Server) -> None:
    """The policy for templates is removed, as if the template had been written before it."""
    binding = f"/apis/{admission.ADMISSION}/v1/validatingadmissionpolicybindings/{admission.TEMPLATES}"
    guarded.real.call("DELETE", binding)
    path, body = deployment("user-bo", CLASSES[0])
    path = path.partition("?")[0]
    until(lambda: guarded.as_("bo", "POST", path, body) == CREATED)

    def refusals() -> list[str]:
        events = guarded.get("/api/v1/namespaces/user-bo/events")["items"]
        return [each["message"] for each in events if each["reason"] == "FailedCreate"]

    until(lambda: any("system-* priority classes" in each for each in refusals()))
    assert guarded.get(PODS.format("user-bo"))["items"] == []
    # Existing workloads can be scaled and deleted.
    assert guarded.as_("bo", "PATCH", f"{path}/w", {"spec": {"replicas": 0}}) == OK, guarded.said
    assert guarded.as_("bo", "DELETE", f"{path}/w") == OK


def _runs(server: Server, namespace: str) -> bool:
    path = f"{PODS.format(namespace)}?dryRun=All"
    return bool(server.real.call("POST", path, pod(CLASSES[0]))[0] == CREATED)


def test_the_system_has_its_classes_wherever_it_runs(guarded: Server) -> None:
    spaces = {each["metadata"]["name"] for each in guarded.get("/api/v1/namespaces")["items"]}
    own = {"metadata": {"name": "monitoring", "labels": {SYSTEM_LABEL: "true"}}}
    assert guarded.real.call("POST", "/api/v1/namespaces", own)[0] == CREATED
    for name in ("monitoring", *SYSTEM_NAMESPACES):
        if name not in {*spaces, "monitoring"}:
            guarded.real.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        until(partial(_runs, guarded, name))
        assert guarded.real.call("POST", *deployment(name, CLASSES[1]))[0] == CREATED
    for name in {"monitoring", *SYSTEM_NAMESPACES} - spaces:
        guarded.real.call("DELETE", f"/api/v1/namespaces/{name}")


def test_nobody_can_make_a_namespace_a_system_one(guarded: Server) -> None:
    own = {"metadata": {"labels": {SYSTEM_LABEL: "true"}}}
    assert guarded.as_("ana", "PATCH", "/api/v1/namespaces/team-robotics", own) == FORBIDDEN
    assert guarded.as_("ana", "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings", bound("x", "edit", "ana")) == FORBIDDEN  # fmt: skip
    assert "ana" in ALL.active
