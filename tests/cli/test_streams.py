"""The command with an odd terminal, pipe or disk, in its own process, as an operator runs it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = str(ROOT / "tests" / "specs" / "valid-smallest.yaml")


def ran(line: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of sh; $M is the command."""
    env = {**os.environ, "M": str(ROOT / "menagerie"), **environment}
    return subprocess.run(["sh", "-c", line], env=env, capture_output=True, timeout=120, check=False)


def test_without_home_the_command_works() -> None:
    done = ran(f'env -u HOME -u MENAGERIE_CACHE -u XDG_CACHE_HOME "$M" check {SPEC}')
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_ascii_terminal_gets_escapes(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(Path(SPEC).read_text().replace("name: koala", 'name: "köala→"'))
    done = ran(f'"$M" check {path}', PYTHONIOENCODING="ascii")
    assert done.returncode == 2
    assert b"k\\xf6ala\\u2192" in done.stderr
    assert b"Traceback" not in done.stderr
    drawn = ran(f'"$M" show topology {SPEC}', PYTHONIOENCODING="ascii")
    assert (drawn.returncode, drawn.stderr) == (0, b"")
    assert drawn.stdout.decode().endswith("</svg>\n")


@pytest.mark.parametrize("verb", [f"show flows {SPEC}", f"show flows {SPEC} --json", "show schema"])
def test_a_reader_that_goes_away_ends_the_command_quietly(verb: str) -> None:
    done = ran(f'("$M" {verb}; echo "code $?" >&2) | true')
    assert done.stderr == b"code 141\n"


@pytest.mark.parametrize("verb", [f"check {SPEC} --json", f"check {SPEC}", f"show flows {SPEC} --json"])
def test_a_full_disk_under_standard_output_is_one_error(verb: str) -> None:
    done = ran(f'"$M" {verb} >/dev/full')
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    assert b"this is a bug" not in done.stderr
    assert b"space" in done.stderr


def test_a_full_disk_under_both_streams_is_a_failure() -> None:
    assert ran(f'"$M" check {SPEC} --json >/dev/full 2>&1').returncode == 1
