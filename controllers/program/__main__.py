"""`python -m controllers.program CONTROLLER`: run one controller as the pod's ServiceAccount. SIGTERM ends it and releases its Lease."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from clients import logs
from clients.lease import Lease, this_process
from clients.telemetry import serving
from cluster.load import load_cluster
from cluster.problems import SpecError
from controllers.kinds import KINDS
from controllers.program.access import PodAccess
from controllers.program.loop import Loop
from controllers.program.work import WORK

log = logging.getLogger("controllers.program")


class Ended(BaseException):
    """The process received SIGTERM or SIGINT."""


def main(words: Sequence[str]) -> int:
    """Return the exit code: 0 after SIGTERM or SIGINT, 1 after a defect, 2 for a spec with errors."""
    logs.set_up()
    threading.excepthook = _log_failure
    options = _parser().parse_args(words)
    kind = KINDS[options.controller]
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    try:
        load_cluster(options.spec)
        lease = Lease(PodAccess().api(), kind.lease, this_process())
        work = WORK[kind.name](options.spec, options.secrets, PodAccess(lease.check))
        loop = Loop(work, lease, options.every)
        with serving(loop.pages(), options.listen, options.port):
            loop.run()
    except SpecError as error:
        log.error("%s", error)
        return 2
    except Ended:
        log.info("exiting after a signal")
    except Exception:
        log.critical("exiting after an unexpected error", exc_info=True)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="controllers.program", description=__doc__)
    parser.add_argument("controller", choices=sorted(KINDS))
    parser.add_argument("--spec", type=Path, required=True, help="path of cluster.yaml")
    parser.add_argument("--secrets", type=Path, default=Path("/nowhere"), help="folder with one file per secret")
    parser.add_argument(
        "--every", type=float, default=30.0, metavar="SECONDS", help="from the beginning of a round to that of the next"
    )
    parser.add_argument(
        "--listen", default="0.0.0.0", metavar="ADDRESS", help="address that serves /metrics, /healthz and /readyz"
    )
    parser.add_argument("--port", type=int, default=9810)
    return parser


def _log_failure(failed: threading.ExceptHookArgs) -> None:
    log.critical("thread %s failed", failed.thread and failed.thread.name, exc_info=failed.exc_value)


def _end(number: int, _: object) -> None:
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)
    raise Ended(number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
