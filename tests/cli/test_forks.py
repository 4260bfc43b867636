"""gRPC and the start of Ansible in one process do not disturb each other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FORKS = """
import cli
import os, sys, grpc, pexpect
from concurrent.futures import ThreadPoolExecutor
server = grpc.server(ThreadPoolExecutor(4))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
grpc.channel_ready_future(grpc.insecure_channel(f"127.0.0.1:{port}")).result(30)
sys.stdout.write("".join(pexpect.run("/bin/true").decode() for _ in range(100)))
sys.stdout.flush()
os._exit(0)
"""


def test_a_program_forked_next_to_grpc_prints_only_its_own_output() -> None:
    """Without the variable that `cli` sets, about one fork in a hundred printed something."""
    done = subprocess.run([sys.executable, "-c", FORKS], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
