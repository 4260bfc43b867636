"""`ceph render`: Rook's resources of a cluster, from its spec and from what its storage hosts have found."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli import exits
from cli.options import ClusterArg, JsonOpt, examples
from cli.output import errors, print_json

app = typer.Typer(
    help="Storage of a site, with Ceph and Rook. docs/ceph.md explains it.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _group() -> None:
    """So that a single verb keeps its name."""


@app.command(
    epilog=examples(
        ("ceph render jaguar --facts found", "from the files that hosts' menagerie-disks --json wrote"),
        ("ceph render jaguar --facts found --fsid 3f5c...", "where Ceph runs already"),
    )
)
def render(
    cluster: ClusterArg,
    facts: Annotated[
        Path,
        typer.Option(
            "--facts",
            metavar="FOLDER",
            exists=True,
            file_okay=False,
            help="Folder with a .json file of each storage host.",
        ),
    ],
    fsid: Annotated[
        str | None,
        typer.Option("--fsid", metavar="ID", help="ID of the Ceph that runs already, whose disks are kept."),
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Print what Rook is to bring about, for kubectl apply --server-side.

    Every storage host must have told its disks, and none may differ from the spec;
    exit 2 otherwise. Reads files only.
    """  # fmt: skip
    from ceph import render as resources
    from ceph.facts import judge, parse
    from ceph.names import storage
    from cli.main import _one  # which imports this module

    one = _one(cluster)
    if storage(one.spec) is None:
        raise typer.BadParameter(f"{one.name} has no ceph at any site")
    try:
        told = [parse(path.read_text(), str(path)) for path in sorted(facts.glob("*.json"))]
    except (ValueError, OSError) as error:
        raise typer.BadParameter(str(error)) from None
    found = judge(one, told, fsid)
    made = () if found.problems else resources.objects(one, found.devices)
    if as_json:
        print_json({"cluster": one.name, "problems": list(found.problems), "objects": list(made)})
    else:
        for line in found.problems:
            errors.print(line, markup=False, highlight=False, soft_wrap=True)
        typer.echo(resources.text(made), nl=False) if made else None
    raise typer.Exit(exits.BAD_INPUT if found.problems else exits.DONE)
