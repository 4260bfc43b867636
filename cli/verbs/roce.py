"""`roce plan` and `roce test`: their arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.examples import examples
from cli.options import ClusterArg, DryOpt, FactsOpt, JsonOpt, LimitOpt, ParallelOpt, words
from cli.specs import checked

_PARALLEL = 64


@examples(
    ("roce plan jaguar", "for every switch system"),
    ("roce plan jaguar --switch eos", "for one switch system"),
    ("roce plan jaguar --facts f.yaml", "compare switches with the hosts"),
    ("roce plan jaguar --json", "numbers and snippets"),
)
def plan(
    cluster: ClusterArg,
    switch: Annotated[
        list[str] | None,
        typer.Option(
            "--switch", metavar="SYSTEM", help="cumulus, onyx, sonic or eos; separated by commas, or repeated."
        ),
    ] = None,
    ports: Annotated[
        str, typer.Option("--ports", metavar="PORTS", help="The switch's ports, in its syntax. Default: a placeholder.")
    ] = "",
    facts: FactsOpt = None,
    as_json: JsonOpt = False,
) -> None:
    """Print the settings that switches need to match the hosts, or compare switches with them.

    With --facts FILE, which describes switches in YAML (docs/how-to/roce.md has
    the format), it lists every difference. Exit code 2 if there is one. Reads the
    spec and FILE only.
    """
    loaded = checked(cluster)
    from cli.actions import roce

    roce.plan(loaded, words(switch), ports, facts, as_json=as_json)


@examples(
    ("roce test jaguar --dry-run", "show the rounds and the time"),
    ("roce test jaguar", "all pairs not yet measured"),
    ("roce test jaguar --rounds 5", "a quick test"),
    ("roce test jaguar --limit 'gpu-00*'", "some hosts"),
    ("roce test jaguar --rail rail-0", "one rail"),
)
def test(
    cluster: ClusterArg,
    rail: Annotated[
        list[str] | None,
        typer.Option("--rail", metavar="RAIL", help="Only this rail, or site/rail; separated by commas, or repeated."),
    ] = None,
    limit: LimitOpt = None,
    rounds: Annotated[
        int | None, typer.Option("--rounds", min=1, metavar="N", help="Run only the first N rounds of each rail.")
    ] = None,
    seconds: Annotated[int, typer.Option("--seconds", min=1, help="Seconds that each pair sends.")] = 5,
    message: Annotated[int, typer.Option("--message", min=1, help="Bytes per message.")] = 65536,
    queues: Annotated[int, typer.Option("--queues", min=1, help="Queue pairs per pair of hosts.")] = 4,
    parallel: ParallelOpt = None,
    results: Annotated[
        Path | None,
        typer.Option(
            "--results", metavar="FILE", help="File for results. Default: .menagerie/CLUSTER/roce-test.jsonl."
        ),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Discard earlier results and measure all pairs.")] = False,
    dry_run: DryOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Measure every pair of hosts on every rail with ib_write_bw, and name what is slow.

    The pairs are measured in rounds, in which a host is in at most one pair. N
    hosts on a rail take N-1 rounds if N is even, N if it is odd. A pair is slow
    below 97 % of the line rate at RoCE MTU 4096. The test loads the fabric fully:
    drain it first. --dry-run prints the rounds and the time, and contacts no
    host. --parallel is the number of pairs at a time, 64 by default.

    Exit code 1 if something is slow or failed, 4 if a host is unreachable.
    """
    loaded = checked(cluster)
    pairs = max(len(loaded.host_list()) // 2, 1)
    at_once = parallel.at_least_one(pairs) if parallel else _PARALLEL
    from cli.actions import roce

    roce.test(
        loaded,
        roce.MeasurementOptions(seconds, message, queues, at_once, rounds),
        words(rail),
        words(limit),
        results,
        fresh=fresh,
        dry_run=dry_run,
        as_json=as_json,
    )
