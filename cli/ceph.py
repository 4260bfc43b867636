"""`ceph facts` and `ceph render`: the disks that storage hosts report, and Rook's resources of them and of the spec."""

from __future__ import annotations

from typing import Annotated

import typer

from cli import exits
from cli.options import ClusterArg, FactsOpt, JsonOpt, OutputOpt, examples, folder_of
from cli.output import console, errors, print_json, write_out
from cli.specs import checked
from cluster.ceph import Ceph
from cluster.reading import UnreadableError, read_text
from cluster.spec import Cluster


@examples(
    ("ceph facts jaguar -o found", "after role storage_host has run"),
    ("ceph facts jaguar -o found --json", "the result of each host"),
)
def facts(
    cluster: ClusterArg,
    output: OutputOpt = None,
    as_json: JsonOpt = False,
) -> None:
    """Collect the disks of every storage host over SSH. Changes nothing on the hosts.

    --output gets a file for each host. Exit code 4 if hosts are unreachable, 1 if one
    reports nothing; facts of the others are written anyway.
    """
    folder = folder_of(output)
    one, ceph = _with_ceph(cluster)
    from operations.disks import gather
    from operations.ssh import ssh_to

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
    one = checked(cluster)
    from components.ceph.names import storage

    found = storage(one.spec)
    if found is None:
        raise typer.BadParameter(f"{one.name} has no ceph at any site; docs/how-to/ceph.md says how to describe one")
    return one, found[1]


@examples(
    ("ceph render jaguar --facts found", "from what `ceph facts` collected"),
    ("ceph render jaguar --facts found --fsid 3f5c...", "Ceph runs already"),
)
def render(
    cluster: ClusterArg,
    facts: FactsOpt = None,
    fsid: Annotated[
        str | None,
        typer.Option("--fsid", metavar="ID", help="ID of the Ceph that runs already; its disks are kept."),
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Print the resources for Rook, for kubectl apply --server-side.

    --facts is the folder that `ceph facts` wrote: a .json file for each storage host.
    Exit code 2 if the disks of a host are missing, or differ from the spec.
    Reads files only.
    """
    from components.ceph import render as resources
    from components.ceph.facts import judge, parse

    if facts is None or not facts.is_dir():
        raise typer.BadParameter("give --facts FOLDER, which `ceph facts` wrote")
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
