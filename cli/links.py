"""`links check`: what every machine says of its cards, cables and the length of packets."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from cli import exits
from cli.options import ClusterArg, JsonOpt, examples, words
from cli.output import console, print_json
from cli.specs import checked

app = typer.Typer(
    help="Links of a site's machines: cards, cables, MTU. docs/how-to/links.md explains it.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def group() -> None:
    """One command today; the name of the group stays."""


@app.command(
    epilog=examples(
        ("links check jaguar", "all machines with links"),
        ("links check jaguar --limit 'gpu-00*'", "some"),
        ("links check jaguar --json", "for programs"),
    )
)
def check(
    cluster: ClusterArg,
    limit: Annotated[
        list[str] | None,
        typer.Option("--limit", metavar="HOSTS", help="Only these hosts: names or patterns, with commas."),
    ] = None,
    parallel: Annotated[int, typer.Option("--parallel", min=1, help="Hosts at a time.")] = 64,
    wait: Annotated[int, typer.Option("--wait", min=0, help="Seconds to wait for switches to be heard.")] = 0,
    as_json: JsonOpt = False,
) -> None:
    """Ask every machine what is wrong with its links, and name swapped cables.

    Changes nothing. Exit 1 when something is wrong, 4 when a host is unreachable.
    """
    from operations import links
    from operations.ssh import ssh_to

    one = checked(cluster)
    hosts = links.chosen(one, words(limit))
    if not hosts:
        raise typer.BadParameter(f"no host of {one.name} with declared links matches")
    with ssh_to(one) as executor:
        answers = links.check(one, hosts, executor, parallel, wait)
    if as_json:
        print_json({"cluster": one.name, "hosts": [asdict(answer) for answer in answers]})
    else:
        for answer in answers:
            if answer.failed:
                console.print(Text.assemble(("no answer  ", "red"), f"{answer.host}: {answer.failed}"))
            for line in answer.lines:
                console.print(Text.assemble(("wrong      ", "red"), line))
            for note in answer.notes:
                console.print(Text.assemble(("note       ", "dim"), f"{answer.host}: {note}"))
        console.print(f"{sum(answer.ok for answer in answers)} of {len(answers)} hosts as wanted", markup=False)
    unreachable = any(answer.unreachable for answer in answers)
    good = all(answer.ok for answer in answers)
    raise typer.Exit(exits.DONE if good else exits.UNREACHABLE if unreachable else exits.FAILED)
