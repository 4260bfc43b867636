"""`audit`: its arguments."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.examples import examples
from cli.options import ClusterArg, JsonOpt, words
from cli.specs import built, checked


@examples(
    ("audit lab", "every control, with its evidence"),
    ("audit lab --failed", "only what must be fixed"),
    ("audit lab --section 1.2,M", "the API server, and our own checks"),
    ("audit lab --accept-unseen M.8", "M.8 may stay unseen"),
    ("audit lab --json > audit.json", "for an auditor or a program"),
)
def audit(
    cluster: ClusterArg,
    section: Annotated[
        list[str] | None,
        typer.Option(
            "--section",
            metavar="ID",
            help="Only controls whose ID starts with this: 1.2, 4, M; separated by commas, or repeated.",
        ),
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Show only what failed.")] = False,
    accept_unseen: Annotated[
        list[str] | None,
        typer.Option("--accept-unseen", metavar="ID", help="Accept these controls as unseen; IDs as in --section."),
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Audit a running cluster against the CIS Kubernetes Benchmark and our own checks. Changes nothing.

    A control that the cluster deliberately does not meet is an exception, with
    its reason. A control whose evidence is unreachable is "not seen", and never
    passes. docs/reference/audit.md lists every control.

    Exit code 1 if a control failed, 4 if one was not seen.
    """
    loaded = checked(cluster) if section or accept_unseen else built(cluster)
    from cli.actions import audit

    audit.audit(loaded, words(section), words(accept_unseen), only_failed=failed, as_json=as_json)
