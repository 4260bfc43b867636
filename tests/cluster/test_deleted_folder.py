"""A shell whose working folder was deleted."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cluster import project
from cluster.errors import FailedError
from cluster.project import ROOT


@pytest.fixture
def deleted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PWD", str(folder))
    folder.rmdir()
    return folder


def test_check_works_there(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    script = 'cd gone && rmdir ../gone && exec "$0" check'
    ran = subprocess.run(
        ["sh", "-c", script, ROOT / "menagerie"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def test_what_needs_the_folder_names_it_with_a_way_out(deleted: Path) -> None:
    with pytest.raises(FailedError, match=f"^{deleted} was deleted, and this command runs in it; .*: cd ~$"):
        project.working_folder()


def test_an_installed_command_looks_for_its_project_above(deleted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project, "is_installed", lambda: True)
    (deleted.parent / project.FOLDER).mkdir()
    assert project.find() == deleted.parent
