"""`menagerie web` as a command: its link, its end, its refusals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.cli.terminal import command
from tests.waiting import patience, until

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def menagerie(monkeypatch, capsys):
    return command(monkeypatch, capsys)


def test_it_prints_a_link_that_works_and_ctrl_c_ends_it_with_exit_code_0():
    process = subprocess.Popen(
        [sys.executable, "-m", "cli", "web", "examples/horus"],
        cwd=ROOT, env={**os.environ, "NO_COLOR": "1"}, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        link = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32,}/", link), process.stderr.read()
        assert b"horus" in fetched(link)
        until(lambda: b"not built" in fetched(link))
        process.send_signal(signal.SIGINT)
        assert process.wait(patience(30)) == 0
        assert process.stderr.read() == "Ctrl-C ends it\n"
    finally:
        process.kill()
        process.communicate()


def fetched(link):
    with urllib.request.urlopen(link, timeout=patience(30)) as answer:
        return answer.read()


@pytest.mark.parametrize("words", [("--host", "0.0.0.0"), ("examples/horus", "--host", "10.0.0.1"), ("--host", "::")])
def test_other_machines_are_let_in_only_for_one_cluster_and_over_tls(menagerie, words):
    ran = menagerie("web", *words)
    assert ran.code == 2
    assert "name one cluster, which decides who may read, and give --cert and --key" in " ".join(ran.err.split())


def test_half_a_pair_and_a_pair_for_this_machine_alone_are_refused(menagerie):
    for words in (("--cert", "c.pem"), ("--key", "k.pem")):
        ran = menagerie("web", *words)
        assert (ran.code, "give --cert and --key together" in ran.err) == (2, True)
    ran = menagerie("web", "--cert", "c.pem", "--key", "k.pem")
    assert (ran.code, "for another --host" in ran.err) == (2, True)


def test_a_cluster_that_is_not_built_can_let_nobody_in(menagerie, monkeypatch, tmp_path):
    monkeypatch.setattr("operations.stack.STATE", tmp_path)
    ran = menagerie("web", "examples/horus", "--host", "10.255.0.1", "--cert", "c.pem", "--key", "k.pem")
    assert (ran.code, "has not been built" in ran.err) == (1, True)


def test_files_that_are_no_pair_are_refused_before_anything_listens(menagerie, monkeypatch, tmp_path):
    monkeypatch.setattr("operations.stack.access_to", lambda _: None)
    (tmp_path / "c.pem").write_text("x")
    file = str(tmp_path / "c.pem")
    ran = menagerie("web", "examples/horus", "--host", "10.255.0.1", "--cert", file, "--key", file)
    assert (ran.code, "are not a certificate and its key" in " ".join(ran.err.split())) == (2, True)


WITHOUT = """
import sys
sys.modules["uvicorn"] = None
from cli.running import run
sys.exit(run(["web", "examples/horus"]))
"""


def test_without_the_extra_it_says_which_one():
    """In a process of its own: one that has served pages has all of uvicorn, and would serve until interrupted."""
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT], cwd=ROOT, capture_output=True, text=True, timeout=patience(60), check=False
    )
    assert (ran.returncode, "needs the extra 'web'" in ran.stderr) == (1, True), ran.stderr
