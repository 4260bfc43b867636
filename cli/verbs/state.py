"""`state move`: its arguments."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.examples import examples
from cli.holding import holds
from cli.options import ClusterArg, DryOpt, JsonOpt, YesOpt
from cli.specs import checked


@examples(
    ("state move ibis --dry-run", "show from where to where"),
    ("state move ibis", "from this checkout; asks first"),
    ("state move ibis --from s3://old", "from another backend"),
)
@holds()
def move(
    cluster: ClusterArg,
    source: Annotated[
        str, typer.Option("--from", metavar="URL", help="Backend that has the stack. (default: this checkout)")
    ] = "",
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Move a cluster's state to the backend that is configured now.

    First configure the new backend: backend.url in Pulumi.yaml, PULUMI_BACKEND_URL
    or `pulumi login`. The state is copied, compared, and then removed from the old
    backend; a copy stays in .menagerie/. Resources are not touched. An interrupted
    move continues when it is run again.
    """
    loaded = checked(cluster)
    from cli.actions import state

    state.move(loaded, source, dry_run=dry_run, yes=yes, as_json=as_json)
