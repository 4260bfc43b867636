"""`audit`: the controls of the CIS benchmark and our own, with the evidence for each."""

from __future__ import annotations

from collections.abc import Sequence

import typer
from rich.text import Text

from cli import exits
from cli.output import Details, console, errors, print_json
from cluster.audit import decide
from cluster.audit.controls import SECTIONS, controls
from cluster.audit.controls import section as section_of
from cluster.audit.model import Result, Status
from cluster.spec import Cluster
from operations import audit as operation

_SHOWN = 8
_COLOURS = {
    Status.PASS: "green",
    Status.FAIL: "red",
    Status.EXCEPTION: "yellow",
    Status.MANUAL: "cyan",
    Status.NOT_SEEN: "magenta",
}


def audit(
    cluster: Cluster, sections: tuple[str, ...], accept_unseen: tuple[str, ...], *, only_failed: bool, as_json: bool
) -> None:
    """Audit the cluster, print the result, and exit. sections: how IDs of controls begin; all controls if empty."""
    chosen, accepted = _existing(sections), _existing(accept_unseen)
    details = Details()
    with details.lines():
        evidence = operation.collect_evidence(cluster, details.tell)
    results = [result for result in decide.results(evidence) if _starts_with(result.control.id, chosen or ("",))]
    failures, unseen = decide.failed(results), _unseen(results, accepted)
    unreachable = sorted({gap.host for gap in evidence.unseen if not gap.expected})
    code = exits.FAILED if failures else exits.UNREACHABLE if unreachable or unseen["not_accepted"] else exits.DONE
    if as_json:
        shown = [result.to_json() for result in (failures if only_failed else results)]
        print_json(
            decide.document(cluster.name, tuple(results), evidence)
            | {"ok": code == exits.DONE, "results": shown, "unseen": unseen, "unreachable": unreachable}
        )
    else:
        _print(failures if only_failed else results)
        _print_counts(decide.counts(results))
    if unseen["not_accepted"]:
        errors.print(Text(_unseen_message(cluster.name, unseen["not_accepted"]), style="red"))
    raise typer.Exit(code)


def _unseen(results: Sequence[Result], accepted: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the IDs of controls that were not seen: by design, accepted by --accept-unseen, or neither."""
    ids: dict[str, list[str]] = {"by_design": [], "accepted": [], "not_accepted": []}
    for result in results:
        if result.status is Status.NOT_SEEN:
            by_design = [finding.expected for finding in result.findings if finding.ok is None]
            kind = (
                "by_design"
                if by_design and all(by_design)
                else "accepted"
                if _starts_with(result.control.id, accepted)
                else ""
            )
            ids[kind or "not_accepted"].append(result.control.id)
    return ids


def _unseen_message(cluster: str, ids: Sequence[str]) -> str:
    names = ",".join(ids[:_SHOWN])
    return (
        f"error: {len(ids)} control{'s' if len(ids) > 1 else ''} could not be seen, so it is unknown whether the cluster meets "
        f"{'them' if len(ids) > 1 else 'it'}: {names}{f' and {len(ids) - _SHOWN} more' if len(ids) > _SHOWN else ''}\n"
        f"  why: ./menagerie audit {cluster} --section {names}\n"
        "  if a control can never be seen there: --accept-unseen ID"
    )


def _existing(prefixes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the prefixes. Errors: BadParameter if no control's ID starts with one of them."""
    for prefix in prefixes:
        if not any(_starts_with(control.id, (prefix,)) for control in controls()):
            raise typer.BadParameter(f"no control starts with {prefix}; docs/reference/audit.md lists them")
    return prefixes


def _starts_with(id_: str, prefixes: tuple[str, ...]) -> bool:
    """Compare whole numbers: 1.1.9 starts with 1.1, and 1.10 does not."""
    return any(not prefix or f"{id_}.".startswith(f"{prefix}.") for prefix in prefixes)


def _print(results: Sequence[Result]) -> None:
    heading = ""
    for result in results:
        control = result.control
        if (name := section_of(control)) != heading:
            console.print(Text(f"{name}  {SECTIONS[name]}", style="bold"))
            heading = name
        mark = Text.assemble(
            (f"{result.status.value:<9}", _COLOURS[result.status]), f"  {control.id:<7}{control.title}"
        )
        console.print(mark)
        if result.status is not Status.PASS:
            console.print(Text(f"{'':11}{result.observed}", style="dim"))
        if result.status is Status.EXCEPTION:
            console.print(Text(f"{'':11}exception: {control.exception}", style="dim"))
        if result.status is Status.MANUAL:
            console.print(Text(f"{'':11}check by hand: {control.manual}", style="dim"))


def _print_counts(counts: dict[str, dict[str, int]]) -> None:
    width = max((len(SECTIONS[name]) for name in counts), default=0)
    columns = [status.value for status in Status]
    console.print(Text(f"{'':7}{'':{width}}" + "".join(f"{name:>11}" for name in columns), style="bold"))
    for name, row in counts.items():
        console.print(
            f"{name:<7}{SECTIONS[name]:<{width}}" + "".join(f"{row.get(status, 0) or '':>11}" for status in columns)
        )
    totals = [sum(row.get(status, 0) for row in counts.values()) for status in columns]
    console.print(f"{'':7}{'all':<{width}}" + "".join(f"{number or '':>11}" for number in totals))
