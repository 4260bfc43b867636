"""`ceph facts` and `ceph render`: what storage hosts have found, and Rook's resources of it and of the spec."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli import exits
from cli.options import ClusterArg, JsonOpt, examples
from cli.output import console, errors, print_json, write_out
from cli.specs import checked
from cluster.ceph import Ceph
from cluster.reading import UnreadableError, read_text
from cluster.spec import Cluster

app = typer.Typer(
    help="Storage of a site, with Ceph and Rook. docs/how-to/ceph.md explains it.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command(
    epilog=examples(
        ("ceph facts jaguar -o found", "once role storage_host has run"),
        ("ceph facts jaguar -o found --json", "what became of each host"),
    )
)
def facts(
    cluster: ClusterArg,
    folder: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FOLDER", file_okay=False, help="Where the facts go, a file a host."),
    ],
    as_json: JsonOpt = False,
) -> None:
    """Ask every storage host for its disks, over ssh. Changes nothing on them.

    Exit 4 where hosts can't be reached, 1 where one can't say; the others' facts are written all the same.
    """  # fmt: skip
    from operations.disks import gather
    from operations.ssh import ssh_to

    one, ceph = _with_ceph(cluster)
    tell = (lambda _: None) if as_json else (lambda text: errors.print(f"… {text}", style="dim", markup=False))
    with ssh_to(one) as executor:
        answers = list(gather(one, ceph, executor, folder, tell))
    lost = [answer for answer in answers if answer.file is None]
    if as_json:
        told = [{"host": a.host, "file": str(a.file) if a.file else None, "why": a.why} for a in answers]
        print_json({"cluster": one.name, "hosts": told})
    else:
        for answer in lost:
            errors.print(f"{answer.host}: {answer.why}", markup=False, highlight=False, soft_wrap=True)
        console.print(f"{len(answers) - len(lost)} of {len(answers)} storage hosts are in {folder}", markup=False)
        if not lost:
            console.print(f"next: ./menagerie ceph render {one.name} --facts {folder}", markup=False)
    unreachable = any(answer.unreachable for answer in lost)
    raise typer.Exit(exits.UNREACHABLE if unreachable else exits.FAILED if lost else exits.DONE)


def _with_ceph(cluster: str) -> tuple[Cluster, Ceph]:
    from components.ceph.names import storage

    one = checked(cluster)
    found = storage(one.spec)
    if found is None:
        raise typer.BadParameter(f"{one.name} has no ceph at any site; docs/how-to/ceph.md says how to describe one")
    return one, found[1]


@app.command(
    epilog=examples(
        ("ceph render jaguar --facts found", "from what `ceph facts` has fetched"),
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
    from components.ceph import render as resources
    from components.ceph.facts import judge, parse

    one, _ = _with_ceph(cluster)
    try:
        told = [parse(read_text(path), str(path)) for path in sorted(facts.glob("*.json"))]
    except (ValueError, UnreadableError) as error:
        raise typer.BadParameter(str(error)) from None
    found = judge(one, told, fsid)
    made = () if found.problems else resources.objects(one, found.devices)
    if as_json:
        print_json({"cluster": one.name, "problems": list(found.problems), "objects": list(made)})
    else:
        for line in found.problems:
            errors.print(line, markup=False, highlight=False, soft_wrap=True)
        write_out(resources.text(made)) if made else None
    raise typer.Exit(exits.BAD_INPUT if found.problems else exits.DONE)
