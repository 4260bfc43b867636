"""`autoscaler run`, `plan` and `simulate`: their arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.examples import examples
from cli.options import ClusterArg, DryOpt, JsonOpt, YesOpt
from cli.specs import built, checked

_MOST_HOURS = 87_600
"""Ten years."""


@examples(
    ("autoscaler run lab --once --dry-run", "show what one pass would do"),
    ("autoscaler run jaguar --once", "one pass; asks"),
    ("autoscaler run jaguar --yes", "as a service"),
    ("autoscaler run jaguar --yes --metrics 127.0.0.1:9810", "with metrics"),
)
def run(
    cluster: ClusterArg,
    once: Annotated[bool, typer.Option("--once", help="Run one pass, then exit.")] = False,
    metrics: Annotated[
        str | None,
        typer.Option("--metrics", metavar="ADDRESS:PORT", help="Serve /metrics and /healthz at this address."),
    ] = None,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Add hosts for pending pods; drain and return idle hosts.

    A pass runs every autoscaler.interval. It observes, decides, and acts within
    the limits of the spec. It never removes more than a share of the cluster, and
    nothing while the API, the clouds or the nodes are unhealthy. Only one
    instance acts on a cluster at a time.

    Idempotent: the next run continues. --json prints a document per pass, one per
    line. With --once: exit code 1 if nothing could be decided, or an action
    failed. Exit code 3 if another instance acts on the cluster.
    """
    place = _address(metrics)
    loaded = built(cluster)
    from cli.actions import autoscaler

    autoscaler.run(loaded, once=once, metrics=place, dry_run=dry_run, yes=yes, as_json=as_json)


@examples(
    ("autoscaler plan jaguar", "placement of each pod, and cost"),
    ("autoscaler plan jaguar vision/train-0", "why a pod is pending"),
    ("autoscaler plan jaguar gpu-17", "why a host stays or is removed"),
    ("autoscaler plan jaguar --json", "for a program"),
)
def plan(
    cluster: ClusterArg,
    what: Annotated[
        str | None,
        typer.Argument(metavar="POD", help="NAMESPACE/NAME of a pod, or the name of a node. Default: all."),
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Show what the next pass would decide, for all pods, pools and hosts, or for one. Changes nothing.

    For a pod: why it is pending, and what it needs. For a node: why it stays.
    Exit code 1 if nothing could be decided, 2 if there is no such pod or node.
    """
    loaded = built(cluster)
    from cli.actions import autoscaler

    autoscaler.plan(loaded, what, as_json=as_json)


@examples(
    ("autoscaler simulate jaguar monday.jsonl", "cost and waiting times"),
    ("autoscaler simulate jaguar monday.jsonl --seed 2", "another run"),
    more='\n\nA line of a trace: {"at": "10m", "name": "train", "count": 4, "gang": true,\n"runs": "3h", "requests": '
    '{"cpu": "80", "nvidia.com/gpu": 8}}',
)
def simulate(
    cluster: ClusterArg,
    trace: Annotated[
        Path, typer.Argument(metavar="TRACE", help="A file of JSON lines; docs/how-to/simulate.md has the keys.")
    ],
    seed: Annotated[int, typer.Option("--seed", help="Random seed for when spot machines are reclaimed.")] = 1,
    hours: Annotated[
        float | None, typer.Option("--hours", help="Stop after this many hours. Default: when all pods have ended.")
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Run a trace of pods through the autoscaler in simulated time. Reads the spec and the trace only.

    Machines boot after their documented times. Spot machines are reclaimed as
    often as autoscaler.interruptions says. Prints the cost, how long pods wait,
    which never start and why, and the cost without scale-in. Stops when nothing
    runs and no pending pod could ever start.

    Exit code 2 if the trace is invalid; all its errors are listed.
    """
    loaded = checked(cluster)
    if hours is not None and not 0 < hours <= _MOST_HOURS:
        raise typer.BadParameter(
            f"--hours: {hours} is out of range; write a number above 0 and at most {_MOST_HOURS:,}"
        )
    from cli.actions import simulation

    simulation.simulate(loaded, trace, seed, hours, as_json=as_json)


def _address(text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise typer.BadParameter(f"--metrics: {text!r} is not an address and a port; write 127.0.0.1:9810")
    return host.strip("[]"), int(port)
