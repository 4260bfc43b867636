"""The process of one cluster: reads a request from standard input, writes stages and results to standard output.

It ends when its parent ends; its folder is then removed.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from stacks.validation.model import Stage
from stacks.validation.processes import end_from_outside


@dataclass(frozen=True)
class Request:
    """See `stacks.validation.fleet.Options`. path: of the cluster.yaml."""

    path: str
    allow_unknown: bool
    program: str
    pulumi: str
    folder: str


def main() -> None:
    # Standard output is for messages only: the program and its imports may print.
    out = os.fdopen(os.dup(1), "w", buffering=1)
    if os.getsid(0) != os.getpid():
        # At the end it kills its session, which must not be a shell's.
        os.setsid()
    os.dup2(2, 1)
    request = Request(**json.loads(sys.stdin.readline()))
    threading.Thread(target=_end_with_parent, args=(Path(request.folder),), daemon=True).start()
    _tell(out, run(request, lambda message: _tell(out, message)))
    # The engine's libraries have threads that the interpreter would wait for.
    os._exit(0)


def run(request: Request, tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Return the last message: the results of the stages. Calls `tell` when a stage starts."""
    # Import the engine's libraries only after the watch on the parent has started.
    from cluster.load import check_paths
    from sandbox.simcloud.rules import Offers
    from stacks.program import CLOUDS
    from stacks.validation.fleet import REAL
    from stacks.validation.offers import of_catalogue
    from stacks.validation.stages import validate

    loaded, _ = check_paths([Path(request.path)], allow_unknown=request.allow_unknown)
    cluster = loaded[0].cluster
    cloud = cluster.spec.control_plane.cloud
    if request.program == REAL and cloud not in CLOUDS:
        return {"not_offered": f"{cloud.value} is not offered yet: there is no provider to build {cluster.name}"}
    module, _, name = request.program.partition(":")
    program = getattr(importlib.import_module(module), name)

    def begin(stage: Stage, detail: str) -> None:
        tell({"stage": stage, "detail": detail})

    offers = Offers() if request.allow_unknown else of_catalogue()
    stages = validate(cluster, program, Path(request.pulumi), Path(request.folder), offers, begin)
    return {"stages": [stage.to_json() for stage in stages]}


def _tell(out: TextIO, message: dict[str, Any]) -> None:
    out.write(json.dumps(message) + "\n")


def _end_with_parent(folder: Path) -> None:
    """Wait for standard input to close, which happens even if the parent is killed, then end this session."""
    while sys.stdin.readline():
        pass
    end_from_outside(os.getpid(), folder)


if __name__ == "__main__":
    main()
