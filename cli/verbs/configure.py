"""`configure`: its arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.examples import examples
from cli.holding import holds
from cli.options import (
    ClusterArg,
    DiffOpt,
    DryOpt,
    JsonOpt,
    LimitOpt,
    MaxFailuresOpt,
    ParallelOpt,
    TagsOpt,
    YesOpt,
    pattern,
    words,
)
from cli.specs import checked


@examples(
    ("configure lab --dry-run --diff", "show what would change"),
    ("configure lab", "all workers; asks first"),
    ("configure lab --limit rack_onprem_r1", "one rack"),
    ("configure lab --tags neighbours", "one role"),
    ("configure lab --resume --yes", "continue an interrupted run"),
    ("configure lab --parallel 5% --max-failures 10", "cautiously"),
    ("configure lab --report run.html", "write a page about the run"),
)
@holds()
def configure(
    cluster: ClusterArg,
    limit: LimitOpt = None,
    tags: TagsOpt = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Skip hosts that an earlier run brought to this state, even if they have drifted since."
        ),
    ] = False,
    parallel: ParallelOpt = None,
    max_failures: MaxFailuresOpt = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="FILE.html", dir_okay=False, help="Write a page about the run, even if it failed."
        ),
    ] = None,
    diff: DiffOpt = False,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Configure the workers of a built cluster as its spec says.

    Runs only the workers' step of `up`: Ansible, and nothing in the cloud. A
    second run changes nothing. After an interruption, --resume continues. A host
    that fails or is unreachable does not delay the others. Hosts are configured
    in batches of --parallel, 200 by default; a batch starts when the one before
    is done.

    Exit code 1 if hosts failed, 4 if hosts are unreachable and no other failed.
    docs/how-to/configure.md has more.
    """
    loaded = checked(cluster)
    from cli.actions import configure

    request = configure.PlaybookRequest(pattern(limit), words(tags), dry_run, diff, resume, parallel, max_failures)
    configure.configure(loaded, request, report=report, yes=yes or as_json or dry_run, as_json=as_json)
