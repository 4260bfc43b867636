"""The counter of packets, in a network namespace of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
ROOT = Path(__file__).resolve().parents[2]
NUMBER = 2000
SEND = f"""
import socket
with socket.socket(type=socket.SOCK_DGRAM) as ours, socket.socket(type=socket.SOCK_DGRAM) as theirs:
    theirs.bind(("10.0.0.2", 7))
    ours.bind(("10.0.0.1", 0))
    for _ in range({NUMBER}):
        ours.sendto(b"x", ("10.0.0.2", 7))
"""
LOOPBACK = "ip link set lo up; ip address add 10.0.0.1/32 dev lo; ip address add 10.0.0.2/32 dev lo; "


def test_packets_that_arrived_before_the_end_are_counted_however_late_the_counter_reads_them() -> None:
    watch = f"exec {sys.executable} -m sandbox.lab.capture lo 10.0.0.0/8 8472"
    command = ["unshare", "--net", "sh", "-ec", LOOPBACK + watch]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as counter:
        assert counter.stdout is not None
        assert counter.stdout.readline() == "ready\n"
        counter.send_signal(signal.SIGSTOP)
        inside = ["nsenter", f"--net=/proc/{counter.pid}/ns/net", sys.executable, "-c", SEND]
        subprocess.run(inside, check=True)
        assert counter.stdin is not None
        counter.stdin.close()
        counter.stdin = None
        counter.send_signal(signal.SIGCONT)
        counted = json.loads(counter.communicate(timeout=60)[0])
    # The loopback shows each packet when it is sent and when it arrives.
    assert counted == {"encapsulated": 0, "plain": 2 * NUMBER}
