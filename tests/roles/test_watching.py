"""Events that menagerie-links and menagerie-roce receive from the kernel, and their messages to systemd."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from menagerie_host import watching

# Runs in a separate network namespace.
HEARING = """
import subprocess, threading
from menagerie_host.watching import link_events
def set(state):
    subprocess.run(["ip", "link", "set", "lo", state], check=True)
events = link_events()
set("up"), set("down"), set("up")
next(events)
later = threading.Thread(target=next, args=(events,), daemon=True)
later.start()
later.join(1.5)
assert later.is_alive(), "one burst was reported twice"
set("down")
later.join(10)
assert not later.is_alive(), "a later change was not reported"
print("heard")
"""


def test_systemd_is_notified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        watching.tell_systemd("READY=1")
        assert manager.recv(100) == b"READY=1"


def test_a_burst_of_link_events_is_reported_once_and_the_next_change_again() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(watching.__file__).parents[1])}
    command = ["unshare", "-n", sys.executable, "-c", HEARING]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=False)
    if "unshare" in done.stderr:
        pytest.skip("no right to a network namespace")
    assert done.stdout == "heard\n", done.stderr
