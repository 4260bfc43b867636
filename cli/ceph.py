"""`ceph facts` and `ceph render`: disks of storage hosts, and Rook's resources made from them and the spec."""

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
    ("ceph facts jaguar -o found", "after the role storage_host"),
    ("ceph facts jaguar -o found --json", "the result for each host"),
)
def facts(
    cluster: ClusterArg,
    output: OutputOpt = None,
    as_json: JsonOpt = False,
) -> None:
    """Collect the disks of every storage host over SSH. Changes nothing on the hosts.

    --output is the folder that gets a file per host. Exit code 4 if hosts are
    unreachable, 1 if one reports nothing; facts of the others are written anyway.
    """
    folder = folder_of(output)
    loaded, ceph = _with_ceph(cluster)
    from operations.disks import gather
    from operations.ssh import ssh_to

    tell = (lambda _: None) if as_json else (lambda text: errors.print(f"… {text}", style="dim", markup=False))
    with ssh_to(loaded) as executor:
        answers = list(gather(loaded, ceph, executor, folder, tell))
    missing = [answer for answer in answers if answer.file is None]
    if as_json:
        hosts = [
            {"host": answer.host, "file": str(answer.file) if answer.file else None, "why": answer.why}
            for answer in answers
        ]
        print_json({"cluster": loaded.name, "hosts": hosts})
    else:
        for answer in missing:
            errors.print(f"{answer.host}: {answer.why}", markup=False, highlight=False, soft_wrap=True)
        console.print(
            f"{folder} has facts of {len(answers) - len(missing)} of {len(answers)} storage hosts", markup=False
        )
        if not missing:
            console.print(f"next: ./menagerie ceph render {loaded.name} --facts {folder}", markup=False)
    unreachable = any(answer.unreachable for answer in missing)
    raise typer.Exit(exits.UNREACHABLE if unreachable else exits.FAILED if missing else exits.DONE)


def _with_ceph(cluster: str) -> tuple[Cluster, Ceph]:
    loaded = checked(cluster)
    from components.ceph.names import storage

    ceph = storage(loaded.spec)
    if ceph is None:
        raise typer.BadParameter(f"no site of {loaded.name} has ceph; docs/how-to/ceph.md shows how to declare it")
    return loaded, ceph[1]


@examples(
    ("ceph render jaguar --facts found", "from the output of `ceph facts`"),
    ("ceph render jaguar --facts found --fsid 3f5c...", "a running Ceph"),
)
def render(
    cluster: ClusterArg,
    facts: FactsOpt = None,
    fsid: Annotated[
        str | None,
        typer.Option("--fsid", metavar="ID", help="ID of a Ceph that is already running; its disks are kept."),
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Print Rook's resources, for kubectl apply --server-side. Reads files only.

    --facts is the folder that `ceph facts` wrote: a .json file per storage host.
    Exit code 2 if the facts of a host are missing, or its disks differ from the
    spec.
    """
    from components.ceph import render as resources
    from components.ceph.facts import judge, parse

    if facts is None or not facts.is_dir():
        raise typer.BadParameter("give --facts FOLDER, the folder that `ceph facts` wrote")
    loaded, _ = _with_ceph(cluster)
    try:
        disks = [parse(read_text(path), str(path)) for path in sorted(facts.glob("*.json"))]
    except (ValueError, UnreadableError) as error:
        raise typer.BadParameter(str(error)) from None
    verdict = judge(loaded, disks, fsid)
    objects = () if verdict.problems else resources.objects(loaded, verdict.devices)
    if as_json:
        print_json({"cluster": loaded.name, "problems": list(verdict.problems), "objects": list(objects)})
    else:
        for line in verdict.problems:
            errors.print(line, markup=False, highlight=False, soft_wrap=True)
        write_out(resources.text(objects)) if objects else None
    raise typer.Exit(exits.BAD_INPUT if verdict.problems else exits.DONE)
