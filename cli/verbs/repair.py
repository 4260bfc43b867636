"""`repair`: its arguments."""

from __future__ import annotations

from typing import Annotated

import typer
from pydantic_core import PydanticCustomError

from cli.examples import examples
from cli.holding import holds
from cli.options import (
    ClusterArg,
    DrainTimeoutOpt,
    DryOpt,
    JsonOpt,
    LimitOpt,
    WatchOpt,
    YesOpt,
    words,
)
from cli.specs import built, cluster_folder
from cluster.quantities import parse_share


@examples(
    ("repair jaguar --dry-run", "show what is broken"),
    ("repair jaguar", "ask, then repair"),
    ("repair jaguar --limit r07", "one rack"),
    ("repair jaguar --retry gpu-017", "after its hardware was fixed"),
    ("repair jaguar --max-removal 60%", "override a brake"),
    ("repair jaguar --watch 60 --yes", "as a service"),
)
@holds()
def repair(
    cluster: ClusterArg,
    limit: LimitOpt = None,
    retry: Annotated[
        list[str] | None,
        typer.Option("--retry", metavar="HOST", help="First clear this host's failed repairs and its ticket."),
    ] = None,
    watch: WatchOpt = None,
    max_unhealthy: Annotated[
        str | None,
        typer.Option("--max-unhealthy", metavar="N|P%", help="Override the pools' limits in the spec for this run."),
    ] = None,
    max_removal: Annotated[
        str | None,
        typer.Option("--max-removal", metavar="N|P%", help="Override repair.max_removed for this run."),
    ] = None,
    drain_timeout: DrainTimeoutOpt = 900.0,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Repair broken nodes: drain, reboot or power-cycle, check, return to service.

    repair.conditions in the spec defines what counts as broken, and after how
    long. Workers in the region are replaced. A host that repairs do not fix stays
    out of service, with a ticket that says what to do. While many nodes or the
    control plane are unhealthy, no repair starts.

    Idempotent: if interrupted, run it again. --watch needs --yes. Exit code 1 if
    something is left to repair. docs/how-to/repair.md has more.
    """
    if watch and not (yes or as_json or dry_run):
        raise typer.BadParameter("--watch cannot ask: add --yes")
    loaded = built(cluster)
    brakes = (_share(max_unhealthy, "--max-unhealthy"), _share(max_removal, "--max-removal"))
    from cli.actions import draining, repair

    repair.repair(
        loaded,
        cluster_folder(cluster),
        draining.rules(drain_timeout),
        brakes,
        words(limit),
        words(retry),
        watch,
        dry_run=dry_run,
        yes=yes or as_json,
        as_json=as_json,
    )


def _share(text: str | None, option: str) -> str | None:
    try:
        return None if text is None else str(parse_share(text))
    except PydanticCustomError as error:
        raise typer.BadParameter(f"{option}: {error.message()}; write 3 or 60%") from None
