"""Who may name a team's class, and which volumes Rook's controllers may create, on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cluster.spec import Cluster
from components.ceph import classes
from components.ceph.names import NAMESPACE, of
from components.control_plane.objects import Object, applied
from tests.control_plane.real_api import RealApi, running
from tests.programs import program
from tests.waiting import until

ANNOTATION = "volume.beta.kubernetes.io/storage-class"
CLAIMS, MERGE = "/api/v1/namespaces/{}/persistentvolumeclaims", "application/merge-patch+json"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:rook-csi-rbd-provisioner-sa"
CREATED, OK, FORBIDDEN, INVALID = 201, 200, 403, 422


@pytest.fixture(scope="module")
def policies(narwhal: Cluster) -> tuple[Object, ...]:
    return (*classes.class_policy(of(narwhal)), *classes.volume_policy())


@pytest.fixture(scope="module")
def api(policies: tuple[Object, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealApi]:
    """Yield an API server with a namespace of team robotics and one without a team."""
    with running(program, tmp_path_factory.mktemp("api")) as ready:
        for name, labels in (("arms", {"menagerie.dev/team": "robotics"}), ("none", {})):
            body = {"metadata": {"name": name, "labels": labels}}
            assert ready.call("POST", "/api/v1/namespaces", body)[0] == CREATED
        in_force(ready, policies)
        yield ready


def in_force(api: RealApi, policies: tuple[Object, ...]) -> None:
    for thing in policies:
        status, message = api.apply(applied(thing))
        assert status < 300, message
    until(lambda: create_claim(api, "none", "block-robotics")[0] == FORBIDDEN)
    until(lambda: "rook-ceph" in str(api.call("POST", f"{VOLUMES}?dryRun=All", volume(HOST), as_user=ACCOUNT)[1]))


def claim(storage_class: str | None, annotation: str | None = None, name: str = "x") -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    named = {} if storage_class is None else {"storageClassName": storage_class}
    annotations = {} if annotation is None else {"annotations": {ANNOTATION: annotation}}
    return {"metadata": {"name": name, **annotations}, "spec": spec | named}


def create_claim(
    api: RealApi, namespace: str, storage_class: str | None, annotation: str | None = None
) -> tuple[int, str]:
    path = f"{CLAIMS.format(namespace)}?dryRun=All"
    status, answer = api.call("POST", path, claim(storage_class, annotation))
    return status, str(answer.get("message", ""))


def test_a_team_can_not_use_up_the_quota_of_another(api: RealApi) -> None:
    status, message = create_claim(api, "none", "block-robotics")
    expected = "block-robotics is for namespaces with the label menagerie.dev/team=robotics"
    assert (status, expected in message) == (FORBIDDEN, True), message
    assert create_claim(api, "arms", "file-language")[0] == FORBIDDEN
    for namespace, mine in (("arms", "block-robotics"), ("arms", "file-robotics"), ("none", "another"), ("none", None)):
        assert create_claim(api, namespace, mine)[0] == CREATED


def test_the_old_annotation_does_not_give_access_to_another_teams_class(api: RealApi) -> None:
    """The annotation overrides the field, whatever the field's value."""
    for storage_class in (None, "", "another", "block-robotics"):
        status, message = create_claim(api, "none", storage_class, "block-robotics")
        assert (status, "block-robotics is for namespaces with the label" in message) == (FORBIDDEN, True), message
    assert create_claim(api, "arms", "file-robotics", "file-language")[0] == FORBIDDEN
    assert create_claim(api, "arms", None, "block-robotics")[0] == CREATED
    assert create_claim(api, "none", None, "another")[0] == CREATED


def test_a_class_can_not_be_patched_in_later(api: RealApi) -> None:
    path = CLAIMS.format("none")
    assert api.call("POST", path, claim(None, name="later"))[0] == CREATED
    named = {"spec": {"storageClassName": "block-robotics"}}
    status, answer = api.call("PATCH", f"{path}/later", named, MERGE)
    assert (status, "is for namespaces with the label" in answer["message"]) == (FORBIDDEN, True), answer
    # The annotation can't be changed at all (k8s.io/kubernetes, ValidatePersistentVolumeClaimUpdate).
    annotations = {"metadata": {"annotations": {ANNOTATION: "block-robotics"}}}
    assert api.call("PATCH", f"{path}/later", annotations, MERGE)[0] == INVALID
    api.call("PATCH", f"{path}/later/status", annotations, MERGE)
    kept = api.call("GET", f"{path}/later")[1]
    assert (ANNOTATION in kept["metadata"].get("annotations", {}), "storageClassName" in kept["spec"]) == (False, False)
    for fine in ({"metadata": {"annotations": {"a": "b"}}}, {"spec": {"storageClassName": "another"}}):
        assert api.call("PATCH", f"{path}/later", fine, MERGE)[0] == OK


def test_a_claim_from_before_the_policy_can_be_used_and_deleted(api: RealApi, policies: tuple[Object, ...]) -> None:
    path = CLAIMS.format("none")
    for thing in policies:
        api.call("DELETE", applied(thing)["path"])
    until(lambda: api.call("POST", path, claim("block-robotics", name="before"))[0] == CREATED)
    in_force(api, policies)
    for finalizers in (["a.example.org/b"], None):
        assert api.call("PATCH", f"{path}/before", {"metadata": {"finalizers": finalizers}}, MERGE)[0] == OK
    assert api.call("DELETE", f"{path}/before")[0] == OK


VOLUMES = "/api/v1/persistentvolumes"
HOST = {"hostPath": {"path": "/"}}
CEPH = {"csi": {"driver": f"{NAMESPACE}.rbd.csi.ceph.com", "volumeHandle": "v"}}


def volume(source: dict[str, Any]) -> dict[str, Any]:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "x", **source}
    return {"metadata": {"name": "v"}, "spec": spec}


def test_a_stolen_token_of_rook_can_not_make_a_volume_of_a_host_folder(api: RealApi) -> None:
    # Rook's release gives its accounts the right to create volumes.
    rights = {
        "metadata": {"name": "v"},
        "rules": [{"apiGroups": [""], "resources": ["persistentvolumes"], "verbs": ["create"]}],
    }
    given = {
        "metadata": {"name": "v"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "v"},
        "subjects": [{"kind": "User", "name": ACCOUNT, "apiGroup": "rbac.authorization.k8s.io"}],
    }
    for plural, body in (("clusterroles", rights), ("clusterrolebindings", given)):
        assert api.call("POST", f"/apis/rbac.authorization.k8s.io/v1/{plural}", body)[0] == CREATED
    until(lambda: api.call("POST", f"{VOLUMES}?dryRun=All", volume(CEPH), as_user=ACCOUNT)[0] == CREATED)
    status, message = api.call("POST", VOLUMES, volume(HOST), as_user=ACCOUNT)
    assert (status, "make and change volumes of rook-ceph.rbd.csi.ceph.com" in message["message"]) == (
        FORBIDDEN,
        True,
    ), message
    assert api.call("POST", f"{VOLUMES}?dryRun=All", volume(HOST))[0] == CREATED
