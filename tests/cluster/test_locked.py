"""The lock of artefacts: its checksums count as the spec's, and contradictions are errors at their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster import sources
from cluster.load import check_paths, load_cluster
from cluster.locked import LOCK_FILE, Lock, text
from cluster.problems import Problem

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCHEDULER = "dl.k8s.io/release/v1.36.4/bin/linux/amd64/kube-scheduler"
RUNC = "github.com/opencontainers/runc/releases/download/v1.4.3/runc.amd64"
ONE, OTHER = "1" * 64, "2" * 64


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The spec of horus, in a folder without a lock."""
    folder = tmp_path / "horus"
    folder.mkdir()
    (folder / "cluster.yaml").write_text((EXAMPLES / "horus" / "cluster.yaml").read_text())
    monkeypatch.chdir(tmp_path)
    return folder / "cluster.yaml"


def lock(spec: Path, content: Lock | str) -> None:
    spec.with_name(LOCK_FILE).write_text(content if isinstance(content, str) else text(content))


def problems(spec: Path) -> list[Problem]:
    return check_paths([spec])[1]


def test_every_checksum_of_a_lock_counts_as_the_spec_s(spec: Path) -> None:
    missing = sources.without_checksum(load_cluster(spec).spec)
    lock(spec, Lock(sha256={artefact.source: ONE for artefact in missing}))
    loaded = load_cluster(spec)
    assert (problems(spec), sources.without_checksum(loaded.spec)) == ([], ())
    assert sources.source_of(loaded.spec).sha256[SCHEDULER] == ONE
    assert sources.source_of(loaded.spec).sha256[RUNC] == sources.published()[RUNC]


def test_the_lock_of_another_release_is_no_error_but_the_new_one_lacks_checksums(spec: Path) -> None:
    old = SCHEDULER.replace("1.36.4", "1.35.4")
    lock(spec, Lock(sha256={old: ONE}))
    loaded = load_cluster(spec)
    assert problems(spec) == []
    assert old not in loaded.spec.artefacts.sha256
    assert SCHEDULER in {artefact.source for artefact in sources.without_checksum(loaded.spec)}


def test_a_lock_that_contradicts_its_spec_or_upstream_is_an_error_at_its_line(spec: Path) -> None:
    spec.write_text(spec.read_text() + f"artefacts:\n  sha256:\n    {SCHEDULER}: '{OTHER}'\n")
    lock(spec, Lock(sha256={SCHEDULER: ONE, RUNC: ONE}))
    errors = {(each.code, each.file, each.path): each for each in problems(spec)}
    assert set(errors) == {("CFG-021", "horus/artefacts.lock", f"sha256.{name}") for name in (SCHEDULER, RUNC)}
    lines = spec.with_name(LOCK_FILE).read_text().splitlines()
    assert all(each.path.removeprefix("sha256.") in lines[each.line - 1] for each in errors.values())
    messages = [each.message for each in errors.values()]
    assert f"{SCHEDULER} is {ONE}, but the spec's artefacts has {OTHER}" in messages
    assert f"{RUNC} is {ONE}, but upstream publishes {sources.published()[RUNC]}" in messages
    assert check_paths([spec])[0] == []


def test_own_builds_of_a_lock_replace_upstream_s_with_a_warning(spec: Path) -> None:
    lock(spec, Lock(own_builds={RUNC: ONE}))
    assert sources.source_of(load_cluster(spec).spec).sha256[RUNC] == ONE
    (warning,) = problems(spec)
    assert (warning.code, warning.is_error) == ("CFG-020", False)
    assert f"hosts run your own build of {RUNC}" in warning.message


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("version: 2\n", "CFG-021"),
        ("version: new\n", "CFG-014"),
        (f"version: 1\nsha256: {{{SCHEDULER}: abc}}\n", "CFG-020"),
        ("version: 1\nsums: {}\n", "CFG-001"),
        ("- a list\n", "CFG-012"),
        ("\t", "CFG-011"),
        ("", "CFG-012"),
    ],
)
def test_an_invalid_lock_is_an_error_of_that_file(spec: Path, content: str, code: str) -> None:
    lock(spec, content)
    errors = problems(spec)
    assert [(each.code, each.file) for each in errors] == [(code, "horus/artefacts.lock")]
    assert check_paths([spec])[0] == []


def test_a_folder_in_its_place_is_an_error(spec: Path) -> None:
    spec.with_name(LOCK_FILE).mkdir()
    assert [each.code for each in problems(spec)] == ["CFG-010"]


def test_a_lab_ignores_the_checksums_of_a_lock(spec: Path) -> None:
    lab = EXAMPLES.parent / "inventories" / "lab"
    for file in lab.iterdir():
        if file.is_file():
            spec.with_name(file.name).write_text(file.read_text())
    lock(spec, Lock(sha256={RUNC: ONE}))
    assert load_cluster(spec).spec.artefacts.sha256 == {}
