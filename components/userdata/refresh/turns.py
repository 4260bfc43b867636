"""Turns of a cluster's hosts: etcdctl holds a lock, in the etcd that they report to, while a command runs."""

from __future__ import annotations

import select
import subprocess
import time
from typing import Any

from .units import PATIENCE_S, outcome, succeeds

ANSWER_S = 5
LOOK_S = 30.0
# For the turns of other hosts and this one.
TURN_S = 3 * PATIENCE_S
GOES_S = 5.0


def out_of_reach(refresh: dict[str, Any]) -> str:
    """Return an error if the etcd answers no read, which needs a quorum; "" if it does."""
    words = [*refresh["report"], f"--command-timeout={ANSWER_S}s", "get", "/menagerie/", "--keys-only"]
    reason = succeeds(words)
    if not reason:
        return ""
    # The error of gRPC is the innermost of several, in a line of JSON.
    why = reason.rpartition("desc = ")[2].splitlines()[0].strip('\\"}')
    return f"etcd {refresh['etcd']} is out of reach: {why}"


def in_turn(command: list[str], refresh: dict[str, Any]) -> str:
    """Run a command that takes a lock, and prints once it has it. Return why it failed, "" if it succeeded.

    `etcdctl lock` has no time-out: without a quorum, it waits for its session for ever. So probe the etcd first, and
    every `LOOK_S` during the turns of other hosts.
    """
    reason = out_of_reach(refresh)
    if reason:
        return reason
    over = time.monotonic() + TURN_S
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        heard: Any = process.stdout
        while not select.select([heard], [], [], LOOK_S)[0]:
            reason = out_of_reach(refresh)
            if time.monotonic() > over:
                reason = f"its turn did not come within {TURN_S:.0f} s"
            if reason:
                _end(process)
                return reason
        try:
            out, err = process.communicate(timeout=max(0.0, over - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            return f"its turn was not over within {TURN_S:.0f} s"
    return outcome(command, process.returncode, out, err)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop a waiting etcdctl. It leaves the queue if the etcd answers; otherwise its lease expires."""
    process.terminate()
    try:
        process.wait(GOES_S)
    except subprocess.TimeoutExpired:
        process.kill()
