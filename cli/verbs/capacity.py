"""`capacity`: its arguments."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.examples import examples
from cli.options import ClustersArg, JsonOpt, TeamOpt
from cli.specs import checked


@examples(
    ("capacity", "the whole fleet"),
    ("capacity jaguar", "one cluster"),
    ("capacity --gpus 16 --gpu-kind h100", "two hosts of eight"),
    ("capacity --pods 4 --cpus 32 --memory 120", "a job without GPUs"),
)
def capacity(
    clusters: ClustersArg = None,
    gpus: Annotated[
        int | None, typer.Option("--gpus", min=1, max=100_000, metavar="N", help="GPUs for the whole job.")
    ] = None,
    gpu_kind: Annotated[
        str, typer.Option("--gpu-kind", metavar="KIND", help="GPU kind, such as h100 or a100. Default: any.")
    ] = "",
    gpus_per_pod: Annotated[
        int | None,
        typer.Option("--gpus-per-pod", min=1, max=64, metavar="N", help="GPUs per pod. Default: 8, or all if fewer."),
    ] = None,
    pods: Annotated[
        int | None, typer.Option("--pods", min=1, max=10_000, metavar="N", help="Number of pods in the job.")
    ] = None,
    cpus: Annotated[float, typer.Option("--cpus", min=0, metavar="N", help="CPUs per pod.")] = 1.0,
    memory: Annotated[float, typer.Option("--memory", min=0, metavar="GIB", help="Memory per pod.")] = 1.0,
    spot: Annotated[
        str, typer.Option("--spot", metavar="WORD", help="Use of spot machines: any, never or only.")
    ] = "any",
    team: TeamOpt = "",
    within: Annotated[
        str | None,
        typer.Option("--within", metavar="LABEL", help="Keep the job in one topology domain, such as openai.org/rack."),
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Show free and coming capacity by GPU kind, and where a job would start soonest and cheapest.

    Orders and reserves nothing. Pending pods are served before the job. A cluster
    that does not answer is named and left out. Exit code 1 if no cluster
    answered, or the job could start nowhere.
    """
    loaded = {name: checked(name) for name in clusters or ()}
    from cli.actions import capacity

    job = capacity.job_of(gpus, gpu_kind, gpus_per_pod, pods, cpus, memory, spot, team, within)
    capacity.capacity(loaded, job, as_json=as_json)
