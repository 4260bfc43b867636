"""Tenancy's controllers in the lab: their image in its registry, people with certificates, a changing directory, a killed leader."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http import HTTPMethod
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.rest import Rest
from clients.waiting import wait_until
from cluster.allocations import TEAM_KEY
from cluster.load import load_cluster
from controllers.manifests import NAMESPACE
from operations.stack import access_to
from operations.verify.workload import CONTAINER_SECURITY, IMAGE
from sandbox.lab import plan
from tests.bench import on_lab
from tests.lab.people import Person
from tests.lab.support import Run, menagerie

pytestmark = [pytest.mark.lab, pytest.mark.timeout(2400)]

REPOSITORY = "menagerie/controllers"
PEOPLE = "people: {ana: {}, bo: {}, cleo: {}, dan: {}}\nteams: {robotics: {members: [ana, bo], owners: [ana]}}\n"
LEASES = "kube-system"
PODS = "/api/v1/namespaces/{}/pods"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture(scope="module")
def spec(lab: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The lab's own spec with people and teams; restores the lab afterwards."""
    allocations = [{"pool": "workers", "team": "robotics", "hosts": 1}]
    tenancy = {"directory": {"file": "people.yaml"}, "allocations": allocations}
    path = on_lab.changed(tmp_path_factory.mktemp("specs"), lambda spec: spec.update(tenancy=tenancy))
    path.with_name("people.yaml").write_text(PEOPLE)
    yield path
    clear(path)


@pytest.fixture(scope="module")
def api(spec: Path) -> client.ApiClient:
    return access_to(load_cluster(spec)).api()


@pytest.fixture(scope="module")
def image(spec: Path) -> str:
    """The image's name on nodes: the lab's registry is their mirror of docker.io."""
    pushed = menagerie("controllers", "image", "--push", f"{plan.REGISTRY}/{REPOSITORY}:lab", "--json")
    assert pushed.code == 0, pushed.err
    return f"docker.io/{REPOSITORY}@{pushed.json['digest']}"


def clear(spec: Path) -> None:
    """Remove controllers, tenants, teams' hosts and their policies."""
    assert menagerie("controllers", "remove", str(spec), "--yes").code == 0
    api = access_to(load_cluster(spec)).api()
    core = client.CoreV1Api(api)
    for item in core.list_namespace(label_selector="app.kubernetes.io/managed-by=menagerie-tenancy").items:
        core.delete_namespace(item.metadata.name)
    for node in core.list_node(label_selector=TEAM_KEY).items:
        taints = [item for item in node.spec.taints or () if item.key != TEAM_KEY]
        core.patch_node(
            node.metadata.name,
            {
                "metadata": {"labels": {TEAM_KEY: None}, "resourceVersion": node.metadata.resource_version},
                "spec": {"taints": [api.sanitize_for_serialization(item) for item in taints] or None},
            },
        )
    for path in (
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
        "/apis/admissionregistration.k8s.io/v1beta1/mutatingadmissionpolicybindings",
        "/apis/admissionregistration.k8s.io/v1beta1/mutatingadmissionpolicies",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    ):
        Rest(api).write(HTTPMethod.DELETE, f"{path}?labelSelector=app.kubernetes.io/managed-by=menagerie-tenancy")
    client.CoreV1Api(api).delete_namespaced_config_map("menagerie-tenancy", "kube-system")


def exists(api: client.ApiClient, name: str) -> bool:
    try:
        client.CoreV1Api(api).read_namespace(name)
    except ApiException as error:
        assert error.status == 404
        return False
    return True


def holder(api: client.ApiClient) -> str:
    lease = client.CoordinationV1Api(api).read_namespaced_lease("menagerie-tenancy-sync", LEASES)
    return str(lease.spec.holder_identity or "")


def shown(spec: Path) -> dict[str, Any]:
    status = menagerie("status", str(spec), "controllers", "--json")
    return {entry["controller"]: entry for entry in json.loads(status.out)["controllers"]}


def pods(core: client.CoreV1Api) -> list[client.V1Pod]:
    pods_: list[client.V1Pod] = core.list_namespaced_pod(NAMESPACE).items
    return pods_


def until(missing: Any, timeout_s: float = 300) -> None:
    wait_until(missing, timeout_s, lambda _: None, every_s=1)


def test_they_run_from_an_image_built_without_a_builder(spec: Path, api: client.ApiClient, image: str) -> None:
    applied = menagerie("controllers", "apply", str(spec), "--image", image, "--yes", timeout_s=900)
    assert applied.code == 0, applied.err
    again = menagerie("controllers", "apply", str(spec), "--dry-run", "--json")
    assert (again.code, again.json["changes"]) == (0, [])
    until(lambda: "" if exists(api, "team-robotics") and exists(api, "user-dan") else "no namespaces yet")
    until(lambda: "" if {entry["holder"] != "" for entry in shown(spec).values()} == {True} else "no leader yet")
    by_name = shown(spec)
    assert {name: (entry["ready"], entry["image"]) for name, entry in by_name.items()} == {
        "tenancy-sync": (2, image),
        "tenancy-capacity": (2, image),
    }
    hosts = [
        (entry.metadata.labels["app.kubernetes.io/name"], entry.spec.node_name) for entry in pods(client.CoreV1Api(api))
    ]
    assert len(set(hosts)) == 4
    until(lambda: "" if teams(api) == ["robotics"] else "no host is the team's yet")


def teams(api: client.ApiClient) -> list[str]:
    nodes = client.CoreV1Api(api).list_node(label_selector=TEAM_KEY).items
    return [node.metadata.labels[TEAM_KEY] for node in nodes]


def test_a_person_with_a_certificate_runs_pods_on_the_teams_hosts(
    spec: Path, api: client.ApiClient, image: str, tmp_path: Path
) -> None:
    ana = Person(api, "ana", tmp_path)
    core = client.CoreV1Api(api)
    # Only its namespace and the label of the wanted hosts decide where it runs.
    body = pod("trains", nodeSelector={TEAM_KEY: "robotics"})

    def created() -> str:
        status, message = ana.tries("POST", PODS.format("team-robotics"), body)
        return "" if status in (201, 409) else message

    until(created)
    until(lambda: "" if phase(core, "team-robotics", "trains") == "Running" else "it does not run")
    pod_ = core.read_namespaced_pod("trains", "team-robotics")
    assert core.read_node(pod_.spec.node_name).metadata.labels[TEAM_KEY] == "robotics"
    assert [toleration.value for toleration in pod_.spec.tolerations if toleration.key == TEAM_KEY] == ["robotics"]
    core.delete_namespaced_pod("trains", "team-robotics", grace_period_seconds=0)


def test_a_person_cannot_use_another_teams_hosts(spec: Path, api: client.ApiClient, image: str, tmp_path: Path) -> None:
    dan = Person(api, "dan", tmp_path)
    (node,) = client.CoreV1Api(api).list_node(label_selector=f"{TEAM_KEY}=robotics").items
    own, host = PODS.format("user-dan"), f"/api/v1/nodes/{node.metadata.name}"
    theirs = {"key": TEAM_KEY, "operator": "Equal", "value": "robotics", "effect": "NoSchedule"}
    admin = {
        "metadata": {"name": "mine"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "dan"}],
    }
    attempts = {
        "their toleration": (("POST", own, pod("p", tolerations=[theirs])), "it tolerates openai.com/team=robotics"),
        "every toleration": (("POST", own, pod("p", tolerations=[{"operator": "Exists"}])), "it tolerates every taint"),
        "their host by its name": (("POST", own, pod("p", nodeName=node.metadata.name)), "it sets nodeName"),
        "their namespace": (("POST", PODS.format("team-robotics"), pod("p")), 'User "dan" cannot create'),
        "no taint": (("PATCH", host, {"spec": {"taints": None}}), 'User "dan" cannot patch'),
        "another label": (("PATCH", host, {"metadata": {"labels": {TEAM_KEY: None}}}), 'User "dan" cannot patch'),
        "a role of his own": (("POST", f"{RBAC}/namespaces/user-dan/rolebindings", admin), 'User "dan" cannot create'),
    }
    assert dan.tries("POST", f"{own}?dryRun=All", pod("p")) == (201, "")
    for attempt, (request, expected) in attempts.items():
        status, message = dan.tries(*request)
        assert (status, expected in message) == (403, True), f"{attempt}: {status} {message}"
    status, message = dan.tries("POST", PODS.format("team-robotics"), pod("p"), Impersonate_User="ana")
    assert (status, "cannot impersonate" in message) == (403, True), message


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": IMAGE, "command": ["sleep", "600"], "securityContext": CONTAINER_SECURITY}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def phase(core: client.CoreV1Api, namespace: str, name: str) -> str:
    return str(core.read_namespaced_pod(name, namespace).status.phase)


def test_a_person_added_to_the_directory_gets_a_namespace(spec: Path, api: client.ApiClient, image: str) -> None:
    (spec.parent / "people.yaml").write_text(PEOPLE.replace("dan: {}", "dan: {}, eva: {}"))
    applied = menagerie("controllers", "apply", str(spec), "--yes", timeout_s=900)
    assert applied.code == 0, applied.err
    until(lambda: "" if exists(api, "user-eva") else "no namespace user-eva yet")


def test_when_the_leader_is_killed_the_other_takes_over(spec: Path, api: client.ApiClient, image: str) -> None:
    core = client.CoreV1Api(api)
    until(lambda: "" if holder(api) else "no leader yet")
    leader = holder(api).rsplit("_", 1)[0]
    core.delete_namespaced_pod(leader, NAMESPACE, grace_period_seconds=0)
    until(lambda: "it still exists" if leader in {item.metadata.name for item in pods(core)} else "")
    # A binding that is deleted while there is no leader is restored by the next leader.
    client.RbacAuthorizationV1Api(api).delete_namespaced_role_binding("menagerie:editors", "user-ana")
    until(lambda: "" if holder(api).rsplit("_", 1)[0] not in ("", leader) else "no other leader yet")

    def bound() -> str:
        bindings = client.RbacAuthorizationV1Api(api).list_namespaced_role_binding("user-ana").items
        return "" if "menagerie:editors" in {item.metadata.name for item in bindings} else "no binding yet"

    until(bound)
    until(lambda: "" if menagerie("status", str(spec), "controllers").code == 0 else "not all are ready yet")


def test_they_are_removed_and_what_they_created_stays(spec: Path, api: client.ApiClient, image: str) -> None:
    removed = menagerie("controllers", "remove", str(spec), "--yes")
    assert removed.code == 0, removed.err
    until(lambda: "their namespace still exists" if exists(api, NAMESPACE) else "")
    assert exists(api, "user-ana")
    assert menagerie("controllers", "remove", str(spec), "--dry-run", "--json").json["changes"] == []
