"""`unlock`: its arguments."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.examples import examples
from cli.options import ClusterArg, DryOpt, JsonOpt, YesOpt
from cli.specs import checked


@examples(
    ("unlock lab --operation ID --dry-run", "show what it did"),
    ("unlock lab --operation ID", "release an interrupted one"),
    ("unlock lab --operation ID --take-over", "even one that is alive"),
)
def unlock(
    cluster: ClusterArg,
    operation: Annotated[
        str, typer.Option("--operation", metavar="ID", help="ID of the operation, from `status CLUSTER operations`.")
    ],
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Release it even if it seems alive: it notices, and stops.")
    ] = False,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Release a cluster from an abandoned operation.

    Undoes nothing that the operation did: first check what it left unfinished. To
    finish it instead, run the same verb again. With --json, --yes is needed too.
    """
    loaded = checked(cluster)
    from cli.actions import operations

    operations.unlock(loaded, operation, take_over=take_over, dry_run=dry_run, yes=yes, as_json=as_json)
