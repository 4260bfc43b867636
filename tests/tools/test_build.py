"""The builder: what it builds, when, and its errors."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.errors import FailedError
from tools import build, golang, manifest
from tools.build import BuildEvent

FakeGo = Callable[..., Path]


def test_programs_of_a_module_are_built_in_one_go_and_only_once(fake_go: FakeGo) -> None:
    log = fake_go()
    first = build.ensure(["etcd", "etcdctl"])
    assert build.ensure(["etcdctl", "etcd"]) == first
    assert len(log.read_text().splitlines()) == 1
    assert first["etcd"].read_text() == "go.etcd.io/etcd/server/v3\n"
    assert first["etcdctl"].read_text() == "go.etcd.io/etcd/etcdctl/v3\n"


def test_only_missing_programs_are_built(fake_go: FakeGo) -> None:
    log = fake_go()
    build.ensure(["etcd"])
    build.ensure(["etcd", "etcdutl"])
    assert log.read_text().splitlines()[1].endswith("/ go.etcd.io/etcd/etcdutl/v3")


def test_every_program_of_the_manifest_has_a_separate_path(fake_go: FakeGo) -> None:
    fake_go()
    names = [program for module in manifest.modules().values() for program in module.programs]
    paths = build.ensure(names)
    assert list(paths) == names
    assert all(path.name == manifest.file_name(name) and path.exists() for name, path in paths.items())
    assert len(set(paths.values())) == len(names)


def test_programs_that_are_tests_are_built_with_the_others(fake_go: FakeGo) -> None:
    log = fake_go()
    paths = build.ensure(["agnhost", "e2e.test", "ginkgo"])
    assert [words.split()[:2] for words in log.read_text().splitlines()] == [["build", "-trimpath"], ["test", "-c"]]
    assert paths["e2e.test"].read_text() == "k8s.io/kubernetes/test/e2e\n"
    assert paths["agnhost"].read_text() == "k8s.io/kubernetes/test/images/agnhost\n"


def test_a_program_is_built_in_two_versions(fake_go: FakeGo) -> None:
    log = fake_go()
    modules = manifest.modules()
    older = modules["kubernetes-1.35"].version
    paths = build.ensure(["kubelet", f"kubelet@{older}"])
    assert [path.parent.name.partition("-")[0] for path in paths.values()] == [modules["kubernetes"].version, older]
    assert all(f"gitVersion=v{v} " in line for v, line in zip(
        (modules["kubernetes"].version, older), log.read_text().splitlines(), strict=True
    ))  # fmt: skip


def test_progress_counts_modules_and_shows_what_is_left(fake_go: FakeGo) -> None:
    fake_go()
    build.ensure(["crane"])
    events: list[BuildEvent] = []
    build.ensure(["crane", "etcd", "runc"], events.append)
    assert [(e.state, e.index, e.total) for e in events if e.seconds == 0][:2] == [("cached", 0, 2), ("building", 1, 2)]
    built = [event for event in events if event.state == "built"]
    assert [(e.module, e.index) for e in built] == [("etcd", 1), ("runc", 2)]
    assert built[0].left == manifest.modules()["runc"].seconds
    assert str(built[1]).startswith("[2/2] runc")


@pytest.mark.parametrize(
    ("output", "way_out"),
    [
        ("write /x: no space left on device", "The disk is full"),
        ("compile: signal: killed", "GOFLAGS=-p=1"),
        ("pkg-config: exec: not there", "install gcc libc6-dev libseccomp-dev pkg-config"),
        ("reading https://x: 403 Forbidden", "set GOPROXY"),
        ("verifying x: checksum mismatch", "tools/runc/go.sum"),
        ("something new", "The full output is in"),
    ],
)
def test_a_failed_build_shows_the_end_of_gos_output_and_a_way_out(fake_go: FakeGo, output: str, way_out: str) -> None:
    fake_go(build=f"echo '{output}' >&2; exit 1")
    with pytest.raises(FailedError) as caught:
        build.ensure(["runc"])
    assert output in str(caught.value)
    assert way_out in str(caught.value)
    assert "building runc" in str(caught.value)


def test_a_build_is_retried_after_a_network_failure(
    fake_go: FakeGo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(golang, "PAUSES_S", (0.0, 0.0))
    third = f'[ "$(wc -l <{tmp_path / "builds"})" = 3 ]'
    log = fake_go(build=f"{third} || {{ echo 'reading x: 502 Bad Gateway' >&2; exit 1; }}")
    assert build.ensure(["runc"])["runc"].exists()
    assert len(log.read_text().splitlines()) == 3


def test_a_lasting_network_failure_fails_the_build(fake_go: FakeGo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golang, "PAUSES_S", (0.0, 0.0))
    log = fake_go(build="echo 'dial tcp: lookup x: no such host' >&2; exit 1")
    with pytest.raises(FailedError, match="cannot be reached"):
        build.ensure(["runc"])
    assert len(log.read_text().splitlines()) == 3


def test_a_failed_build_leaves_no_program(fake_go: FakeGo) -> None:
    fake_go(build="exit 1")
    with pytest.raises(FailedError, match="building runc"):
        build.ensure(["runc"])
    fake_go()
    assert build.ensure(["runc"])["runc"].exists()


def test_two_builders_do_not_build_the_same_program_twice(fake_go: FakeGo) -> None:
    log = fake_go(build="sleep 0.5")
    command = [sys.executable, "-c", "from tools import build; build.ensure(['crane'])"]
    root = manifest.TOOLS.parent
    running = [subprocess.Popen(command, cwd=root) for _ in range(2)]
    assert [process.wait(timeout=60) for process in running] == [0, 0]
    assert len(log.read_text().splitlines()) == 1


def test_a_recent_go_on_path_is_used(fake_go: FakeGo) -> None:
    fake_go("go1.99.0")
    assert golang.find((1, 26, 3)) == golang.Go("go1.99.0", "amd64", golang.find((1,)).program, own=False)


def test_the_pinned_go_is_used_if_the_go_on_path_is_too_old(fake_go: FakeGo, tmp_path: Path) -> None:
    fake_go("go1.19.8")
    go = golang.find((1, 26, 3))
    assert go.own
    assert manifest.numbers(go.version) >= (1, 26, 3)
    assert go.program.is_relative_to(tmp_path / "cache")


def test_the_pinned_go_is_recent_enough_for_every_module(fake_go: FakeGo) -> None:
    fake_go("go1.1")
    assert golang.find(max(module.go for module in manifest.modules().values())).own


def test_a_go_version_that_is_not_available_is_refused(fake_go: FakeGo) -> None:
    fake_go("go1.1")
    with pytest.raises(FailedError, match=r"install Go 9\.9\.9"):
        golang.find((9, 9, 9))


def test_the_error_says_why_the_pinned_go_cannot_be_installed(fake_go: FakeGo, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_go("go1.1")
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(FailedError, match="could not install the pinned Go"):
        build.ensure(["crane"])
