"""programs.toml and the go.mod files: pins, keys and groups."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from cluster import versions
from cluster.artefacts import KUBERNETES_PROGRAMS
from tools import manifest

MODULES = manifest.modules()


def listed(name: str) -> set[str]:
    lines = (manifest.TOOLS / name).read_text().splitlines()
    return {part.strip() for line in lines if not line.startswith("#") for part in line.split("|")}


def test_the_linker_flags_have_the_version_from_go_mod() -> None:
    flags = MODULES["kubernetes"].linker_flags()
    version = MODULES["kubernetes"].version
    major, minor, _ = version.split(".")
    assert f"-X k8s.io/component-base/version.gitVersion=v{version}" in flags
    assert (
        f"-X k8s.io/component-base/version.gitMajor={major} -X k8s.io/component-base/version.gitMinor={minor}" in flags
    )


@pytest.mark.parametrize("name", sorted(MODULES))
def test_every_package_belongs_to_a_tool_of_its_go_mod(name: str) -> None:
    text = (MODULES[name].folder / "go.mod").read_text()
    tools = {line.removeprefix("tool").strip() for line in text.splitlines()}
    assert set(MODULES[name].programs.values()) <= tools


def test_no_two_modules_build_the_same_program() -> None:
    names = [program for module in MODULES.values() for program in module.programs]
    assert len(names) == len(set(names))


def test_a_program_of_another_version_has_the_version_in_its_name() -> None:
    now, older = MODULES["kubernetes"].version, MODULES["kubernetes-1.35"].version
    assert manifest.at("kubelet", now) == "kubelet"
    assert manifest.at("kubelet", older) == f"kubelet@{older}"
    assert set(map(manifest.file_name, MODULES["kubernetes-1.35"].programs)) == set(MODULES["kubernetes"].programs)


def test_a_module_like_another_inherits_its_settings() -> None:
    flags = MODULES["kubernetes-1.35"].linker_flags()
    assert "version.gitVersion=v1.35." in flags
    assert "version.gitMinor=35" in flags
    assert not MODULES["kubernetes-1.35"].unasked


def test_setup_installs_what_the_builds_need() -> None:
    assert {package for module in MODULES.values() for package in module.debian} <= listed("debian-packages.txt")


@pytest.mark.parametrize(
    "change", [{"tags": ("other",)}, {"cgo": True}, {"static": True}, {"variables": {"a.b": "c"}}], ids=str
)
def test_the_key_changes_with_how_a_program_is_built(change: dict[str, object]) -> None:
    before = MODULES["crane"]
    after = replace(before, **change)  # type: ignore[arg-type]
    assert before.key("crane", "go1.26.8", "amd64") != after.key("crane", "go1.26.8", "amd64")


def test_the_key_changes_with_the_go_that_builds() -> None:
    keys = {MODULES["crane"].key("crane", go, arch) for go in ("go1.26.6", "go1.26.8") for arch in ("amd64", "arm64")}
    assert len(keys) == 4


def test_a_program_and_the_tests_of_its_package_have_different_keys() -> None:
    keys = {replace(MODULES["crane"], tests=tests).key("crane", "go1", "amd64") for tests in ((), ("crane",))}
    assert len(keys) == 2


def test_the_conformance_suite_has_the_version_of_the_clusters_kubernetes() -> None:
    suite, kubernetes = MODULES["conformance"], MODULES["kubernetes"]
    assert suite.version == kubernetes.version
    assert set(suite.tests) <= set(suite.programs)
    assert not suite.unasked


def test_the_key_does_not_change_with_the_expected_seconds() -> None:
    before = MODULES["crane"]
    assert before.key("crane", "go1", "amd64") == replace(before, seconds=1).key("crane", "go1", "amd64")


def test_a_pin_is_found_in_go_mod_only_for_the_module_itself(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("require (\n\texample.test/a/v2 v2.1.0 // indirect\n\texample.test/a v1.4.2\n)\n")
    assert manifest.pinned(tmp_path, "example.test/a") == "1.4.2"
    assert manifest.pinned(tmp_path, "example.test/a/v2") == "2.1.0"
    with pytest.raises(LookupError, match="requires no version of example.test/b"):
        manifest.pinned(tmp_path, "example.test/b")


def test_programs_are_grouped_by_module_in_the_given_order() -> None:
    groups = manifest.grouped(["kubelet", "etcd", "kubectl", "etcd"])
    assert [(module.name, names) for module, names in groups] == [
        ("kubernetes", ["kubelet", "kubectl"]),
        ("etcd", ["etcd"]),
    ]


def test_an_unknown_program_is_refused_with_the_known_ones() -> None:
    with pytest.raises(LookupError, match=r"has no rocket; it has .*kubelet"):
        manifest.grouped(["etcd", "rocket"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1.26.3", (1, 26, 3)), ("go1.26rc1", (1, 26)), ("go1.27.0-X:foo", (1, 27, 0)), ("devel", ())],
)
def test_go_versions_compare_as_numbers(text: str, expected: tuple[int, ...]) -> None:
    assert manifest.numbers(text) == expected


def test_the_soak_builds_every_program_of_the_release_that_the_lab_upgrades_from() -> None:
    """If one of them is missing, the lab skips its upgrade test."""
    result = subprocess.run(
        ["make", "-n", "soak"], cwd=manifest.TOOLS.parent, capture_output=True, text=True, check=True
    )
    expected = {manifest.at(name, versions.KUBERNETES_BEFORE) for name in (*KUBERNETES_PROGRAMS, "kube-proxy")}
    assert expected <= set(result.stdout.split())
