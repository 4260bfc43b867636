"""Programs of several modules, as placed on hosts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from host_program import SHARED, declared, library

from tests.roles.placed import placed

COMMAND = "/usr/local/sbin/greet"
MAIN = "import argparse\nfrom . import words\nargparse.ArgumentParser().parse_args()\nprint(words.GREETING)\n"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "role" / "files" / "greeting"
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "__pycache__" / "words.cpython-311.pyc").write_bytes(b"")
    (folder / "__main__.py").write_text(MAIN)
    (folder / "words.py").write_text("from menagerie_host import Refused\nGREETING = Refused('hello')\n")
    (folder / "words.py~").write_text("of an editor\n")
    (folder / "names.json").write_text("{}\n")
    return folder


def test_modules_and_data_are_placed_before_the_command(package: Path) -> None:
    files = declared(package, COMMAND, ["files"])
    assert [file["path"] for file in files] == [
        "/usr/local/lib/greet/greeting/__main__.py",
        "/usr/local/lib/greet/greeting/names.json",
        "/usr/local/lib/greet/greeting/words.py",
        "/usr/local/lib/greet/menagerie_host/__init__.py",
        "/usr/local/lib/greet/menagerie_host/files.py",
        COMMAND,
    ]
    assert files[4]["text"] == (SHARED / "files.py").read_text()
    assert [file["mode"] for file in files] == ["0644"] * 5 + ["0755"]
    assert library(COMMAND) == "/usr/local/lib/greet"


def test_the_command_runs_its_own_modules_under_its_own_name_and_compiles_nothing(
    package: Path, tmp_path: Path
) -> None:
    """Works in any current folder, and with any module path of the caller."""
    other = tmp_path / "other"
    (other / "greeting").mkdir(parents=True)
    (other / "greeting" / "__main__.py").write_text("raise SystemExit('the wrong one')\n")
    command = placed(declared(package, COMMAND, ["files"]), tmp_path / "host")
    environment = {**os.environ, "PYTHONPATH": str(other), "PYTHONPYCACHEPREFIX": ""}
    run = subprocess.run([command], cwd=other, env=environment, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "hello\n"), run.stderr
    help_ = subprocess.run([command, "--help"], env=environment, capture_output=True, text=True, check=True)
    assert help_.stdout.startswith("usage: greet ")
    assert list((tmp_path / "host").rglob("__pycache__")) == []


def test_a_shared_module_that_does_not_exist_is_refused(package: Path) -> None:
    with pytest.raises(OSError, match=r"nothing\.py"):
        declared(package, COMMAND, ["nothing"])
