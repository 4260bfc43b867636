"""Provider plugins from a server in upstream's layout, with the real engine; no other file is ever unpacked or started."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path

import pulumi
import pulumi_aws as aws
import pytest

from cluster import versions
from cluster.artefacts import Artefact
from cluster.errors import FailedError, RefusedError
from cluster.load import load_cluster
from cluster.plugins import SYSTEMS, plugin_of, this_system
from cluster.spec import Cloud, Cluster
from operations import stack as operation
from operations.plugins import described, provide
from operations.readiness import refuse_unready
from sandbox.simcloud.server import simulated_clouds
from sandbox.simcloud.world import World
from stacks.automation import ClusterStack
from stacks.errors import StackError
from tests.programs import program

ROOT = Path(__file__).resolve().parents[2]
NAME = "resource-aws-v"


@pytest.fixture(scope="module")
def horus() -> Cluster:
    return load_cluster(ROOT / "examples" / "horus" / "cluster.yaml")


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    """A server that records requests, and a separate cache."""
    monkeypatch.setenv("MENAGERIE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PULUMI_DEBUG_PROVIDERS", raising=False)
    served = Upstream(tmp_path / "served")
    with served.listening():
        yield served


class Upstream:
    """Files by host/path, as in a mirror."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.asked, self.url = folder, list[str](), ""
        folder.mkdir()

    def listening(self) -> Listening:
        return Listening(self)

    def put(self, artefact: Artefact, content: bytes) -> str:
        file = self.folder / artefact.source
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        return hashlib.sha256(content).hexdigest()


class Listening:
    def __init__(self, upstream: Upstream) -> None:
        class Handler(SimpleHTTPRequestHandler):
            def log_request(self, *_: object) -> None:
                upstream.asked.append(self.path)

            def log_error(self, *_: object) -> None:
                pass

        self._upstream = upstream
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(upstream.folder)))

    def __enter__(self) -> None:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self._upstream.url = f"http://127.0.0.1:{self._server.server_port}"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def plugin() -> Artefact:
    artefact = plugin_of(Cloud.AWS, this_system())
    assert artefact is not None
    return artefact


def archive(script: str = "#!/bin/sh\nexit 1\n", name: str = "pulumi-resource-aws") -> bytes:
    """Pack an archive as upstream does: programs and texts, without folders."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as files:
        for file, text in ((name, script), ("LICENSE", "…")):
            info = tarfile.TarInfo(file)
            info.size, info.mode = len(text.encode()), 0o755
            files.addfile(info, io.BytesIO(text.encode()))
    return gzip.compress(made.getvalue(), mtime=0)


def pinned(cluster: Cluster, upstream: Upstream, sha256: str | None) -> Cluster:
    sums = {plugin().source: sha256} if sha256 else {}
    artefacts = cluster.spec.artefacts.model_copy(update={"mirror": upstream.url, "sha256": sums})
    return cluster.model_copy(update={"spec": cluster.spec.model_copy(update={"artefacts": artefacts})})


def installed(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir()) if folder.exists() else []


def kept(tmp_path: Path) -> list[str]:
    """Return the content of the cache's plugin folder."""
    return installed(tmp_path / "cache" / "plugins")


def test_the_versions_are_those_that_the_sdks_require() -> None:
    ours = (versions.PULUMI_AWS, versions.PULUMI_AZURE_NATIVE, versions.PULUMI_GCP)
    assert ours == tuple(version(f"pulumi-{name}") for name in ("aws", "azure-native", "gcp"))
    assert this_system() in SYSTEMS


def test_only_the_pinned_file_is_installed_and_only_once(horus: Cluster, upstream: Upstream, tmp_path: Path) -> None:
    cluster = pinned(horus, upstream, upstream.put(plugin(), archive()))
    home = tmp_path / "home" / "plugins"
    (home / "resource-aws-v1.0.0").mkdir(parents=True)  # downloaded by an engine
    for _ in range(2):
        provide(cluster, home, lambda _: None)
    assert installed(home) == [f"{NAME}{versions.PULUMI_AWS}"]
    assert os.access(home / f"{NAME}{versions.PULUMI_AWS}" / "pulumi-resource-aws", os.X_OK)
    assert upstream.asked == [f"/{plugin().source}"]


@pytest.mark.parametrize("place", [0, 40, -1])
def test_one_flipped_bit_is_refused_and_nothing_is_left(
    horus: Cluster, upstream: Upstream, tmp_path: Path, place: int
) -> None:
    right = archive()
    changed = bytearray(right)
    changed[place] ^= 1
    upstream.put(plugin(), bytes(changed))
    expected = hashlib.sha256(right).hexdigest()
    with pytest.raises(FailedError, match=f"artefacts.sha256 has {expected}; nothing was installed"):
        provide(pinned(horus, upstream, expected), tmp_path / "home", lambda _: None)
    assert kept(tmp_path) == []
    assert not (tmp_path / "home").exists()


def test_a_file_that_the_operator_downloaded_takes_precedence_over_the_network(
    horus: Cluster, upstream: Upstream, tmp_path: Path
) -> None:
    content = archive()
    cluster = pinned(horus, upstream, hashlib.sha256(content).hexdigest())
    (tmp_path / "home").mkdir()
    with pytest.raises(FailedError, match="404") as refused:
        provide(cluster, tmp_path / "home" / "plugins", lambda _: None)
    given = Path(str(refused.value).rpartition("put it at ")[2])
    given.write_bytes(content)
    upstream.asked.clear()
    provide(cluster, tmp_path / "home" / "plugins", lambda _: None)
    assert installed(tmp_path / "home" / "plugins") == [f"{NAME}{versions.PULUMI_AWS}"]
    assert upstream.asked == []


@pytest.mark.parametrize("name", ["pulumi-resource-gcp", "../pulumi-resource-aws"])
def test_an_archive_without_the_plugin_is_refused_and_writes_nowhere_else(
    horus: Cluster, upstream: Upstream, tmp_path: Path, name: str
) -> None:
    cluster = pinned(horus, upstream, upstream.put(plugin(), archive(name=name)))
    with pytest.raises(FailedError, match="does not contain pulumi-resource-aws"):
        provide(cluster, tmp_path / "home", lambda _: None)
    assert kept(tmp_path) == []


def test_without_a_pin_nothing_is_downloaded_and_the_error_says_how_to_pin(
    horus: Cluster, upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream.put(plugin(), archive())
    cluster = pinned(horus, upstream, None)
    monkeypatch.setattr("operations.readiness.missing", lambda *_: [])
    with pytest.raises(RefusedError) as refused:
        refuse_unready(cluster, {}, declares=False)
    assert f"{plugin().source}: <sha256>" in str(refused.value)
    refuse_unready(pinned(horus, upstream, "0" * 64), {}, declares=False)
    with pytest.raises(FailedError, match="no checksum is pinned"):
        provide(cluster, tmp_path / "home", lambda _: None)
    assert upstream.asked == []
    assert described(pinned(horus, upstream, "ab" * 32)).endswith(f"sha256 {'ab' * 32}")


def test_a_plugin_on_the_path_is_not_started_instead(
    horus: Cluster, upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    stray = tmp_path / "bin" / "pulumi-resource-aws"
    stray.write_text("#!/bin/sh\n")
    stray.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    with pytest.raises(FailedError, match="which is not verified"):
        provide(pinned(horus, upstream, upstream.put(plugin(), archive())), tmp_path / "home", lambda _: None)


@pytest.fixture(scope="module")
def cli() -> Path:
    """Looked up before a test has its own cache."""
    return program("pulumi")


Opened = Callable[[Cluster], ClusterStack]


@pytest.fixture
def opened(cli: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """A stack with one VPC, in a separate checkout."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "PULUMI_CONFIG_PASSPHRASE"):
        monkeypatch.setenv(name, "tests")
    monkeypatch.delenv("PULUMI_BACKEND_URL", raising=False)
    monkeypatch.setattr("operations.stack.pulumi_cli", lambda _: cli)
    monkeypatch.setattr("operations.stack.STATE", tmp_path / "state")
    monkeypatch.setattr("operations.stack.ROOT", tmp_path)

    def declare(_: Cluster) -> None:
        own = pulumi.ResourceOptions(provider=aws.Provider("aws", region="eu-west-1"))
        aws.ec2.Vpc("one", cidr_block="10.0.0.0/16", opts=own)

    monkeypatch.setattr("stacks.program.declare", declare)
    return lambda cluster: operation.make_stack(cluster, lambda _: None)


def test_the_engine_starts_the_plugin_that_was_verified(
    horus: Cluster, upstream: Upstream, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    with simulated_clouds(world, clouds=["aws"]) as simulated:
        port = simulated["PULUMI_DEBUG_PROVIDERS"].rpartition(":")[2]
        script = f"#!/bin/sh\necho {port}\nexec sleep 600\n"
        summary, _ = opened(pinned(horus, upstream, upstream.put(plugin(), archive(script)))).up()
        assert summary.changes["create"] == 3
    assert [record.type for record in world] == ["aws:ec2/vpc:Vpc"]
    assert len(upstream.asked) == 1


def test_the_engine_never_downloads_a_plugin(
    horus: Cluster, upstream: Upstream, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_PLUGIN_DOWNLOAD_URL_OVERRIDES", f"aws={upstream.url}/theirs")
    stack = opened(pinned(horus, upstream, None))
    stack._plugins = lambda _: None  # as if Menagerie provided none
    with pytest.raises(StackError):
        stack.up()
    assert upstream.asked == []
