"""`roce plan` and `roce test`: what switches must match, and whether the whole fabric is as fast as it can be."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from cli import exits
from cli.options import ClusterArg, DryOpt, FactsOpt, JsonOpt, LimitOpt, ParallelOpt, examples, words
from cli.output import console, errors, note, print_json, print_problems
from cli.specs import checked
from cluster.errors import RefusedError

if TYPE_CHECKING:
    from cluster.spec import Cluster
    from network.roce.plan import Plan
    from operations.roce import Report

MOST_SHOWN = 32
"""Hosts on a rail up to which a dry run prints every round; --json has all of them."""
_PARALLEL = 64


@examples(
    ("roce plan jaguar", "for every kind of switch"),
    ("roce plan jaguar --switch eos", "for one"),
    ("roce plan jaguar --facts f.yaml", "do these switches agree?"),
    ("roce plan jaguar --json", "numbers and snippets"),
)
def plan(
    cluster: ClusterArg,
    switch: Annotated[
        list[str] | None,
        typer.Option("--switch", metavar="SYSTEM", help="cumulus, onyx, sonic or eos; with commas, or given again."),
    ] = None,
    ports: Annotated[
        str, typer.Option("--ports", metavar="PORTS", help="The switch's ports, in its syntax. Default: a placeholder.")
    ] = "",
    facts: FactsOpt = None,
    as_json: JsonOpt = False,
) -> None:
    """Print the settings that switches need to match the hosts, or compare switches with them.

    --facts FILE says in YAML what switches have; docs/how-to/roce.md shows its format. It
    lists every difference, and the exit code is 2 if there is one. Reads the spec only.
    """
    one = checked(cluster)
    from network.roce import facts as switch_facts
    from network.roce.switches import System, numbers, snippet

    wanted = words(switch) or tuple(System)
    if wrong := [name for name in wanted if name not in tuple(System)]:
        raise typer.BadParameter(f"--switch {wrong[0]} isn't one of {', '.join(System)}")
    fabrics = _fabrics(one)
    problems = []
    if facts:
        told, document = switch_facts.load(facts)
        for site, roce in fabrics.items():
            problems += switch_facts.compare(roce, told, document, site if len(fabrics) > 1 else None)
    if as_json:
        sites = {
            site: {"numbers": numbers(roce), "snippets": {name: snippet(roce, System(name), ports) for name in wanted}}
            for site, roce in fabrics.items()
        }
        print_json({"cluster": one.name, "sites": sites, "problems": [problem.to_json() for problem in problems]})
    elif facts:
        print_problems(problems)
        if not problems:
            console.print(f"{len(told.switches)} switches agree with the hosts of {', '.join(fabrics)}", markup=False)
    else:
        for site, roce in fabrics.items():
            _print_plan(site, numbers(roce), {name: snippet(roce, System(name), ports) for name in wanted})
    raise typer.Exit(exits.BAD_INPUT if problems else exits.DONE)


def _fabrics(cluster: Cluster) -> dict[str, Any]:

    found = {name: site.roce for name, site in cluster.spec.sites.items() if site.roce}
    if not found:
        raise RefusedError(f"{cluster.name} has no RDMA: no site in its spec has roce", code="no-rdma")
    return found


def _print_plan(site: str, numbers: dict[str, Any], snippets: dict[str, str]) -> None:
    from network.roce.switches import TITLES, System

    console.print(Text(f"site {site}", style="bold"))
    width = max(map(len, numbers))
    for name, value in numbers.items():
        shown = ", ".join(map(str, value)) or "none" if isinstance(value, list) else value
        console.print(f"  {name:<{width}}  {shown}", markup=False)
    for system, text in snippets.items():
        console.print(Text(f"\n{TITLES[System(system)]}", style="bold"))
        console.print(text, markup=False, end="")


@examples(
    ("roce test jaguar --dry-run", "rounds, and the time"),
    ("roce test jaguar", "all pairs, or those missing"),
    ("roce test jaguar --rounds 5", "a quick look"),
    ("roce test jaguar --limit 'gpu-00*'", "some hosts"),
    ("roce test jaguar --rail rail-0", "one rail"),
)
def test(
    cluster: ClusterArg,
    rail: Annotated[
        list[str] | None,
        typer.Option("--rail", metavar="RAIL", help="Only this rail, or site/rail; with commas, or given again."),
    ] = None,
    limit: LimitOpt = None,
    rounds: Annotated[
        int | None, typer.Option("--rounds", min=1, metavar="N", help="Only the first N rounds of each rail.")
    ] = None,
    seconds: Annotated[int, typer.Option("--seconds", min=1, help="How long each pair sends.")] = 5,
    message: Annotated[int, typer.Option("--message", min=1, help="Bytes of a message.")] = 65536,
    queues: Annotated[int, typer.Option("--queues", min=1, help="Queue pairs that each pair of hosts uses.")] = 4,
    parallel: ParallelOpt = None,
    results: Annotated[
        Path | None, typer.Option("--results", metavar="FILE", help="Default: .menagerie/CLUSTER/roce-test.jsonl.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Discard earlier results, and measure all pairs.")] = False,
    dry_run: DryOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Measure every pair of hosts on every rail with ib_write_bw, and name what is slow.

    N hosts take N-1 rounds, in which no host is in two pairs. A pair is slow below
    97 % of the line rate at RoCE MTU 4096. It loads the fabric fully: drain it first.
    --dry-run prints the rounds and the time, and reaches no host. --parallel: pairs at
    a time, 64 by default. Exit code 1 if something is slow or failed, 4 if a host is
    unreachable.
    """
    one = checked(cluster)
    from network.roce import plan as planning

    pairs = max(len(one.host_list()) // 2, 1)
    at_once = parallel.at_least_one(pairs) if parallel else _PARALLEL
    options = planning.Options(seconds, message, queues, at_once, rounds)
    planned = planning.plan(one, options, only_rails=words(rail), limit=words(limit))
    if dry_run:
        _print_rounds(planned, as_json=as_json)
        return
    report, path = _measured(one, planned, results, fresh=fresh, quiet=as_json)
    if as_json:
        print_json(_document(planned, report, path))
    else:
        _print_report(planned, report, path)
    unreachable = any(port.unreachable for port in report.unfit)
    raise typer.Exit(exits.DONE if report.ok else exits.UNREACHABLE if unreachable else exits.FAILED)


def _measured(
    cluster: Cluster, planned: Plan, results: Path | None, *, fresh: bool, quiet: bool
) -> tuple[Report, Path]:
    from clients.access import STATE
    from network.roce.results import Results
    from operations.roce import run
    from operations.ssh import ssh_to

    path = results or STATE / cluster.name / "roce-test.jsonl"
    store = Results(path, planned, fresh=fresh)
    if store.unread:
        note(f"{store.unread} lines of {path} can't be read and tell nothing; their pairs are measured again")
    if store.pairs and not quiet:
        errors.print(f"{len(store.pairs)} pairs are in {path} already", style="dim", markup=False)
    with ssh_to(cluster) as executor:
        tell = (lambda _: None) if quiet else (lambda text: errors.print(f"… {text}", style="dim", markup=False))
        return run(planned, executor, store, tell), path


def _print_rounds(planned: Plan, *, as_json: bool) -> None:
    took = planned.seconds()
    if as_json:
        rails = {
            rail.key: [[[a.name, b.name] for a, b in each] for each in rail.rounds(planned.options.most)]
            for rail in planned.rails
        }
        print_json({"cluster": planned.cluster, "options": asdict(planned.options), "seconds": took, "rails": rails})
        return
    for rail in planned.rails:
        most = planned.options.most
        console.print(Text(f"rail {rail.key}: {len(rail.hosts)} hosts, {rail.pairs()} pairs", style="bold"))
        shown = 0
        for number, each in enumerate(rail.rounds(most)):
            shown += 1
            if len(rail.hosts) <= MOST_SHOWN:
                pairs = ", ".join(f"{sender.name} → {receiver.name}" for sender, receiver in each)
                console.print(f"  round {number + 1}: {pairs}", markup=False)
        if len(rail.hosts) > MOST_SHOWN:
            console.print(f"  {shown} rounds of {len(rail.hosts) // 2} pairs; --json lists them", markup=False)
    console.print(f"about {_time(took)}, {planned.options.parallel} pairs at a time", markup=False)


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _document(planned: Plan, report: Report, path: Path) -> dict[str, Any]:
    rails = {
        rail.key: {
            "hosts": len(rail.hosts),
            "pairs": rail.pairs(),
            "measured": report.measured[rail.key],
            "mark": report.marks[rail.key],
        }
        for rail in planned.rails
    }
    blames = [{**asdict(blame), "text": str(blame)} for blame in report.blames]
    unfit = [asdict(port) for port in report.unfit]
    return {
        "cluster": planned.cluster,
        "ok": report.ok,
        "rails": rails,
        "slow": blames,
        "unfit": unfit,
        "results": path,
    }


def _print_report(planned: Plan, report: Report, path: Path) -> None:
    for port in report.unfit:
        console.print(Text.assemble(("left out  ", "red"), f"{port.host} on {port.rail}: {port.reason}"))
    for blame in report.blames:
        console.print(Text.assemble(("slow      ", "red"), str(blame)))
    for rail in planned.rails:
        mark = f"mark {report.marks[rail.key]:.1%} of the line"
        console.print(
            f"rail {rail.key}: {report.measured[rail.key]} of {rail.pairs()} pairs measured, {mark}", markup=False
        )
    console.print("every pair measured is at the mark" if report.ok else f"all results: {path}", markup=False)
