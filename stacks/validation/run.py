"""The stages of one cluster, in the process that `worker` is."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.load import check_paths
from sandbox.simcloud.rules import Offers
from stacks import program as stack
from stacks.validation.fleet import REAL
from stacks.validation.model import Stage
from stacks.validation.offers import of_catalogue
from stacks.validation.stages import validate


@dataclass(frozen=True)
class Request:
    """See `stacks.validation.fleet.Options`. path: of the cluster.yaml."""

    path: str
    allow_unknown: bool
    program: str
    pulumi: str
    folder: str


def run(request: Request, tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Return the last message: the results of the stages. Calls `tell` when a stage starts."""
    loaded, _ = check_paths([Path(request.path)], allow_unknown=request.allow_unknown)
    cluster = loaded[0].cluster
    cloud = cluster.spec.control_plane.cloud
    if request.program == REAL and cloud not in stack.CLOUDS:
        return {"not_offered": f"{cloud.value} is not offered yet: there is no provider to build {cluster.name}"}
    module, _, name = request.program.partition(":")
    program = getattr(importlib.import_module(module), name)

    def begin(stage: Stage, detail: str) -> None:
        tell({"stage": stage, "detail": detail})

    offers = Offers() if request.allow_unknown else of_catalogue()
    stages = validate(cluster, program, Path(request.pulumi), Path(request.folder), offers, begin)
    return {"stages": [stage.to_json() for stage in stages]}
