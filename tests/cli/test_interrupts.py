"""Ctrl-C and SIGTERM, with and without a terminal: exit code, message, and no process left behind."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cli import interrupts, running
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]

# An `up` whose cloud side is a child that counts its interrupts and takes a moment to exit, like Pulumi.
_CHILD = """
import json, os, pathlib, signal, sys, time
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(time.monotonic()))
note = pathlib.Path(sys.argv[1])
def write(done):
    new = note.with_suffix(".new")
    new.write_text(json.dumps({"pid": os.getpid(), "interrupts": len(seen), "done": done}))
    new.replace(note)
write(False)
while not seen:
    time.sleep(0.02)
time.sleep(0.6)
write(True)
"""
_PARENT = """
import subprocess, sys
from cli import running
from operations import build
def up(cluster, steps, selection, report):
    with steps.step("cloud side"):
        subprocess.Popen([sys.executable, "-c", sys.argv[1], sys.argv[2]]).wait()
build.up, build.refuse = up, lambda cluster, selection: None
sys.exit(running.run(["up", "lab", "--yes"]))
"""


def _wait_for(note: Path) -> None:
    until(note.exists, "the child never ran", every_s=0.02)


def _check(note: Path, code: int, output: str) -> None:
    child = json.loads(note.read_text())
    assert code == 130, output
    assert "run the same command again to continue" in output
    assert "Traceback" not in output
    assert (child["interrupts"], child["done"]) == (1, True)
    assert not Path(f"/proc/{child['pid']}").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_command_reaches_its_children_once_and_it_waits_for_them(
    tmp_path: Path, number: signal.Signals
) -> None:
    note = tmp_path / "note"
    process = subprocess.Popen(
        [sys.executable, "-c", _PARENT, _CHILD, str(note)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    _wait_for(note)
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    _check(note, process.returncode, output)


def test_ctrl_c_on_a_terminal_reaches_the_children_once_and_it_waits_for_them(tmp_path: Path) -> None:
    note = tmp_path / "note"
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execv(sys.executable, [sys.executable, "-c", _PARENT, _CHILD, str(note)])
    _wait_for(note)
    os.write(terminal, b"\x03")
    output = b""
    try:
        while part := os.read(terminal, 4096):
            output += part
    except OSError:
        pass  # Linux reports a closed terminal like this
    _, status = os.waitpid(pid, 0)
    _check(note, os.waitstatus_to_exitcode(status), output.decode())


def test_a_child_that_does_not_exit_is_killed_and_a_daemon_in_its_own_session_is_not() -> None:
    code = """
import signal, subprocess, sys, time
from cli import interrupts
deaf = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print(flush=True); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE)
daemon = subprocess.Popen(["sleep", "600"], start_new_session=True)
child.stdout.readline()
assert interrupts.children() == {child.pid}, (interrupts.children(), child.pid)
interrupts.end_children(grace_s=0.2)
print(interrupts.children(), daemon.poll())
daemon.kill()
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("set() None", "")


def test_an_interrupted_command_restores_the_reporting_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGINT)

    before = threading.excepthook
    monkeypatch.setattr(running, "_command", lambda: interrupted)
    monkeypatch.setattr(interrupts, "end_children", lambda: None)
    # Children of this process are servers of other tests.
    monkeypatch.setattr(interrupts, "_session", dict)
    assert running.run(["check", "lab"]) == 130
    assert threading.excepthook is before
