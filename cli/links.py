"""`status CLUSTER links`: what every machine says of its cards, cables and the length of packets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from cli import exits
from cli.output import console
from cli.specs import checked
from cli.status import Asked, Look, Looked

if TYPE_CHECKING:
    from operations.links import Answer

_PARALLEL = 64


def section(cluster: str, asked: Asked) -> Look:
    one = checked(cluster)
    from operations import links
    from operations.ssh import ssh_to

    hosts = links.chosen(one, asked.limit)
    if not hosts:
        raise typer.BadParameter(f"no host of {one.name} with declared links matches")
    parallel = asked.parallel.at_least_one(len(hosts)) if asked.parallel else _PARALLEL

    def look() -> Looked:
        with ssh_to(one) as executor:
            answers = links.check(one, hosts, executor, parallel, int(asked.wait))
        unreachable = any(answer.unreachable for answer in answers)
        good = all(answer.ok for answer in answers)
        code = exits.DONE if good else exits.UNREACHABLE if unreachable else exits.FAILED
        document = {"cluster": one.name, "hosts": [asdict(answer) for answer in answers]}
        return Looked(code, document, lambda: _show(answers))

    return look


def _show(answers: Sequence[Answer]) -> None:
    for answer in answers:
        if answer.failed:
            console.print(Text.assemble(("no answer  ", "red"), f"{answer.host}: {answer.failed}"))
        for line in answer.lines:
            console.print(Text.assemble(("wrong      ", "red"), line))
        for note in answer.notes:
            console.print(Text.assemble(("note       ", "dim"), f"{answer.host}: {note}"))
    console.print(f"{sum(answer.ok for answer in answers)} of {len(answers)} hosts as wanted", markup=False)
