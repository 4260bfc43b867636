"""Modules whose programs embed files that only their releases have: Go builds from a copy that has texts in their place."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tools import added, golang, manifest

FakeGo = Callable[..., Path]
NAME = "ui/app/dist/README"


@pytest.fixture
def go(fake_go: FakeGo, tmp_path: Path) -> golang.Go:
    """Return a Go whose module cache has a module, which nobody may write to."""
    module = tmp_path / "gomodcache" / "module"
    (module / "ui" / "app").mkdir(parents=True)
    (module / "ui" / "web.go").write_text("package ui\n")
    (module / "ui" / "web.go").chmod(0o444)
    for folder in (module / "ui" / "app", module / "ui", module):
        folder.chmod(0o555)
    program = fake_go().parent / "bin" / "go"
    answer = json.dumps({"Dir": str(module)})
    program.write_text(program.read_text() + f"case $1 in mod) echo '{answer}' ;; esac\n")
    return golang.find((1, 26))


def test_a_module_that_lacks_nothing_is_built_as_it_is(go: golang.Go, tmp_path: Path) -> None:
    assert added.flags(manifest.modules()["crane"], go, tmp_path) == []
    assert not (tmp_path / "module").exists()


def test_a_copy_of_the_module_has_the_added_files_and_go_builds_from_it(go: golang.Go, tmp_path: Path) -> None:
    folder = tmp_path / "building"
    folder.mkdir()
    module = replace(manifest.modules()["crane"], adds={NAME: "no pages"})
    assert added.flags(module, go, folder) == [f"-modfile={folder / 'go.mod'}"]
    assert (folder / "module" / NAME).read_text() == "no pages"
    assert (folder / "module" / "ui" / "web.go").read_text() == "package ui\n"
    assert (folder / "go.mod").read_text().endswith(f"\nreplace {module.pin} => {folder / 'module'}\n")
    assert (folder / "go.sum").read_bytes() == (module.folder / "go.sum").read_bytes()
    assert not (tmp_path / "gomodcache" / "module" / NAME).exists()


def test_the_key_of_a_program_changes_with_the_added_files() -> None:
    crane = manifest.modules()["crane"]
    keys = {replace(crane, adds=adds).key("crane", "go1.26.8", "amd64") for adds in ({}, {NAME: "a"}, {NAME: "b"})}
    assert len(keys) == 3
