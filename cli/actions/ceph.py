"""`ceph facts` and `ceph render`: disks of storage hosts, and Rook's resources made from them and the spec."""

from __future__ import annotations

from pathlib import Path

import typer

from cli import exits
from cli.output import console, errors, print_json, write_out
from cluster.ceph import Ceph
from cluster.reading import UnreadableError, read_text
from cluster.spec import Cluster
from components.ceph import render as resources
from components.ceph.facts import judge, parse
from components.ceph.names import storage
from operations.disks import gather
from operations.ssh import ssh_to


def facts(cluster: Cluster, folder: Path, *, as_json: bool) -> None:
    """Write a file per storage host, and exit."""
    ceph = _ceph(cluster)
    tell = (lambda _: None) if as_json else (lambda text: errors.print(f"… {text}", style="dim", markup=False))
    with ssh_to(cluster) as executor:
        answers = list(gather(cluster, ceph, executor, folder, tell))
    missing = [answer for answer in answers if answer.file is None]
    if as_json:
        hosts = [
            {"host": answer.host, "file": str(answer.file) if answer.file else None, "why": answer.why}
            for answer in answers
        ]
        print_json({"cluster": cluster.name, "hosts": hosts})
    else:
        for answer in missing:
            errors.print(f"{answer.host}: {answer.why}", markup=False, highlight=False, soft_wrap=True)
        console.print(
            f"{folder} has facts of {len(answers) - len(missing)} of {len(answers)} storage hosts", markup=False
        )
        if not missing:
            console.print(f"next: ./menagerie ceph render {cluster.name} --facts {folder}", markup=False)
    unreachable = any(answer.unreachable for answer in missing)
    raise typer.Exit(exits.UNREACHABLE if unreachable else exits.FAILED if missing else exits.DONE)


def render(cluster: Cluster, folder: Path, fsid: str | None, *, as_json: bool) -> None:
    """Print Rook's resources, and exit. folder: with the facts of hosts. fsid: of a Ceph that runs already."""
    _ceph(cluster)
    try:
        disks = [parse(read_text(path), str(path)) for path in sorted(folder.glob("*.json"))]
    except (ValueError, UnreadableError) as error:
        raise typer.BadParameter(str(error)) from None
    verdict = judge(cluster, disks, fsid)
    objects = () if verdict.problems else resources.objects(cluster, verdict.devices)
    if as_json:
        print_json({"cluster": cluster.name, "problems": list(verdict.problems), "objects": list(objects)})
    else:
        for line in verdict.problems:
            errors.print(line, markup=False, highlight=False, soft_wrap=True)
        write_out(resources.text(objects)) if objects else None
    raise typer.Exit(exits.BAD_INPUT if verdict.problems else exits.DONE)


def _ceph(cluster: Cluster) -> Ceph:
    """Return the settings of the cluster's Ceph. Errors: raises BadParameter if it has none."""
    ceph = storage(cluster.spec)
    if ceph is None:
        raise typer.BadParameter(f"no site of {cluster.name} has ceph; docs/how-to/ceph.md shows how to declare it")
    return ceph[1]
