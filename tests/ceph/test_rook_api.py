"""The rendered objects on a real API server with Rook's own CRDs, the only place that knows every field."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from cluster import images, rook
from cluster.load import load_cluster
from cluster.project import ROOT
from cluster.spec import Cluster
from components.ceph import render
from components.ceph.facts import judge
from components.control_plane.objects import Object, applied
from tests.control_plane.real_api import RealApi, running
from tests.programs import file, program
from tests.waiting import until

COSI = {"gcr.io/k8s-staging-sig-storage/objectstorage-sidecar:v0.2.2", "quay.io/ceph/cosi:v0.1.4"}
"""Drivers of buckets by COSI, which no cluster uses."""
pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("rook-api")]


@pytest.fixture(scope="module")
def crds() -> list[Object]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [each for each in yaml.load_all(file("rook-crds.yaml").read_text(), Loader=loader) if each]


@pytest.fixture(scope="module")
def api(crds: list[Object], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealApi]:
    with running(program, tmp_path_factory.mktemp("api")) as ready:
        for crd in crds:
            status, message = ready.apply(applied(crd))
            assert status < 300, (crd["metadata"]["name"], message)
        _served(ready, {crd["metadata"]["name"] for crd in crds})
        yield ready


def _served(api: RealApi, names: set[str]) -> None:
    """Wait until the server serves the API of each CRD."""
    left = set(names)

    def served() -> bool:
        _, answer = api.call("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        ready = {
            crd["metadata"]["name"]
            for crd in answer["items"]
            for condition in crd.get("status", {}).get("conditions") or []
            if (condition["type"], condition["status"]) == ("Established", "True")
        }
        left.difference_update(ready)
        return not left

    until(served, lambda: str(left))


@pytest.fixture
def things(narwhal: Cluster, reports: list[dict[str, Any]]) -> tuple[Object, ...]:
    return render.objects(narwhal, judge(narwhal, reports).devices)


@pytest.fixture
def created(api: RealApi, things: tuple[Object, ...]) -> tuple[Object, ...]:
    for thing in things:
        status, message = api.apply(applied(thing))
        assert status < 300, (thing["kind"], thing["metadata"]["name"], message)
    return things


def test_every_object_is_accepted_without_unknown_fields_twice(api: RealApi, created: tuple[Object, ...]) -> None:
    """The second time nothing changes: an unchanged object keeps its version."""

    def versions() -> list[str]:
        answers = [api.call("GET", applied(thing)["path"])[1] for thing in created]
        return [answer["metadata"]["resourceVersion"] for answer in answers]

    before = versions()
    assert [api.apply(applied(thing)) for thing in created] == [(200, "")] * len(created)
    assert versions() == before


def test_no_rendered_field_is_dropped(api: RealApi, created: tuple[Object, ...]) -> None:
    """A server prunes fields that a CRD does not have; strict validation should have refused them earlier."""

    def within(small: Any, large: Any) -> bool:
        if isinstance(small, dict):
            return isinstance(large, dict) and all(
                key in large and within(value, large[key]) for key, value in small.items()
            )
        if isinstance(small, list):
            return isinstance(large, list) and len(small) == len(large) and all(map(within, small, large))
        return bool(small == large)

    for thing in created:
        if thing["apiVersion"] == "ceph.rook.io/v1":
            assert within(thing["spec"], api.call("GET", applied(thing)["path"])[1]["spec"]), thing["kind"]


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("CephCluster", {"mon": {"counts": 3}}),
        ("CephCluster", {"mon": {"count": 10}}),
        ("CephCluster", {"dataDirHostPath": "var/lib/rook"}),
        ("CephCluster", {"network": {"provider": "hosts"}}),
        ("CephBlockPool", {"quotas": {"maxSize": "10TiB"}}),
        ("CephFilesystemSubVolumeGroup", {"clusterID": "a b"}),
    ],
)
def test_a_mistake_in_a_resource_is_noticed(
    api: RealApi, created: tuple[Object, ...], kind: str, change: dict[str, Any]
) -> None:
    thing = copy.deepcopy(next(candidate for candidate in created if candidate["kind"] == kind))
    thing["spec"] |= change
    status, message = api.apply(applied(thing), dry_run=True)
    assert status >= 400
    assert next(iter(change)) in message


def claim(api: RealApi, namespace: str, storage_class: str | None) -> tuple[int, str]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    named = {"storageClassName": storage_class} if storage_class is not None else {}
    body = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"generateName": "x-"},
        "spec": spec | named,
    }
    status, answer = api.call("POST", f"/api/v1/namespaces/{namespace}/persistentvolumeclaims?dryRun=All", body)
    return status, str(answer.get("message", ""))


def test_a_team_can_not_use_up_the_quota_of_another(api: RealApi, created: tuple[Object, ...]) -> None:
    for name, labels in (("arms", {"menagerie.dev/team": "robotics"}), ("none", {})):
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        assert api.apply(applied(namespace))[0] < 300
    # A policy takes a moment to take effect.
    until(lambda: claim(api, "none", "block-robotics")[0] >= 400, every_s=0.2)
    status, message = claim(api, "none", "block-robotics")
    assert status == 403
    assert "block-robotics is for namespaces with the label menagerie.dev/team=robotics" in message
    assert claim(api, "arms", "file-language")[0] == 403
    for namespace, storage_class in (
        ("arms", "block-robotics"),
        ("arms", "file-robotics"),
        ("none", "another"),
        ("none", None),
    ):
        assert claim(api, namespace, storage_class)[0] < 300, (namespace, storage_class)


def test_a_bundle_has_the_manifests_and_images_of_the_pinned_release() -> None:
    release = file("rook-crds.yaml").parent
    assert rook.published() == {
        source: hashlib.sha256((release / source.rpartition("/")[2]).read_bytes()).hexdigest()
        for source in rook.published()
    }
    listed = set((release / "images.txt").read_text().split())
    narwhal = load_cluster(ROOT / "tests" / "specs" / "valid-ceph.yaml").spec
    assert {artefact.source for artefact in rook.pulled(narwhal)} == listed - COSI - {images.CEPH}
