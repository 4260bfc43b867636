"""A lab's programs and the hosts' system from a bundle: another machine's cache then has all, and builds nothing."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster import versions
from cluster.bundles import BundleError, Kind
from cluster.errors import FailedError
from cluster.load import load_cluster
from operations.bundles import lab, pack, signing
from operations.bundles.opened import opened
from operations.bundles.stage import Stage
from operations.mirrors.push import push
from operations.mirrors.targets import CACHE, target_of
from sandbox.lab import artefacts, rootfs
from sandbox.lab.prepare import programs
from tools import build, cache, carried, releases

FakeGo = Callable[..., Path]
ROOT = Path(__file__).resolve().parents[2]
NO_GO = "exit 1"
"""What a build does on a machine where none is possible."""


def system(root: Path) -> Path:
    """Put a small root file system into the cache, in place of debootstrap's."""
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/sudo").write_text("sudo")
    (root / "usr/bin/sudo").chmod(0o4755)
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    (root / "bin").symlink_to("usr/bin")
    return root


@pytest.fixture
def made(fake_go: FakeGo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, signing.PublicKeys]:
    """A bundle of the lab, and the keys that it is signed by."""
    monkeypatch.setenv(signing.PASSWORD, "")
    monkeypatch.delenv(releases.ORIGIN, raising=False)
    fake_go()
    system(cache.root() / "rootfs" / rootfs.key())
    signing.new_key(tmp_path / "key", tmp_path / "pub", str)
    stage = Stage()
    entries = lab.collect(lab.needed_artefacts([load_cluster(ROOT / "inventories" / "lab" / "cluster.yaml")]), stage)
    index, bill = pack.index_of(entries, stage)
    pack.write(tmp_path / "lab.bundle", index, bill, stage, signing.secret_key(tmp_path / "key", str))
    return tmp_path / "lab.bundle", signing.public_keys(tmp_path / "pub")


@pytest.fixture
def elsewhere(
    made: tuple[Path, signing.PublicKeys], fake_go: FakeGo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Another machine: its cache has nothing but the bundle's content, and another Go, which can build nothing."""
    monkeypatch.setenv("MENAGERIE_CACHE", str(tmp_path / "elsewhere"))
    fake_go("go1.98.0", NO_GO)
    with opened(*made) as bundle:
        pushed = push(bundle, target_of(CACHE), dry_run=False)
        assert ({entry.kind for entry in pushed.uploaded}, pushed.other) == ({Kind.BUILT, Kind.SYSTEM}, ())
    return tmp_path / "elsewhere"


def test_a_bundle_of_a_lab_has_its_programs_the_engine_and_the_system(made: tuple[Path, signing.PublicKeys]) -> None:
    with opened(*made) as bundle:
        bundle.verify()
        names = {entry.name for entry in bundle.index.entries}
    assert names == {"pulumi", "hosts-system", *programs(versions.KUBERNETES)}


def test_everything_of_a_lab_is_there_and_nothing_is_built(elsewhere: Path, fake_go: FakeGo) -> None:
    log = elsewhere.parent / "builds"
    builds = log.read_text()
    paths = build.ensure(["pulumi", *programs(versions.KUBERNETES)])
    assert all(path.is_relative_to(elsewhere) and os.access(path, os.X_OK) for path in paths.values())
    here = artefacts.build_mirror(versions.KUBERNETES)
    assert log.read_text() == builds
    with pytest.MonkeyPatch.context() as patch:  # the mirror of the machine that made the bundle
        patch.setenv("MENAGERIE_CACHE", str(elsewhere.parent / "cache"))
        fake_go()
        assert artefacts.build_mirror(versions.KUBERNETES).sha256 == here.sha256
    assert rootfs.ensure() == elsewhere / "rootfs" / rootfs.key()


def test_the_system_keeps_modes_and_links(elsewhere: Path) -> None:
    root = elsewhere / "rootfs" / rootfs.key()
    assert stat.S_IMODE((root / "usr/bin/sudo").stat().st_mode) == 0o4755
    assert stat.S_IMODE((root / "tmp").stat().st_mode) == 0o1777
    assert (root / "bin").readlink() == Path("usr/bin")


def test_a_second_push_takes_nothing_and_a_lost_program_is_taken_again(
    elsewhere: Path, made: tuple[Path, signing.PublicKeys]
) -> None:
    with opened(*made) as bundle:
        assert push(bundle, target_of(CACHE), dry_run=True).uploaded == ()
        build.ensure(["kubelet"])["kubelet"].unlink()
        assert [entry.name for entry in push(bundle, target_of(CACHE), dry_run=False).uploaded] == ["kubelet"]
    assert build.ensure(["kubelet"])["kubelet"].exists()


def test_what_no_bundle_brought_is_built_and_another_origin_can_be_chosen(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, fake_go: FakeGo
) -> None:
    assert releases.origin() == "bundle"
    with pytest.raises(FailedError, match="building kwok"):
        build.ensure(["kwok"])
    monkeypatch.setenv(releases.ORIGIN, "source")
    fake_go("go1.98.0")
    assert "-bundle-" not in str(build.ensure(["kubelet"])["kubelet"])


def test_a_bundle_of_another_checkout_is_refused(
    made: tuple[Path, signing.PublicKeys], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MENAGERIE_CACHE", str(tmp_path / "elsewhere"))
    with opened(*made) as bundle:
        monkeypatch.setattr(rootfs, "key", lambda: "another")
        with pytest.raises(BundleError, match="but this checkout's is another; use the checkout that made the bundle"):
            push(bundle, target_of(CACHE), dry_run=False)
    carried.record({"kubelet": ("1.0.0", "0" * 64)})
    assert carried.of({"kubelet": versions.KUBERNETES}) == {}
