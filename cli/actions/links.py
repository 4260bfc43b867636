"""`status CLUSTER links`: every machine's report on its cards, cables and MTU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import typer
from rich.text import Text

from cli import exits
from cli.output import console
from cli.sections import Look, Options, Report
from cluster.spec import Cluster
from operations import links
from operations.links import LinksAnswer
from operations.ssh import ssh_to

_PARALLEL = 64


def section(cluster: Cluster, folder: Path, options: Options) -> Look:
    hosts = links.chosen(cluster, options.limit)
    if not hosts:
        raise typer.BadParameter(f"no host of {cluster.name} that has links in its spec matches")
    parallel = options.parallel.at_least_one(len(hosts)) if options.parallel else _PARALLEL

    def look() -> Report:
        with ssh_to(cluster) as executor:
            answers = links.check(cluster, hosts, executor, parallel, int(options.settle))
        unreachable = any(answer.unreachable for answer in answers)
        all_ok = all(answer.ok for answer in answers)
        code = exits.DONE if all_ok else exits.UNREACHABLE if unreachable else exits.FAILED
        document = {"cluster": cluster.name, "hosts": [asdict(answer) for answer in answers]}
        return Report(code, document, lambda: _show(answers))

    return look


def _show(answers: Sequence[LinksAnswer]) -> None:
    for answer in answers:
        if answer.failed:
            console.print(Text.assemble(("no answer  ", "red"), f"{answer.host}: {answer.failed}"))
        for line in answer.lines:
            console.print(Text.assemble(("wrong      ", "red"), line))
        for note in answer.notes:
            console.print(Text.assemble(("note       ", "dim"), f"{answer.host}: {note}"))
    console.print(f"{sum(answer.ok for answer in answers)} of {len(answers)} hosts as declared", markup=False)
