"""The objects for volumes on a real API server, the only place that knows every field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster.spec import Cloud
from components.control_plane import admission
from components.control_plane.csi.drivers import BLOCK, FILE
from components.control_plane.csi.rights import NAMESPACE
from components.control_plane.host import bootstrap
from components.control_plane.host.api import ApiError
from components.control_plane.host.bootstrap import apply
from components.control_plane.objects import applied as admission_applied
from tests.control_plane.csi_support import CLOUDS, applied
from tests.control_plane.real_api import RealApi, plain
from tests.sharing import shared
from tests.waiting import until

pytestmark = pytest.mark.xdist_group("plain_api")
MERGE = "application/merge-patch+json"
CLASS = "/apis/storage.k8s.io/v1/storageclasses/block"


@pytest.fixture
def api(tmp_path_factory: pytest.TempPathFactory) -> RealApi:
    return shared("api", lambda: plain(tmp_path_factory.mktemp("api")))


class _Client:
    """`components.control_plane.host.api.Api` on the real API of the test."""

    def __init__(self, api: RealApi) -> None:
        self._api = api

    def call(self, method: str, path: str) -> Any:
        status, answer = self._api.call(method, path)
        if status >= 400:
            raise ApiError(status, answer["message"])
        return answer

    def apply(self, path: str, thing: dict[str, Any], manager: str, force: bool) -> None:
        status, message = self._api.apply({"path": path, "object": thing, "force": force})
        if status >= 400:
            raise ApiError(status, message)


def test_every_object_of_every_cloud_is_accepted_without_unknown_fields(api: RealApi) -> None:
    """Twice, because a second boot finds the objects of the first. A real cluster has only one cloud's classes."""
    client = _Client(api)
    for cloud in (*CLOUDS, *CLOUDS):
        for item in applied(cloud):
            apply(client, item)  # type: ignore[arg-type]


def test_a_field_that_is_misspelt_is_noticed(api: RealApi) -> None:
    item = next(item for item in applied(Cloud.AWS) if item["object"]["kind"] == "CSIDriver")
    item["object"]["spec"]["fsGroupPolicies"] = "File"
    assert api.apply(item, dry_run=True)[0] >= 400


def test_a_class_with_another_kind_of_disk_is_replaced(api: RealApi, capsys: pytest.CaptureFixture[str]) -> None:
    """The API does not allow changes of a class's parameters."""
    kinds = []
    for kind in ("gp3", "io2"):
        (item,) = (item for item in applied(Cloud.AWS, {"block_disk": kind, "file": True}) if item["path"] == CLASS)
        apply(_Client(api), item)  # type: ignore[arg-type]
        kinds.append(api.call("GET", CLASS)[1]["parameters"]["type"])
    assert kinds == ["gp3", "io2"]
    assert f"{CLASS}: replaced" in capsys.readouterr().out


def may(api: RealApi, who: str, verb: str, resource: str, group: str = "", namespace: str = "") -> bool:
    """Return whether RBAC allows a request of a driver's ServiceAccount."""
    attributes = {"verb": verb, "resource": resource, "group": group, "namespace": namespace}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": f"system:serviceaccount:{NAMESPACE}:{who}", "resourceAttributes": attributes},
    }
    _, answer = api.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


def volume(name: str, **source: Any) -> dict[str, Any]:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "x", **source}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def test_a_stolen_token_of_the_controllers_can_not_make_a_volume_of_a_host_folder(api: RealApi) -> None:
    """Mounting such a volume gives root on the host, and PodSecurity does not check claims."""
    for item in applied(Cloud.AWS):
        apply(_Client(api), item)  # type: ignore[arg-type]
    drivers = (BLOCK[Cloud.AWS].name, FILE[Cloud.AWS].name)
    for thing in admission.volumes(admission.VOLUMES, NAMESPACE, drivers):
        assert api.apply(admission_applied(thing))[0] < 300
    account, path = f"system:serviceaccount:{NAMESPACE}:ebs-controller", "/api/v1/persistentvolumes"
    ours = volume("ours", csi={"driver": drivers[0], "volumeHandle": "vol-1"})
    foreign = {
        "host": volume("host", hostPath={"path": "/"}),
        "local": volume("local", local={"path": "/"}, nodeAffinity={"required": {"nodeSelectorTerms": [{"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["n"]}]}]}}),
        "nfs": volume("nfs", nfs={"server": "10.0.0.1", "path": "/"}),
        "csi": volume("csi", csi={"driver": "else.example.org", "volumeHandle": "v"}),
    }  # fmt: skip
    until(lambda: api.call("POST", f"{path}?dryRun=All", foreign["host"], as_user=account)[0] == 403)
    for body in foreign.values():
        status, message = api.call("POST", path, body, as_user=account)
        assert (status, "make and change volumes of" in message["message"]) == (403, True), message
        assert api.call("POST", path, body)[0] == 201
        name = body["metadata"]["name"]
        claim = {"spec": {"claimRef": {"namespace": "default", "name": "mine"}}}
        assert api.call("PATCH", f"{path}/{name}", claim, MERGE, as_user=account)[0] == 403
    assert api.call("POST", path, ours, as_user=account)[0] == 201
    keep = {"metadata": {"finalizers": ["external-attacher/ebs-csi-aws-com"]}}
    assert api.call("PATCH", f"{path}/ours", keep, MERGE, as_user=account)[0] == 200
    assert api.call("DELETE", f"{path}/ours", as_user=account)[0] == 200


@pytest.mark.parametrize("cloud", CLOUDS)
def test_rbac_allows_drivers_only_what_they_need(api: RealApi, cloud: Cloud) -> None:
    for item in applied(cloud):
        apply(_Client(api), item)  # type: ignore[arg-type]
    block, file = BLOCK[cloud].short, FILE[cloud].short
    leases = ("leases", "coordination.k8s.io")
    for who in (f"{block}-controller", f"{file}-controller"):
        assert may(api, who, "create", "persistentvolumes")
        assert may(api, who, "update", *leases, NAMESPACE)
        assert not may(api, who, "update", *leases, "kube-system")
    assert may(api, f"{block}-controller", "patch", "volumeattachments", "storage.k8s.io")
    assert not may(api, f"{file}-controller", "patch", "volumeattachments", "storage.k8s.io")
    for who in (f"{kind}-{part}" for kind in (block, file) for part in ("controller", "node")):
        assert may(api, who, "get", "nodes")
        for verb, resource in (("get", "secrets"), ("list", "pods"), ("patch", "nodes"), ("create", "pods")):
            assert not may(api, who, verb, resource, "", NAMESPACE), (who, verb, resource)
    assert not may(api, f"{block}-node", "create", "persistentvolumes")


def test_kubeadms_kube_proxy_gets_its_digest_and_keeps_everything_else(
    api: RealApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real API merges the digest into kubeadm's object; kubeadm itself replaces the object, as its client does."""
    path, image = bootstrap.PROXY, f"registry.k8s.io/kube-proxy:v1.36.4@sha256:{'a' * 64}"
    labels = {"k8s-app": "kube-proxy"}
    container = {"name": "kube-proxy", "image": "registry.k8s.io/kube-proxy:v1.36.4", "command": ["kube-proxy"]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], "hostNetwork": True}}
    daemon_set = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "kube-proxy", "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }

    def kubeadm(words: list[str], kubeconfig: Path) -> None:
        status = api.call("POST", path.rpartition("/")[0], daemon_set)[0]
        assert status == 201 or api.call("PUT", path, daemon_set)[0] == 200

    (tmp_path / "kubeadm.yaml").write_text("mode: nftables\n")
    monkeypatch.setattr(bootstrap, "TEMPLATE", tmp_path / "kubeadm.yaml")
    monkeypatch.setattr(bootstrap, "phase", kubeadm)
    for version in ("mode: nftables\n", "mode: iptables\n"):
        (tmp_path / "kubeadm.yaml").write_text(version)
        bootstrap.kube_proxy(_Client(api), image, tmp_path)  # type: ignore[arg-type]
        (running,) = api.call("GET", path)[1]["spec"]["template"]["spec"]["containers"]
        assert (running["image"], running["command"]) == (image, ["kube-proxy"])
    generation = api.call("GET", path)[1]["metadata"]["generation"]
    bootstrap.kube_proxy(_Client(api), image, tmp_path)  # type: ignore[arg-type]
    assert api.call("GET", path)[1]["metadata"]["generation"] == generation
