"""Programs from the projects' own releases: used if pinned, from a server that serves files in the projects' layout."""

from __future__ import annotations

import bz2
import hashlib
import io
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from cluster.artefacts import catalogue
from cluster.errors import FailedError
from sandbox.lab import mirror_server
from tools import build, golang, manifest, releases

FakeGo = Callable[..., Path]
MODULES = manifest.modules()
SOURCES = {name: place for module in MODULES.values() for name, place in module.releases.items()}


def archive(members: Mapping[str, bytes]) -> bytes:
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w:gz") as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return into.getvalue()


def packed(source: str, members: Mapping[str, bytes]) -> bytes:
    """Return a file as its project publishes it: a bare program, a bzip2 file, or an archive."""
    if source.endswith(".bz2"):
        return bz2.compress(*members.values())
    return archive(members) if source.endswith((".tgz", ".tar.gz")) else next(iter(members.values()))


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_go: FakeGo) -> Iterator[Path]:
    """Serve a folder with every release file, all pinned; each program's content is its name."""
    fake_go()
    folder, contents = tmp_path / "mirror", dict[str, dict[str, bytes]]()
    for program, place in SOURCES.items():
        source, _, member = place.partition("#")
        contents.setdefault(source, {})[member] = f"released {program}".encode()
    sums = {}
    for source, members in contents.items():
        data = packed(source, members)
        (folder / source).parent.mkdir(parents=True, exist_ok=True)
        (folder / source).write_bytes(data)
        sums[source] = hashlib.sha256(data).hexdigest()
    (tmp_path / "pins.yaml").write_text(yaml.safe_dump(sums))
    monkeypatch.setattr(releases, "_PINS", (tmp_path / "pins.yaml",))
    releases.pins.cache_clear()
    server = mirror_server.make("127.0.0.1", 0, folder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("MENAGERIE_MIRROR", f"http://127.0.0.1:{server.server_address[1]}")
    monkeypatch.setenv("MENAGERIE_PROGRAMS", "release")
    yield folder
    server.shutdown()
    server.server_close()
    releases.pins.cache_clear()


def forget(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str) -> None:
    """Remove the pin of this file."""
    sums = yaml.safe_load((tmp_path / "pins.yaml").read_text())
    del sums[source]
    (tmp_path / "pins.yaml").write_text(yaml.safe_dump(sums))
    releases.pins.cache_clear()


def test_every_program_that_a_project_publishes_comes_from_its_release_file(mirror: Path, tmp_path: Path) -> None:
    paths = build.ensure(SOURCES)
    assert {name: path.read_text() for name, path in paths.items()} == {name: f"released {name}" for name in SOURCES}
    assert all(path.stat().st_mode & 0o777 == 0o755 for path in paths.values())
    assert not (tmp_path / "builds").exists()


def test_a_second_run_downloads_nothing(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = build.ensure(["etcd", "restic"])
    monkeypatch.setenv("MENAGERIE_MIRROR", "http://127.0.0.1:1")
    assert build.ensure(["etcd", "restic"]) == first


def test_a_program_without_a_pin_is_built(mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forget(monkeypatch, tmp_path, SOURCES["kube-apiserver"])
    paths = build.ensure(["kubelet", "kube-apiserver"])
    assert paths["kubelet"].read_text() == "released kubelet"
    assert paths["kube-apiserver"].read_text() == "k8s.io/kubernetes/cmd/kube-apiserver\n"


def test_by_default_programs_are_built(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MENAGERIE_PROGRAMS")
    assert build.ensure(["runc"])["runc"].read_text() == "github.com/opencontainers/runc\n"


def test_the_last_origin_is_remembered_so_that_a_lab_keeps_its_programs(
    mirror: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = build.ensure(["runc"])
    monkeypatch.delenv("MENAGERIE_PROGRAMS")
    assert build.ensure(["runc"]) == released
    monkeypatch.setenv("MENAGERIE_PROGRAMS", "source")
    assert build.ensure(["runc"]) != released
    monkeypatch.delenv("MENAGERIE_PROGRAMS")
    assert build.ensure(["runc"]) != released


def test_any_origin_but_source_or_release_is_refused(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MENAGERIE_PROGRAMS", "realease")
    with pytest.raises(FailedError, match="MENAGERIE_PROGRAMS=realease: set it to one of source, release"):
        build.ensure(["runc"])


def test_a_file_that_differs_from_the_pinned_one_is_refused_and_not_used(mirror: Path, tmp_path: Path) -> None:
    file = mirror / SOURCES["runc"]
    file.write_text("something else")
    with pytest.raises(FailedError, match="differs from the pinned file") as caught:
        build.ensure(["runc"])
    assert hashlib.sha256(b"something else").hexdigest() in str(caught.value)
    assert releases.pins()[SOURCES["runc"]] in str(caught.value)
    assert not (tmp_path / "cache" / "programs" / "runc").exists()


def test_the_error_names_a_file_that_cannot_be_fetched_and_the_ways_out(mirror: Path) -> None:
    (mirror / SOURCES["kubelet"]).unlink()
    with pytest.raises(FailedError, match=r"release/v.*/kubelet could not be fetched.*404") as caught:
        build.ensure(["kubelet"])
    assert "MENAGERIE_MIRROR=http://ADDRESS" in str(caught.value)
    assert "make lab PROGRAMS=source" in str(caught.value)


@pytest.mark.parametrize("full", ["kubectl", "kubectl.program"])
def test_a_full_disk_is_not_reported_as_a_server_error(mirror: Path, tmp_path: Path, full: str) -> None:
    folder, target = tmp_path / "arriving", tmp_path / "programs" / "kubectl"
    folder.mkdir()
    (folder / full).symlink_to("/dev/full")
    file = releases.pinned(next(module for module in MODULES.values() if "kubectl" in module.programs))["kubectl"]
    with pytest.raises(FailedError, match="no space is left on the disk of the cache") as caught:
        releases.fetch({target: file}, folder, lambda _: None)
    assert "could not be fetched" not in str(caught.value)
    assert not target.exists()


def test_the_error_names_the_missing_member_of_an_archive(
    mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = SOURCES["crictl"].partition("#")[0]
    data = archive({"other": b"x"})
    (mirror / source).write_bytes(data)
    sums = yaml.safe_load((tmp_path / "pins.yaml").read_text()) | {source: hashlib.sha256(data).hexdigest()}
    (tmp_path / "pins.yaml").write_text(yaml.safe_dump(sums))
    releases.pins.cache_clear()
    with pytest.raises(FailedError, match="has no crictl"):
        build.ensure(["crictl"])


def test_a_run_after_an_interruption_fetches_only_what_is_missing(mirror: Path) -> None:
    hidden = mirror / SOURCES["runc"]
    data = hidden.read_bytes()
    hidden.unlink()
    with pytest.raises(FailedError) as caught:
        build.ensure(["crictl", "runc"])
    assert caught.value.code == "programs"
    (mirror / SOURCES["crictl"].partition("#")[0]).unlink()
    hidden.write_bytes(data)
    assert build.ensure(["crictl", "runc"])["runc"].read_text() == "released runc"


def test_without_a_mirror_each_file_comes_from_its_own_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MENAGERIE_MIRROR", raising=False)
    assert releases.ReleaseFile("dl.k8s.io/release/x", "").url() == "https://dl.k8s.io/release/x"


def test_progress_shows_the_download(mirror: Path) -> None:
    events: list[build.BuildEvent] = []
    build.ensure(["etcd", "etcdctl"], events.append)
    assert events[0].state == "fetching"
    assert str(events[-1]).startswith(f"[1/1] etcd {MODULES['etcd'].version}: etcd, etcdctl fetched in ")


def test_no_go_is_installed_if_nothing_is_built(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(go: golang.Go) -> None:
        raise AssertionError(go)

    monkeypatch.setattr(golang, "install", refuse)
    assert build.ensure(["runc"])["runc"].exists()


def test_files_have_the_names_that_cloud_hosts_download() -> None:
    """`cluster` and `tools` both contain upstream's layout; this test fails if only one of them is changed."""
    published = {place.partition("#")[0] for place in SOURCES.values()}
    assert {artefact.source for artefact in catalogue().values()} <= published


def test_every_pinned_file_is_published_and_pinned_once() -> None:
    published = {place.partition("#")[0] for place in SOURCES.values()}
    files = [yaml.safe_load(file.read_text()) for file in releases._PINS]
    assert not files[0].keys() & files[1].keys()
    assert files[0].keys() | files[1].keys() <= published
    assert {len(digest) for pins in files for digest in pins.values()} == {64}
