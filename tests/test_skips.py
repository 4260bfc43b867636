"""Skips on a prepared machine, tried in a separate pytest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HOOKS = "from tests.conftest import pytest_runtest_makereport\n"
TEST = """
import pytest

@pytest.mark.{mark}
def test_x():
    {body}
"""


@pytest.mark.parametrize(
    ("given", "mark", "body", "counted"),
    [
        ("1", "filterwarnings", "pytest.skip('not in the cache: tools etcd')", "1 failed"),
        ("1", "skipif(True, reason='dnsmasq is not installed')", "pass", "1 error"),
        ("1", "filterwarnings", "pytest.skip('no loop device can be made here: x')", "1 skipped"),
        ("", "filterwarnings", "pytest.skip('not in the cache: tools etcd')", "1 skipped"),
        ("1", "xfail", "assert False", "1 xfailed"),
    ],
)
def test_a_skip_fails_under_make_unless_no_set_up_can_fix_it(
    tmp_path: Path, given: str, mark: str, body: str, counted: str
) -> None:
    (tmp_path / "conftest.py").write_text(HOOKS)
    (tmp_path / "test_x.py").write_text(TEST.format(mark=mark.replace("filterwarnings", "usefixtures()"), body=body))
    environment = {**os.environ, "MENAGERIE_NO_SKIPS": given, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert counted in done.stdout, done.stdout + done.stderr
    assert ("make programs" in done.stdout) is (counted in ("1 failed", "1 error"))
