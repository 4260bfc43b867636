"""The release and the commit of a toolkit, with a real Git."""

from __future__ import annotations

import subprocess
from importlib import metadata
from pathlib import Path

import pytest

from cluster.revision import Revision, revision


def git(folder: Path, *words: str) -> str:
    own = ("-c", "user.name=Mia", "-c", "user.email=mia@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", "-C", str(folder), *own, *words], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of release 1.2.3, without a commit."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "menagerie"\nversion = "1.2.3"\n')
    git(tmp_path, "init", "--quiet")
    return tmp_path


@pytest.fixture
def committed(checkout: Path) -> str:
    """The commit of the checkout."""
    git(checkout, "add", ".")
    git(checkout, "commit", "--quiet", "--message", "first")
    return git(checkout, "rev-parse", "HEAD").strip()


def test_a_clean_checkout_has_its_commit(checkout: Path, committed: str) -> None:
    own = revision(checkout)
    assert own == Revision("1.2.3", committed)
    assert str(own) == f"release 1.2.3, commit {committed}"
    assert own.short == committed[:7]


@pytest.mark.parametrize("file", ["pyproject.toml", "roles/new.yml"])
def test_a_changed_file_and_a_new_one_are_uncommitted_changes(checkout: Path, committed: str, file: str) -> None:
    path = checkout / file
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as opened:
        opened.write("# changed\n")
    own = revision(checkout)
    assert own == Revision("1.2.3", committed, changed=True)
    assert str(own).endswith(f"commit {committed}, with uncommitted changes")
    assert own.short == f"{committed[:7]}-dirty"


def test_ignored_files_are_no_changes(checkout: Path, committed: str) -> None:
    (checkout / ".git" / "info" / "exclude").write_text("/.menagerie/\n")
    (checkout / ".menagerie").mkdir()
    (checkout / ".menagerie" / "state").touch()
    assert revision(checkout) == Revision("1.2.3", committed)


def test_a_checkout_without_a_commit_has_none(checkout: Path) -> None:
    assert revision(checkout) == Revision("1.2.3")


def test_without_git_there_is_no_commit(checkout: Path, committed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(checkout))
    own = revision(checkout)
    assert own == Revision("1.2.3")
    assert str(own) == "release 1.2.3, no commit"


def test_a_folder_in_another_repository_has_no_commit(checkout: Path, committed: str) -> None:
    unpacked = checkout / "vendor"
    unpacked.mkdir()
    (unpacked / "pyproject.toml").write_text('[project]\nversion = "1.2.4"\n')
    assert revision(unpacked) == Revision("1.2.4")


def test_an_installed_toolkit_has_the_release_of_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", {"menagerie": "1.2.3"}.__getitem__)
    assert revision(tmp_path) == Revision("1.2.3")
