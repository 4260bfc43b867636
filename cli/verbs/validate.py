"""`validate`: its arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.examples import examples
from cli.options import AllowUnknownOpt, ClustersArg, JsonOpt, ParallelOpt
from cluster.load import clusters as known_clusters
from cluster.load import find_cluster
from cluster.project import ROOT


@examples(
    ("validate", "all clusters in a cloud"),
    ("validate horus ibis", "two clusters"),
    ("validate examples/horus", "a cluster outside inventories/"),
    ("validate --parallel 1", "on a machine with little memory"),
    ("validate --json", "for a program"),
    ("validate --sarif out.sarif", "for a code host; docs/how-to/ci.md"),
    ("validate --junit out.xml", "for a CI server; docs/how-to/ci.md"),
)
def validate(
    clusters: ClustersArg = None,
    allow_unknown: AllowUnknownOpt = False,
    parallel: ParallelOpt = None,
    sarif: Annotated[
        Path | None, typer.Option("--sarif", metavar="FILE", dir_okay=False, help="Write findings as SARIF 2.1.0.")
    ] = None,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", dir_okay=False, help="Write stages as JUnit XML.")
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Try specs and their stacks in simulated clouds, without an account or root.

    Checks each cluster's spec. Then the real Pulumi engine plans, builds, plans
    again, updates, looks for drift and destroys, against simulated clouds, with a
    temporary state. What they accept is planned, and proved for no real cloud.
    It warns of default quotas that a cluster exceeds. It does not read your backend, stacks or credentials. By
    default it takes all clusters in a cloud, one per core at a time. A cluster
    needs about 450 MB of memory.

    Exit code 1 if a stage failed, 2 if a spec has errors. docs/how-to/ci.md has
    more.
    """
    for file in (sarif, junit):
        if file and not file.absolute().parent.is_dir():
            raise typer.BadParameter(f"there is no folder {file.parent}")
    paths = [find_cluster(name, ROOT) for name in clusters or known_clusters(ROOT)]
    from cli.actions import validate

    validate.validate(
        paths,
        parallel,
        are_named=bool(clusters),
        allow_unknown=allow_unknown,
        sarif=sarif,
        junit=junit,
        as_json=as_json,
    )
