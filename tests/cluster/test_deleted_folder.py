"""A shell that stands in a folder that somebody has deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster import project
from cluster.errors import FailedError
from tests.cli.terminal import Menagerie, command


@pytest.fixture
def deleted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PWD", str(folder))
    folder.rmdir()
    return folder


def test_check_works_there(deleted: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    menagerie: Menagerie = command(monkeypatch, capsys)
    ran = menagerie("check")
    assert ran.code == 0, ran.err


def test_what_needs_the_folder_names_it_with_a_way_out(deleted: Path) -> None:
    with pytest.raises(FailedError, match=f"^{deleted} was deleted, and this command runs in it; .*: cd ~$"):
        project.working_folder()


def test_an_installed_command_looks_for_its_project_above(deleted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project, "is_installed", lambda: True)
    (deleted.parent / project.FOLDER).mkdir()
    assert project.find() == deleted.parent
