"""`ceph facts` and `ceph render`: their arguments."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.examples import examples
from cli.options import ClusterArg, FactsOpt, JsonOpt, OutputOpt, folder_of
from cli.specs import checked


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
    loaded = checked(cluster)
    from cli.actions import ceph

    ceph.facts(loaded, folder, as_json=as_json)


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
    if facts is None or not facts.is_dir():
        raise typer.BadParameter("give --facts FOLDER, the folder that `ceph facts` wrote")
    loaded = checked(cluster)
    from cli.actions import ceph

    ceph.render(loaded, facts, fsid, as_json=as_json)
