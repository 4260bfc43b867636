"""A turn among the hosts of a cluster: a lock in the etcd that they report to, held by etcdctl while a command runs."""

from __future__ import annotations

import select
import subprocess
import time
from typing import Any

from .units import PATIENCE_S, outcome, succeeds

ANSWER_S = 5
LOOK_S = 30.0
# For the turns of others, and one's own.
TURN_S = 3 * PATIENCE_S
GOES_S = 5.0


def out_of_reach(refresh: dict[str, Any]) -> str:
    """What to say of an etcd that answers no read, for which it needs a quorum; nothing where it does."""
    words = [*refresh["report"], f"--command-timeout={ANSWER_S}s", "get", "/menagerie/", "--keys-only"]
    reason = succeeds(words)
    if not reason:
        return ""
    # What gRPC saw is the innermost of several errors, in a line of JSON.
    why = reason.rpartition("desc = ")[2].splitlines()[0].strip('\\"}')
    return f"etcd {refresh['etcd']} is out of reach: {why}"


def in_turn(command: list[str], refresh: dict[str, Any]) -> str:
    """Why a command behind a lock did not succeed; nothing where it did. It says something as soon as its turn has come.

    `etcdctl lock` has no time-out: where nobody answers, it waits for its session for ever. So the etcd is asked before,
    and again and again while others have their turns.
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
    """End an etcdctl that waits. It gives its place in the queue back, for which the etcd must answer; a lease ends it else."""
    process.terminate()
    try:
        process.wait(GOES_S)
    except subprocess.TimeoutExpired:
        process.kill()
