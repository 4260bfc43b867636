"""`roce plan` and `roce test`: settings that switches must match, and a speed test of the whole fabric."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer
from rich.text import Text

from cli import exits
from cli.output import console, errors, note, print_json, print_problems
from clients.access import STATE
from cluster.errors import RefusedError
from cluster.spec import Cluster
from network.roce import facts as switch_facts
from network.roce import plan as planning
from network.roce.plan import MeasurementOptions, MeasurementPlan
from network.roce.results import Results
from network.roce.switches import TITLES, System, numbers, snippet
from operations import ssh
from operations.roce import FabricReport, run

__all__ = ["MeasurementOptions", "plan", "test"]

MOST_SHOWN = 32
"""Largest number of hosts on a rail for which a dry run prints every round; --json has them all."""


def plan(cluster: Cluster, switches: tuple[str, ...], ports: str, facts: Path | None, *, as_json: bool) -> None:
    """Print the settings for these switch systems, or compare the switches that `facts` describes; and exit."""
    systems = switches or tuple(System)
    if unknown := [name for name in systems if name not in tuple(System)]:
        raise typer.BadParameter(f"--switch {unknown[0]} is not one of {', '.join(System)}")
    fabrics = _fabrics(cluster)
    problems = []
    if facts:
        described, source = switch_facts.load(facts)
        for site, roce in fabrics.items():
            problems += switch_facts.compare(roce, described, source, site if len(fabrics) > 1 else None)
    if as_json:
        sites = {
            site: {"numbers": numbers(roce), "snippets": {name: snippet(roce, System(name), ports) for name in systems}}
            for site, roce in fabrics.items()
        }
        print_json({"cluster": cluster.name, "sites": sites, "problems": [problem.to_json() for problem in problems]})
    elif facts:
        print_problems(problems)
        if not problems:
            console.print(
                f"{len(described.switches)} switches agree with the hosts of {', '.join(fabrics)}", markup=False
            )
    else:
        for site, roce in fabrics.items():
            _print_plan(site, numbers(roce), {name: snippet(roce, System(name), ports) for name in systems})
    raise typer.Exit(exits.BAD_INPUT if problems else exits.DONE)


def _fabrics(cluster: Cluster) -> dict[str, Any]:
    fabrics = {name: site.roce for name, site in cluster.spec.sites.items() if site.roce}
    if not fabrics:
        raise RefusedError(f"{cluster.name} has no RDMA: no site in its spec has roce", code="no-rdma")
    return fabrics


def _print_plan(site: str, numbers: dict[str, Any], snippets: dict[str, str]) -> None:
    console.print(Text(f"site {site}", style="bold"))
    width = max(map(len, numbers))
    for name, value in numbers.items():
        shown = ", ".join(map(str, value)) or "none" if isinstance(value, list) else value
        console.print(f"  {name:<{width}}  {shown}", markup=False)
    for system, text in snippets.items():
        console.print(Text(f"\n{TITLES[System(system)]}", style="bold"))
        console.print(text, markup=False, end="")


def test(
    cluster: Cluster,
    options: MeasurementOptions,
    rails: tuple[str, ...],
    limit: tuple[str, ...],
    results: Path | None,
    *,
    fresh: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Measure all pairs of these rails and hosts, and exit. results: the file for them. fresh: discard earlier ones."""
    planned = planning.plan(cluster, options, only_rails=rails, limit=limit)
    if dry_run:
        _print_rounds(planned, as_json=as_json)
        return
    report, path = _measured(cluster, planned, results, fresh=fresh, quiet=as_json)
    if as_json:
        print_json(_document(planned, report, path))
    else:
        _print_report(planned, report, path)
    unreachable = any(port.unreachable for port in report.unfit)
    raise typer.Exit(exits.DONE if report.ok else exits.UNREACHABLE if unreachable else exits.FAILED)


def _measured(
    cluster: Cluster, planned: MeasurementPlan, results: Path | None, *, fresh: bool, quiet: bool
) -> tuple[FabricReport, Path]:
    path = results or STATE / cluster.name / "roce-test.jsonl"
    store = Results(path, planned, fresh=fresh)
    if store.unread:
        note(f"{store.unread} lines of {path} cannot be read; their pairs are measured again")
    if store.pairs and not quiet:
        errors.print(f"{path} already has {len(store.pairs)} pairs", style="dim", markup=False)
    with ssh.ssh_to(cluster) as executor:
        tell = (lambda _: None) if quiet else (lambda text: errors.print(f"… {text}", style="dim", markup=False))
        return run(planned, executor, store, tell), path


def _print_rounds(planned: MeasurementPlan, *, as_json: bool) -> None:
    duration_s = planned.seconds()
    if as_json:
        rails = {
            rail.key: [[[a.name, b.name] for a, b in pairs] for pairs in rail.rounds(planned.options.most)]
            for rail in planned.rails
        }
        print_json(
            {"cluster": planned.cluster, "options": asdict(planned.options), "seconds": duration_s, "rails": rails}
        )
        return
    for rail in planned.rails:
        most = planned.options.most
        console.print(Text(f"rail {rail.key}: {len(rail.hosts)} hosts, {rail.pairs()} pairs", style="bold"))
        shown = 0
        for number, round_pairs in enumerate(rail.rounds(most)):
            shown += 1
            if len(rail.hosts) <= MOST_SHOWN:
                pairs = ", ".join(f"{sender.name} → {receiver.name}" for sender, receiver in round_pairs)
                console.print(f"  round {number + 1}: {pairs}", markup=False)
        if len(rail.hosts) > MOST_SHOWN:
            console.print(f"  {shown} rounds of {len(rail.hosts) // 2} pairs; --json lists them", markup=False)
    console.print(f"about {_time(duration_s)}, {planned.options.parallel} pairs at a time", markup=False)


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _document(planned: MeasurementPlan, report: FabricReport, path: Path) -> dict[str, Any]:
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


def _print_report(planned: MeasurementPlan, report: FabricReport, path: Path) -> None:
    for port in report.unfit:
        console.print(Text.assemble(("skipped   ", "red"), f"{port.host} on {port.rail}: {port.reason}"))
    for blame in report.blames:
        console.print(Text.assemble(("slow      ", "red"), str(blame)))
    for rail in planned.rails:
        mark = f"threshold {report.marks[rail.key]:.1%} of the line rate"
        console.print(
            f"rail {rail.key}: {report.measured[rail.key]} of {rail.pairs()} pairs measured, {mark}", markup=False
        )
    console.print("every measured pair meets the threshold" if report.ok else f"all results: {path}", markup=False)
