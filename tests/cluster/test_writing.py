"""Files that verbs write: completely or not at all, and never over other files."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.journal import Lines
from cluster.writing import ForeignFileError, bears, naming, replace, write
from operations.provisioning.known_hosts import KIND
from operations.provisioning.render import write as write_tree
from tests.cli.terminal import Menagerie, command

NOTES = "the only copy of my notes\n"


@pytest.fixture
def menagerie(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Menagerie:
    return command(monkeypatch, capsys)


@pytest.mark.parametrize(
    "words",
    [
        ("topology", "lab", "-o", "FILE.svg"),
        ("topology", "lab", "-o", "FILE.html"),
        ("validate", "lab", "--sarif", "FILE"),
        ("validate", "lab", "--junit", "FILE"),
        ("configure", "lab", "--report", "FILE", "--yes"),
        ("machines", "install", "lab", "--known-hosts", "FILE", "--yes"),
    ],
    ids=" ".join,
)
def test_no_verb_writes_over_a_file_of_another_kind(
    menagerie: Menagerie, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Refused before anything else happens: no engine starts and no host is contacted."""
    given = [word.replace("FILE", str(tmp_path / "notes")) for word in words]
    path = next(Path(word) for word in given if word.startswith(str(tmp_path)))
    path.write_text(NOTES)
    result = menagerie(*given)
    assert (result.code, path.read_text()) == (2, NOTES), result.err
    assert "so it wasn't changed" in result.err
    assert os.listdir(tmp_path) == [path.name]


def test_a_drawing_replaces_an_older_one_and_keeps_its_mode(menagerie: Menagerie, tmp_path: Path) -> None:
    path, link = tmp_path / "lab.svg", tmp_path / "link.svg"
    link.symlink_to(path)
    for _ in range(2):
        assert menagerie("show", "topology", "lab", "-o", str(link)).code == 0
        path.chmod(0o640)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == ["lab.svg", "link.svg"]


def test_an_empty_file_is_written_and_a_device_is_not(tmp_path: Path) -> None:
    (tmp_path / "new").touch()
    write(tmp_path / "new", "mark\n", "a mark", bears("mark"))
    assert (tmp_path / "new").read_text() == "mark\n"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ForeignFileError):
        write(tmp_path / "pipe", "mark\n", "a mark", bears("mark"))


def test_a_failed_write_leaves_the_old_file_intact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_text("mark of old\n")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write(path, "mark of new\n", "a mark", bears("mark"))
    assert path.read_text() == "mark of old\n"
    assert os.listdir(tmp_path) == ["file"]


def test_a_folder_with_other_files_is_not_rendered_into(tmp_path: Path) -> None:
    (tmp_path / "machines").mkdir()
    (tmp_path / "machines" / "letters.txt").write_text(NOTES)
    with pytest.raises(ForeignFileError, match=r"letters\.txt"):
        write_tree({"boot.ipxe": "#!ipxe\n"}, tmp_path)
    assert (tmp_path / "machines" / "letters.txt").read_text() == NOTES
    assert not (tmp_path / "boot.ipxe").exists()


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("", True),
        ("# mine\n10.8.1.11 ssh-ed25519 AAAA\n|1|x=|y= ecdsa-sha2-nistp256 AAAA me@here\n", True),
        ("@cert-authority *.example.org ssh-rsa AAAA\n@revoked * sk-ssh-ed25519@openssh.com AAAA\n", True),
        (NOTES, False),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n", False),
    ],
)
def test_a_known_hosts_file_is_distinguished_from_other_files(text: str, *, is_one: bool) -> None:
    recognised: Callable[[bytes], bool] = KIND[1]
    assert recognised(text.encode()) is is_one


def full(*_: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_reported_with_the_file_and_the_former_file_stays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file, lines = tmp_path / "kept", tmp_path / "lines"
    file.write_text(NOTES)
    monkeypatch.setattr("cluster.writing.os.fsync", full)
    for write_it in (lambda: replace(file, b"new"), lambda: Lines(lines).replace([{"a": 1}])):
        with pytest.raises(OSError, match=r"No space left on device: '.*(kept|lines)'"):
            write_it()
    assert (file.read_text(), sorted(path.name for path in tmp_path.iterdir())) == (NOTES, ["kept", "lines.new"])


def test_half_a_line_on_a_full_disk_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """write(2) reports no error for what it could write."""
    whole = os.write
    monkeypatch.setattr("cluster.journal.os.write", lambda file, data: whole(file, data[:3]))
    with pytest.raises(OSError, match=r"No space left on device: '.*lines'") as error:
        Lines(tmp_path / "lines").append([{"a": 1}])
    assert error.value.errno == errno.ENOSPC


def test_an_error_keeps_the_name_that_it_has(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as error, naming(tmp_path / "other"):
        (tmp_path / "missing").read_text()
    assert error.value.filename == str(tmp_path / "missing")
