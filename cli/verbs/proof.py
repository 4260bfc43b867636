"""`check`, `verify` and `explain`: their arguments."""

from __future__ import annotations

from typing import Annotated

import typer

from cli import explained
from cli.examples import examples
from cli.options import (
    AllowUnknownOpt,
    ClusterArg,
    ClustersArg,
    DryOpt,
    JsonOpt,
    OnlyOpt,
    words,
)
from cli.specs import built, checked


@examples(
    ("check", "all in inventories/, and together"),
    ("check lab", "one cluster, by name"),
    ("check new/cluster.yaml", "one that is not in inventories/"),
    ("check --allow-unknown", "accept what the catalogue lacks"),
    ("check --json", "for an editor or a CI job"),
)
def check(clusters: ClustersArg = None, allow_unknown: AllowUnknownOpt = False, as_json: JsonOpt = False) -> None:
    """Check specs and the files they name, and report all errors at once. Changes nothing.

    Several specs are also checked against each other: names and address ranges.
    Each error has a file, line, column, code, and a way to fix it. `explain CODE`
    and docs/reference/errors.md explain the codes.

    Exit code 2 if there is an error.
    """
    from cli.actions import check

    check.check(clusters, allow_unknown=allow_unknown, as_json=as_json)


@examples(
    ("verify lab", "all proofs; takes minutes"),
    ("verify lab --list", "what proofs do to the cluster"),
    ("verify lab --dry-run", "which proofs can run here"),
    ("verify lab --only direct,vxlan", "only these proofs"),
    ("verify lab --json", "with the evidence of each proof"),
)
def verify(
    cluster: ClusterArg,
    only: OnlyOpt = None,
    list_: Annotated[bool, typer.Option("--list", help="List the proofs and what each does to a cluster.")] = False,
    dry_run: DryOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Prove that a cluster works, and say how: traffic, DNS, logs, events etcd.

    In the lab it also injects faults: it stops the events etcd, kills an API
    server host and etcd members, and repairs them. Exit code 1 if a proof fails,
    or all are skipped.
    """
    loaded = checked(cluster) if list_ or only else built(cluster)
    from cli.actions import verify

    verify.verify(loaded, only=words(only), list_only=list_, dry_run=dry_run, as_json=as_json)


@examples(
    ("explain ETC-001", "a code of `check`"),
    ("explain locked", "a code of a failure, from --json"),
    ("explain", "all codes"),
)
def explain(
    code: Annotated[
        str | None, typer.Argument(metavar="CODE", help="A code of `check`, or of a failure. Default: all.")
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Explain a code of `check`, such as ETC-001, or of a failure, such as locked.

    docs/reference/errors.md has all codes of `check`. Exit code 2 for a code that
    does not exist.
    """
    explained.explain(code, as_json=as_json)
