"""A fleet with horus, download sites with upstream's layout, a real registry with images, and a key that signs."""

from __future__ import annotations

import hashlib
import http.client
import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cluster import images, sources
from cluster.bundles import Kind
from cluster.load import load_cluster
from cluster.plugins import this_system
from cluster.spec import Cluster
from operations.bundles.needs import needed_artefacts
from tests.cli.terminal import Menagerie, command
from tests.control_plane.real_api import started
from tests.ports import free_port
from tests.programs import program
from tests.waiting import until
from tools.oci import image as oci
from tools.oci import tar

ROOT = Path(__file__).resolve().parents[3]
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
MULTI = images.COREDNS
"""The image that has an index, for two architectures; the others are single manifests."""


def content(source: str) -> bytes:
    """Return the file of a download site."""
    return f"the file {source}\n".encode() * 20


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Sites:
    """A web server that has files by host/path, as a mirror. asked: the paths of requests."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.asked = folder, list[str]()
        folder.mkdir()
        asked = self.asked

        class Handler(SimpleHTTPRequestHandler):
            def log_request(self, *_: object) -> None:
                asked.append(self.path)

            def log_error(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def put(self, source: str, data: bytes) -> None:
        path = self.folder / source
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class ImageRegistry:
    """`crane registry serve`, which checks digests of what it gets and that an index names only images that it has."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.at = folder, f"127.0.0.1:{port}"

    def put(self, image: str, text: bytes, media: str = oci.MANIFEST_TYPE) -> str:
        repository, _, tag = image.partition("/")[2].rpartition(":")
        for reference in (f"sha256:{digest(text)}", tag):
            connection = http.client.HTTPConnection(self.at, timeout=10)
            connection.request("PUT", f"/v2/{repository}/manifests/{reference}", text, {"Content-Type": media})
            answer = connection.getresponse()
            assert answer.status == http.HTTPStatus.CREATED, answer.read()
            connection.close()
        return digest(text)

    def image(self, image: str, variant: str = "") -> bytes:
        """Write the parts of an image; return its manifest."""
        layers = ((tar.Entry("program", f"{image} {variant}".encode()),),)
        return oci.write(oci.Image(layers, ("/program",)), self.folder)

    def several(self, image: str) -> str:
        """Put an image for two architectures; return the digest of its index."""
        parts = [self.image(image, architecture) for architecture in ("amd64", "arm64")]
        listed = [
            {"mediaType": oci.MANIFEST_TYPE, "digest": f"sha256:{self.put(image, part)}", "size": len(part)}
            for part in parts
        ]
        text = json.dumps({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": listed}).encode()
        return self.put(image, text, INDEX_TYPE)


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ImageRegistry]:
    crane, port, folder = program("crane"), free_port(), tmp_path_factory.mktemp("registry")
    served = ImageRegistry(folder / "blobs", port)
    served.folder.mkdir()
    command = [crane, "registry", "serve", f"--address=127.0.0.1:{port}", f"--disk={served.folder}"]
    with started("registry", command, folder):
        until(lambda: _answers(port), "the registry never answered", 20, 0.05)
        yield served


def _answers(port: int) -> bool:
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
        connection.request("GET", "/v2/")
        return connection.getresponse().status == 200
    except OSError:
        return False


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with horus, and a separate cache with crane."""
    root = tmp_path / "fleet"
    folder = root / "inventories" / "horus"
    folder.mkdir(parents=True)
    folder.joinpath("cluster.yaml").write_text((ROOT / "examples" / "horus" / "cluster.yaml").read_text())
    crane = program("crane")
    monkeypatch.setattr("operations.bundles.crane.build.ensure", lambda *_: {"crane": crane})
    monkeypatch.setenv("MENAGERIE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MENAGERIE_BUNDLE_PASSWORD", "")
    for module in ("cli.specs", "cli.actions.bundle", "cli.actions.mirror"):
        monkeypatch.setattr(f"{module}.ROOT", root)
    monkeypatch.chdir(root)
    return root


def horus(root: Path) -> Cluster:
    return load_cluster(root / "inventories" / "horus" / "cluster.yaml")


@pytest.fixture
def sites(root: Path, tmp_path: Path, registry: ImageRegistry, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sites]:
    """Everything that horus downloads. This checkout's lists have the checksums of its content, except for a few files."""
    served = Sites(tmp_path / "sites")
    programs, by_tag = dict[str, str](), dict[str, str]()
    for thing in needed_artefacts([horus(root)], [this_system()]):
        if thing.kind is Kind.IMAGE:
            several = thing.source == MULTI
            by_tag[thing.source] = (
                registry.several(MULTI) if several else registry.put(thing.source, registry.image(thing.source))
            )
        else:
            served.put(thing.source, content(thing.source))
            programs[thing.source] = digest(content(thing.source))
    known, known_images = dict(sources.published()), dict(images.published())
    monkeypatch.setattr(
        sources, "published", lambda: {source: programs[source] for source in known if source in programs}
    )
    monkeypatch.setattr(images, "published", lambda: {name: by_tag[name] for name in known_images if name in by_tag})
    yield served
    served.close()


@pytest.fixture
def menagerie(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Menagerie:
    monkeypatch.delenv("MENAGERIE_DEBUG", raising=False)
    return command(monkeypatch, capsys)


_MADE = ("horus.bundle", "bundle.key", "inventories/bundle.pub", "inventories/horus/artefacts.lock")


@pytest.fixture(scope="session")
def kept() -> dict[str, bytes]:
    """The files of the first bundle. Further ones would be like it, and take a second each."""
    return {}


@pytest.fixture
def bundle(menagerie: Menagerie, root: Path, sites: Sites, registry: ImageRegistry, kept: dict[str, bytes]) -> Path:
    """A bundle of horus, signed by a new key."""
    if not kept:
        ran = menagerie(*made(sites, registry), "--new-key")
        assert ran.code == 0, ran.err
        kept.update({name: (root / name).read_bytes() for name in _MADE})
    for name, data in kept.items():
        (root / name).write_bytes(data)
    return root / "horus.bundle"


def made(sites: Sites, registry: ImageRegistry, *more: str) -> tuple[str, ...]:
    """Return the command that makes it."""
    place = ("--mirror", sites.url, "--registry", registry.at, "--secret-key", "bundle.key")
    return ("bundle", "horus", *place, "-o", "horus.bundle", *more)
