"""`audit`: the controls of the CIS benchmark and our own, with what was seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.text import Text

from cli import exits
from cli.options import ClusterArg, JsonOpt, examples, words
from cli.output import Details, console, errors, print_json
from cli.specs import checked
from cluster.audit.model import Result, Status

_SHOWN = 8
_COLOURS = {
    Status.PASS: "green",
    Status.FAIL: "red",
    Status.EXCEPTION: "yellow",
    Status.MANUAL: "cyan",
    Status.NOT_SEEN: "magenta",
}


@examples(
    ("audit lab", "every control, with what was seen"),
    ("audit lab --failed", "what somebody must fix"),
    ("audit lab --section 1.2,M", "the API server, and our own checks"),
    ("audit lab --accept-unseen M.8", "this one may stay unseen"),
    ("audit lab --json > audit.json", "for auditors and programs"),
)
def audit(
    cluster: ClusterArg,
    section: Annotated[
        list[str] | None,
        typer.Option(
            "--section",
            metavar="ID",
            help="Only controls whose ID starts with this: 1.2, 4, M; with commas, or given again.",
        ),
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Show only what failed.")] = False,
    accept_unseen: Annotated[
        list[str] | None,
        typer.Option("--accept-unseen", metavar="ID", help="Controls that may stay unseen, as in --section."),
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Audit a running cluster against the CIS Kubernetes Benchmark, and with our own checks. Changes nothing.

    A control that the cluster does not meet on purpose is an exception, with its
    reason. What is unreachable is "not seen", and never passes. docs/reference/audit.md
    has every control. Exit code 1 if one failed, 4 if one could not be seen.
    """
    one, chosen, accepted = checked(cluster), _known(words(section)), _known(words(accept_unseen))
    from cli.look import built
    from cluster.audit import decide
    from operations.audit import look

    details = Details()
    with details.lines():
        evidence = look(built(one), details.tell)
    found = [result for result in decide.results(evidence) if _begins(result.control.id, chosen or ("",))]
    wrong, unseen = decide.failed(found), _unseen(found, accepted)
    unreachable = sorted({each.host for each in evidence.unseen if not each.expected})
    code = exits.FAILED if wrong else exits.UNREACHABLE if unreachable or unseen["not_accepted"] else exits.DONE
    if as_json:
        shown = [each.to_json() for each in (wrong if failed else found)]
        print_json(
            decide.document(one.name, tuple(found), evidence)
            | {"ok": code == exits.DONE, "results": shown, "unseen": unseen, "unreachable": unreachable}
        )
    else:
        _print(wrong if failed else found)
        _print_counts(decide.counts(found))
    if unseen["not_accepted"]:
        errors.print(Text(_not_seen(one.name, unseen["not_accepted"]), style="red"))
    raise typer.Exit(code)


def _unseen(found: Sequence[Result], accepted: tuple[str, ...]) -> dict[str, list[str]]:
    """IDs of controls that were not seen: by design, as somebody accepted, or neither."""
    told: dict[str, list[str]] = {"by_design": [], "accepted": [], "not_accepted": []}
    for result in found:
        if result.status is Status.NOT_SEEN:
            why = [each.expected for each in result.findings if each.ok is None]
            kind = "by_design" if why and all(why) else "accepted" if _begins(result.control.id, accepted) else ""
            told[kind or "not_accepted"].append(result.control.id)
    return told


def _not_seen(cluster: str, ids: Sequence[str]) -> str:
    names = ",".join(ids[:_SHOWN])
    return (
        f"error: {len(ids)} control{'s' if len(ids) > 1 else ''} could not be seen, so nobody knows whether the cluster meets "
        f"{'them' if len(ids) > 1 else 'it'}: {names}{f' and {len(ids) - _SHOWN} more' if len(ids) > _SHOWN else ''}\n"
        f"  why: ./menagerie audit {cluster} --section {names}\n"
        "  what never can be seen there: --accept-unseen ID"
    )


def _known(prefixes: tuple[str, ...]) -> tuple[str, ...]:
    """The same, once each is the beginning of some control's ID."""
    from cluster.audit.controls import controls

    for prefix in prefixes:
        if not any(_begins(control.id, (prefix,)) for control in controls()):
            raise typer.BadParameter(f"no control begins with {prefix}; docs/reference/audit.md lists them")
    return prefixes


def _begins(id_: str, prefixes: tuple[str, ...]) -> bool:
    """Whole numbers only: 1.1 begins 1.1.9 and not 1.10."""
    return any(not prefix or f"{id_}.".startswith(f"{prefix}.") for prefix in prefixes)


def _print(results: Sequence[Result]) -> None:
    from cluster.audit.controls import SECTIONS, section

    told = ""
    for result in results:
        control = result.control
        if (name := section(control)) != told:
            console.print(Text(f"{name}  {SECTIONS[name]}", style="bold"))
            told = name
        mark = Text.assemble(
            (f"{result.status.value:<9}", _COLOURS[result.status]), f"  {control.id:<7}{control.title}"
        )
        console.print(mark)
        if result.status is not Status.PASS:
            console.print(Text(f"{'':11}{result.seen}", style="dim"))
        if result.status is Status.EXCEPTION:
            console.print(Text(f"{'':11}why not: {control.exception}", style="dim"))
        if result.status is Status.MANUAL:
            console.print(Text(f"{'':11}look at it: {control.manual}", style="dim"))


def _print_counts(counts: dict[str, dict[str, int]]) -> None:
    from cluster.audit.controls import SECTIONS

    width = max((len(SECTIONS[name]) for name in counts), default=0)
    columns = [status.value for status in Status]
    console.print(Text(f"{'':7}{'':{width}}" + "".join(f"{name:>11}" for name in columns), style="bold"))
    for name, row in counts.items():
        console.print(
            f"{name:<7}{SECTIONS[name]:<{width}}" + "".join(f"{row.get(each, 0) or '':>11}" for each in columns)
        )
    whole = [sum(row.get(each, 0) for row in counts.values()) for each in columns]
    console.print(f"{'':7}{'all':<{width}}" + "".join(f"{number or '':>11}" for number in whole))
