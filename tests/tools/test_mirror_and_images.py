"""The artefact mirror and the images made from built programs."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from cluster import artefacts as model
from cluster import versions
from sandbox.lab import artefacts, images
from sandbox.lab.errors import LabError
from tools.oci import tar
from tools.oci.image import Image

FakeGo = Callable[..., Path]


@pytest.fixture
def mirror(fake_go: FakeGo) -> artefacts.MirrorTree:
    fake_go()
    return artefacts.build_mirror()


def test_the_mirror_has_every_artefact_with_its_checksum(mirror: artefacts.MirrorTree) -> None:
    assert set(mirror.sha256) == {artefact.source for artefact in model.catalogue().values()}
    for source, expected in mirror.sha256.items():
        assert hashlib.sha256((mirror.path / source).read_bytes()).hexdigest() == expected


def test_the_mirror_offers_only_what_was_requested_or_built_before(fake_go: FakeGo) -> None:
    log = fake_go()
    now, before = versions.KUBERNETES, versions.KUBERNETES_BEFORE
    assert not any(before in source for source in artefacts.build_mirror(now).sha256)
    both = set(artefacts.build_mirror(before).sha256)
    assert both == {artefact.source for version in (now, before) for artefact in model.catalogue(version).values()}
    builds = len(log.read_text().splitlines())
    assert set(artefacts.build_mirror(now).sha256) == both
    assert len(log.read_text().splitlines()) == builds


def test_a_version_that_is_not_built_is_refused(fake_go: FakeGo) -> None:
    fake_go()
    with pytest.raises(LookupError, match=r"builds no Kubernetes 1\.36\.3; the newest is"):
        artefacts.build_mirror("1.36.3")


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("etcd", [f"etcd-v{versions.ETCD}-linux-amd64/{name}" for name in ("etcd", "etcdctl", "etcdutl")]),
        ("containerd", ["bin/containerd", "bin/containerd-shim-runc-v2", "bin/ctr"]),
        ("cni-plugins", ["./bridge", "./host-local", "./loopback", "./portmap"]),
        ("crictl", ["crictl"]),
        ("node-exporter", [f"node_exporter-{versions.NODE_EXPORTER}.linux-amd64/node_exporter"]),
    ],
)
def test_an_archive_has_upstreams_layout(mirror: artefacts.MirrorTree, name: str, members: list[str]) -> None:
    with tarfile.open(mirror.path / model.catalogue()[name].source) as archive:
        assert archive.getnames() == members
        assert {(member.mode, member.uid, member.mtime) for member in archive} == {(0o755, 0, 0)}


def test_the_mirror_of_the_same_programs_has_the_same_checksums(
    fake_go: FakeGo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_go()
    first = artefacts.build_mirror()
    monkeypatch.setenv("MENAGERIE_CACHE", str(tmp_path / "another"))
    second = artefacts.build_mirror()
    assert first.path != second.path
    assert first.sha256 == second.sha256


def test_a_tar_depends_only_on_its_content(tmp_path: Path) -> None:
    file = tmp_path / "file"
    texts = []
    for mode in (0o600, 0o777):
        file.write_text("same")
        file.chmod(mode)
        stream = io.BytesIO()
        tar.write(stream, [tar.Entry("tmp", mode=0o1777), tar.Entry("a", file), tar.Entry("b", target="a")])
        texts.append(stream.getvalue())
    assert texts[0] == texts[1]


@pytest.fixture
def store(fake_go: FakeGo, monkeypatch: pytest.MonkeyPatch) -> images.ImageStore:
    fake_go()
    monkeypatch.setattr(images, "_from_this_machine", lambda name, target: (tar.Entry(target, name.encode()),))
    monkeypatch.setattr(images, "_busybox", lambda: images.LabImage("docker.io/library/busybox:1", (), ("/bin/sh",)))
    monkeypatch.setattr(images, "_pause", lambda home: b"pause")
    return images.build_images(versions.KUBERNETES)


def test_the_images_that_kubernetes_uses_exist(store: images.ImageStore) -> None:
    assert {f"{repository}:{tag}" for repository, tag in store.manifests} >= {
        f"pause:{versions.PAUSE}",
        f"coredns/coredns:v{versions.COREDNS}",
        f"kube-proxy:v{versions.KUBERNETES}",
        f"kas-network-proxy/proxy-agent:v{versions.KONNECTIVITY}",
        f"metrics-server/metrics-server:v{versions.METRICS_SERVER}",
    }


def test_there_is_an_image_of_each_kube_proxy_that_was_built(store: images.ImageStore) -> None:
    def tags(image_store: images.ImageStore) -> set[str]:
        return {tag for repository, tag in image_store.manifests if repository == "kube-proxy"}

    assert tags(store) == {f"v{versions.KUBERNETES}"}
    both = {f"v{versions.KUBERNETES}", f"v{versions.KUBERNETES_BEFORE}"}
    assert tags(images.build_images(versions.KUBERNETES_BEFORE)) == tags(images.build_images()) == both


def test_every_blob_of_a_manifest_is_where_the_registry_looks(store: images.ImageStore) -> None:
    for text in store.manifests.values():
        manifest = json.loads(text)
        for blob in (manifest["config"], *manifest["layers"]):
            data = (store.blobs / blob["digest"].replace(":", "/")).read_bytes()
            assert (f"sha256:{hashlib.sha256(data).hexdigest()}", len(data)) == (blob["digest"], blob["size"])


def test_kube_proxy_finds_nft_where_it_looks(store: images.ImageStore) -> None:
    manifest = json.loads(store.manifests["kube-proxy", f"v{versions.KUBERNETES}"])
    layer = store.blobs / manifest["layers"][0]["digest"].replace(":", "/")
    with tarfile.open(layer) as archive:
        assert {"usr/local/bin/kube-proxy", "usr/sbin/nft", "etc/protocols"} <= set(archive.getnames())


def test_images_are_written_once(store: images.ImageStore) -> None:
    before = {path: path.stat().st_mtime_ns for path in store.blobs.rglob("*") if path.is_file()}
    assert images.build_images() == store
    assert {path: path.stat().st_mtime_ns for path in store.blobs.rglob("*") if path.is_file()} == before


def test_further_images_are_kept_with_the_labs_own(store: images.ImageStore) -> None:
    layers = ((tar.Entry("a", b"below"),), (tar.Entry("b", b"above"),))
    image = Image(layers, ("/run",), command=("pause",))
    kept = images.keep({"registry.example.org/e2e/agnhost:2.63.0": image})
    assert kept.blobs == store.blobs
    manifest = json.loads(kept.manifests["e2e/agnhost", "2.63.0"])
    assert len(manifest["layers"]) == 2
    config = json.loads((kept.blobs / manifest["config"]["digest"].replace(":", "/")).read_text())["config"]
    assert (config["Entrypoint"], config["Cmd"]) == (["/run"], ["pause"])


class Registry(BaseHTTPRequestHandler):
    """Accepts every manifest."""

    protocol_version = "HTTP/1.1"
    taken: ClassVar[dict[str, bytes]]
    status = 201

    def do_PUT(self) -> None:
        type(self).taken[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(self.status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok" if self.status == 201 else b"no")

    def log_message(self, *arguments: object) -> None:
        """Keep the test's output quiet."""


@pytest.fixture
def registry() -> Iterator[tuple[str, type[Registry]]]:
    class Own(Registry):
        taken: ClassVar[dict[str, bytes]] = {}

    server = HTTPServer(("127.0.0.1", 0), Own)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}", Own
    server.shutdown()
    server.server_close()


def test_publishing_puts_every_manifest(registry: tuple[str, type[Registry]]) -> None:
    address, handler = registry
    manifests = {("pause", "3.10"): b"{}", ("coredns/coredns", "v1"): b"[]"}
    images.publish(images.ImageStore(Path("/nowhere"), manifests), address)
    assert handler.taken == {"/v2/pause/manifests/3.10": b"{}", "/v2/coredns/coredns/manifests/v1": b"[]"}


def test_a_registry_that_refuses_is_an_error(registry: tuple[str, type[Registry]]) -> None:
    address, handler = registry
    handler.status = 500
    with pytest.raises(LabError, match="refused pause:1"):
        images.publish(images.ImageStore(Path("/nowhere"), {("pause", "1"): b"{}"}), address)


def test_an_unreachable_registry_is_an_error() -> None:
    with pytest.raises(LabError, match="cannot be reached"):
        images.publish(images.ImageStore(Path("/nowhere"), {("pause", "1"): b"{}"}), "127.0.0.1:1")
