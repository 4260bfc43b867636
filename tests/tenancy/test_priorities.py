"""Who goes before all others, on a real API server: people with rights in one namespace, and no `tenancy sync --hosts` applied."""

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
    """What API servers apply at their boot."""
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
def test_nobody_puts_the_system_out_from_a_namespace_of_their_own(guarded: Server, name: str) -> None:
    for namespace in ("user-bo", "team-robotics"):
        status, said = tried(guarded, namespace, pod(name))
        assert (status, "system-* priority classes are for namespaces of the system" in said) == (FORBIDDEN, True), said
        for made in (deployment, job, cron_job):
            assert guarded.as_("bo", "POST", *made(namespace, name)) == FORBIDDEN, guarded.said
        for fine in ("", "services", "normal", "low"):
            assert tried(guarded, namespace, pod(fine))[0] == CREATED
            for made in (deployment, job, cron_job):
                assert guarded.as_("bo", "POST", *made(namespace, fine)) == CREATED, guarded.said


def test_a_number_of_ones_own_is_no_way_round(guarded: Server) -> None:
    for priority in (2_000_001_000, 1_000_000_001):
        assert tried(guarded, "user-bo", pod(priority=priority))[0] == FORBIDDEN
        assert tried(guarded, "user-bo", pod("services", priority=priority))[0] == FORBIDDEN


def test_an_administrator_is_refused_in_a_namespace_of_people_too(guarded: Server) -> None:
    """A controller makes pods, and may do more than who wrote the template."""
    assert guarded.real.call("POST", f"{PODS.format('default')}?dryRun=All", pod(CLASSES[0]))[0] == FORBIDDEN


def test_pods_that_a_controller_makes_of_an_older_template_are_refused(guarded: Server) -> None:
    """With the templates' policy out of the way, as it was when the template was written."""
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
    # What was there can be scaled and deleted, and takes no other class of the system's.
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


def test_nobody_makes_a_namespace_one_of_the_system(guarded: Server) -> None:
    own = {"metadata": {"labels": {SYSTEM_LABEL: "true"}}}
    assert guarded.as_("ana", "PATCH", "/api/v1/namespaces/team-robotics", own) == FORBIDDEN
    assert guarded.as_("ana", "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings", bound("x", "edit", "ana")) == FORBIDDEN  # fmt: skip
    assert "ana" in ALL.active
