"""Programs of several modules, as they are placed on hosts."""

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
    made = tmp_path / "role" / "files" / "greeting"
    (made / "__pycache__").mkdir(parents=True)
    (made / "__pycache__" / "words.cpython-311.pyc").write_bytes(b"")
    (made / "__main__.py").write_text(MAIN)
    (made / "words.py").write_text("from menagerie_host import Refused\nGREETING = Refused('hello')\n")
    (made / "words.py~").write_text("of an editor\n")
    (made / "names.json").write_text("{}\n")
    return made


def test_modules_and_data_come_first_and_the_command_last(package: Path) -> None:
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


def test_the_command_runs_the_modules_beside_it_under_its_own_name_and_compiles_nothing(
    package: Path, tmp_path: Path
) -> None:
    """Whatever folder it is called in, and whatever modules its caller prefers."""
    other = tmp_path / "other"
    (other / "greeting").mkdir(parents=True)
    (other / "greeting" / "__main__.py").write_text("raise SystemExit('the wrong one')\n")
    command = placed(declared(package, COMMAND, ["files"]), tmp_path / "host")
    environment = {**os.environ, "PYTHONPATH": str(other), "PYTHONPYCACHEPREFIX": ""}
    told = subprocess.run([command], cwd=other, env=environment, capture_output=True, text=True, check=False)
    assert (told.returncode, told.stdout) == (0, "hello\n"), told.stderr
    helped = subprocess.run([command, "--help"], env=environment, capture_output=True, text=True, check=True)
    assert helped.stdout.startswith("usage: greet ")
    assert list((tmp_path / "host").rglob("__pycache__")) == []


def test_a_shared_module_that_does_not_exist_is_refused(package: Path) -> None:
    with pytest.raises(OSError, match=r"nothing\.py"):
        declared(package, COMMAND, ["nothing"])
