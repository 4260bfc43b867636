"""Every image of a cluster is pulled by digest, so nobody who can push a tag, or who is on the network path, chooses what runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cluster import images
from cluster.errors import RefusedError
from cluster.load import load_cluster
from cluster.sources import without_checksum
from cluster.spec import Artefacts, Cloud, Cluster
from components.control_plane import manifests
from components.control_plane.host import bootstrap
from components.control_plane.host.api import ApiError
from components.control_plane.images import image
from network.addresses import plan
from operations.readiness import refuse_unready
from operations.verify import run as verify_run
from operations.verify.proof import Proof
from tests.control_plane.csi_support import CLOUDS, cluster

ROOT = Path(__file__).parents[2]
BY_DIGEST = re.compile(r"[a-z0-9.:/-]+:[A-Za-z0-9.-]+@sha256:[0-9a-f]{64}")


def with_everything(cloud: Cloud, **changes: Any) -> Cluster:
    """Return a cluster with both kinds of volumes, GPUs and a balloon: everything that it can run in the cloud."""
    small = cluster(cloud).spec
    pools = {name: pool.model_dump(mode="json", exclude_defaults=True) for name, pool in small.pools.items()}
    first = next(name for name, pool in pools.items() if "machine" in pool)
    pools[first] |= {"max": 9, "balloons": 1}
    pools["gpu"] = {"site": "a", "hosts": "hosts.yaml", "hardware": "dgx-h100"}
    return cluster(cloud, pools=pools, sites={"a": {"racks": {"r1": "10.96.0.0/24"}}}, **changes)


def named(thing: Any) -> Iterator[str]:
    """Yield every value of a key `image`, at any depth."""
    if isinstance(thing, dict):
        for key, value in thing.items():
            yield from (value,) if key == "image" and isinstance(value, str) else named(value)
    elif isinstance(thing, list | tuple):
        for each in thing:
            yield from named(each)


@pytest.mark.parametrize("cloud", CLOUDS)
def test_no_manifest_has_an_image_by_tag(cloud: Cloud) -> None:
    cluster = with_everything(cloud)
    references = set(named(manifests.objects(cluster, plan(cluster))))
    assert len(references) >= 10
    assert [each for each in references if not BY_DIGEST.fullmatch(each)] == []


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_list_of_images_matches_the_manifests(cloud: Cloud) -> None:
    cluster = with_everything(cloud)
    of_manifests = {each.partition("@")[0] for each in named(manifests.objects(cluster, plan(cluster)))}
    # kubeadm creates kube-proxy, and `verify` its own pods.
    beside = {images.kube_proxy(cluster.spec.kubernetes.version), images.BUSYBOX}
    assert {each.source for each in images.pulled(cluster.spec)} == of_manifests | beside


def test_a_mirror_serves_the_same_digest() -> None:
    cluster = with_everything(Cloud.AWS, artefacts={"registry": "registry.example.org:5000"})
    mirrored = image(cluster, images.DEVICE_PLUGIN)
    assert mirrored.startswith("registry.example.org:5000/nvidia/k8s-device-plugin:v")
    assert mirrored.partition("@")[2] == images.by_digest(cluster.spec, images.DEVICE_PLUGIN).partition("@")[2]


def test_published_digests_belong_to_images_that_some_cluster_pulls() -> None:
    pulled = {each.source for cloud in CLOUDS for each in images.pulled(with_everything(cloud).spec)} | {images.CEPH}
    assert set(images.published()) <= pulled
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in images.published().values())


def test_an_image_without_a_digest_is_never_pulled_by_its_tag() -> None:
    spec = with_everything(Cloud.AWS).spec.model_copy(update={"artefacts": Artefacts()})
    proxy = images.kube_proxy(spec.kubernetes.version)
    assert proxy in {each.source for each in without_checksum(spec)}
    with pytest.raises(KeyError, match=re.escape(f"the digest of {proxy} isn't known")):
        images.by_digest(spec, proxy)


def test_up_names_images_without_a_digest_and_says_how_to_get_it() -> None:
    horus = load_cluster(ROOT / "examples" / "horus" / "cluster.yaml")
    with pytest.raises(RefusedError) as refused:
        refuse_unready(horus, {})
    assert "./menagerie bundle horus --fetch" in str(refused.value)
    assert f"  {images.EBS}\n" in str(refused.value)


class _Host:
    """An API with the kube-proxy that kubeadm creates, each time with a tag. It counts the runs of kubeadm."""

    def __init__(self) -> None:
        self.proxy: dict[str, Any] | None = None
        self.runs = 0

    def call(self, method: str, path: str) -> Any:
        assert (method, path) == ("GET", bootstrap.PROXY)
        if self.proxy is None:
            raise ApiError(404, "not found")
        return self.proxy

    def kubeadm(self, words: list[str], kubeconfig: Path) -> None:
        assert words == bootstrap.PROXY_PHASE
        self.runs += 1
        containers = [{"name": "kube-proxy", "image": "registry.k8s.io/kube-proxy:v1.36.4"}]
        self.proxy = {"metadata": {"name": "kube-proxy"}, "spec": {"template": {"spec": {"containers": containers}}}}

    def apply(self, path: str, thing: dict[str, Any], manager: str, force: bool) -> None:
        assert (path, force, self.proxy is None) == (bootstrap.PROXY, True, False)
        self.proxy = thing

    @property
    def image(self) -> str:
        (reference,) = named(self.proxy)
        return reference


def test_kube_proxy_has_a_digest_and_is_created_again_only_after_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template, host = tmp_path / "kubeadm.yaml", _Host()
    template.write_text("mode: nftables\n")
    monkeypatch.setattr(bootstrap, "TEMPLATE", template)
    monkeypatch.setattr(bootstrap, "phase", host.kubeadm)
    expected = f"registry.k8s.io/kube-proxy:v1.36.4@sha256:{'a' * 64}"
    for _ in range(2):
        bootstrap.kube_proxy(host, expected, tmp_path)  # type: ignore[arg-type]
        assert (host.image, host.runs) == (expected, 1)
    template.write_text("mode: iptables\n")
    bootstrap.kube_proxy(host, expected, tmp_path)  # type: ignore[arg-type]
    assert (host.image, host.runs) == (expected, 2)


def test_api_servers_get_the_digest_of_kube_proxy() -> None:
    from components.control_plane.render import _configuration

    cluster = with_everything(Cloud.AWS)
    files = {file.path.rpartition("/")[2]: file.text for file in _configuration(cluster, plan(cluster))}
    assert BY_DIGEST.fullmatch(json.loads(files["host.json"])["kube_proxy"])


def test_the_pods_of_verify_have_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    images_used: list[str] = []

    @contextmanager
    def started(api: Any, nodes: frozenset[str], report: Any, image: str) -> Iterator[None]:
        images_used.append(image)
        yield

    def proves(context: Any) -> str:
        context.__dict__["nodes"] = {}
        assert context.workload is None
        return "seen"

    monkeypatch.setattr(verify_run, "workload", started)
    access = SimpleNamespace(api=lambda: None)
    proof = Proof("p", "claim", proves)
    (result,) = verify_run.verify(with_everything(Cloud.AWS), access, (proof,), None, lambda _: None, print)  # type: ignore[arg-type]
    assert result.observation == "seen"
    assert [bool(BY_DIGEST.fullmatch(each)) for each in images_used] == [True]
