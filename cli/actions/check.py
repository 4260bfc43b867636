"""`check`: its output. Needs no engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import typer

from cli import exits
from cli.output import console, print_json, print_problems
from cli.specs import load
from cluster import placeholders
from cluster.load import clusters as known_clusters
from cluster.positions import Positions
from cluster.problems import Problem
from cluster.project import ROOT
from cluster.sources import missing_checksums
from cluster.spec import Cluster
from controllers.tenancy.directory.check import problems as problems_of_people


def _beside(path: Path, cluster: Cluster, positions: Positions) -> Iterator[Problem]:
    yield from problems_of_people(path, cluster, positions)
    yield from placeholders.left(positions)


def check(names: Sequence[str] | None, *, allow_unknown: bool, as_json: bool) -> None:
    """Check specs and the files of people, print all problems, and exit. names: all clusters if there are none."""
    loaded, problems = load(names or known_clusters(ROOT), allow_unknown=allow_unknown, beside=_beside)
    failed = any(problem.is_error for problem in problems)
    valid = [item.cluster.name for item in loaded]
    if as_json:
        print_json({"clusters": valid, "problems": [problem.to_json() for problem in problems]})
    else:
        print_problems(problems)
        if not failed:
            console.print(f"{len(valid)} checked, no errors: {', '.join(valid)}", markup=False)
            for item in loaded:
                lines = [f"  {line}" for line in missing_checksums(item.cluster.spec)]
                if lines and len(loaded) > 1:
                    lines = [
                        f"  of {len(lines) - 1} downloads, without which `up` does not start; to list them: ./menagerie check {item.cluster.name}"
                    ]
                if lines:
                    console.print(
                        "\n".join([f"{item.cluster.name} lacks checksums", *lines]), markup=False, soft_wrap=True
                    )
    raise typer.Exit(exits.BAD_INPUT if failed else exits.DONE)
