"""`python -m controllers.program CONTROLLER`: one controller, as the pod's ServiceAccount. Ends with SIGTERM, and gives its Lease up."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from clients.lease import Lease, this_process
from clients.telemetry import serving
from cluster.load import load_cluster
from cluster.problems import SpecError
from controllers.kinds import KINDS
from controllers.program.access import PodAccess
from controllers.program.loop import Loop
from controllers.program.work import WORK


class Ended(BaseException):
    """SIGTERM or SIGINT."""


def main(words: Sequence[str]) -> int:
    """An exit code: 0 when it was told to end, 2 of a spec with errors."""
    given = _parser().parse_args(words)
    kind = KINDS[given.controller]
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    try:
        load_cluster(given.spec)
        lease = Lease(PodAccess().api(), kind.lease, this_process())
        work = WORK[kind.name](given.spec, given.secrets, PodAccess(lease.check))
        loop = Loop(work, lease, given.every, _say)
        with serving(loop.pages(), given.listen, given.port):
            loop.run()
    except SpecError as error:
        _say(str(error))
        return 2
    except Ended:
        _say("was told to end")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="controllers.program", description=__doc__)
    parser.add_argument("controller", choices=sorted(KINDS))
    parser.add_argument("--spec", type=Path, required=True, help="the cluster.yaml")
    parser.add_argument("--secrets", type=Path, default=Path("/nowhere"), help="a folder with a file for each secret")
    parser.add_argument("--every", type=float, default=30.0, metavar="SECONDS", help="between two rounds")
    parser.add_argument("--listen", default="0.0.0.0", metavar="ADDRESS", help="of /metrics, /healthz, /readyz")
    parser.add_argument("--port", type=int, default=9810)
    return parser


def _end(number: int, _: object) -> None:
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)
    raise Ended(number)


def _say(text: str) -> None:
    # One write a line: several threads speak, and kubectl logs knows lines.
    sys.stdout.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
