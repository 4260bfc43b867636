"""`python -m controllers.program CONTROLLER`: run one controller as the pod's ServiceAccount. SIGTERM ends it and releases its Lease."""

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
    """The process received SIGTERM or SIGINT."""


def main(words: Sequence[str]) -> int:
    """Return the exit code: 0 after SIGTERM or SIGINT, 2 for a spec with errors."""
    options = _parser().parse_args(words)
    kind = KINDS[options.controller]
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    try:
        load_cluster(options.spec)
        lease = Lease(PodAccess().api(), kind.lease, this_process())
        work = WORK[kind.name](options.spec, options.secrets, PodAccess(lease.check))
        loop = Loop(work, lease, options.every, _say)
        with serving(loop.pages(), options.listen, options.port):
            loop.run()
    except SpecError as error:
        _say(str(error))
        return 2
    except Ended:
        _say("exiting after a signal")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="controllers.program", description=__doc__)
    parser.add_argument("controller", choices=sorted(KINDS))
    parser.add_argument("--spec", type=Path, required=True, help="path of cluster.yaml")
    parser.add_argument("--secrets", type=Path, default=Path("/nowhere"), help="folder with one file per secret")
    parser.add_argument("--every", type=float, default=30.0, metavar="SECONDS", help="pause between two rounds")
    parser.add_argument(
        "--listen", default="0.0.0.0", metavar="ADDRESS", help="address that serves /metrics, /healthz and /readyz"
    )
    parser.add_argument("--port", type=int, default=9810)
    return parser


def _end(number: int, _: object) -> None:
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)
    raise Ended(number)


def _say(text: str) -> None:
    # One write per line: several threads log, and kubectl logs works by line.
    sys.stdout.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
