"""`capacity`: free capacity of the fleet, and where a job would start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from cli import exits
from cli.options import ClustersArg, JsonOpt, examples
from cli.output import console, errors, print_json
from cli.specs import checked
from cluster.project import ROOT

if TYPE_CHECKING:
    from cluster.autoscaler import Autoscaler
    from controllers.autoscaler.capacity import Job, Offer, Row
    from controllers.autoscaler.memory import Memory
    from controllers.autoscaler.world import World

_PER_HOST = 8


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
    team: Annotated[str, typer.Option("--team", metavar="TEAM", help="Also count hosts allocated to this team.")] = "",
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
    from controllers.autoscaler import capacity as figures

    job = _job(gpus, gpu_kind, gpus_per_pod, pods, cpus, memory, spot, team, within)
    fleet, silent = _fleet(clusters)
    rows = [row for name, world, memory_, _ in fleet for row in figures.rows(name, world, memory_)]
    offers = (
        [
            offer
            for name, world, memory_, settings in fleet
            for offer in figures.offers(name, world, memory_, settings, job)
        ]
        if job
        else []
    )
    if as_json:
        best = {"soonest": figures.soonest(offers), "cheapest": figures.cheapest(offers)}
        document = {
            "pools": [row.to_json() for row in rows],
            "silent": silent,
            "job": [offer.to_json() for offer in offers],
            **{key: offer.to_json() if offer else None for key, offer in best.items()},
        }
        print_json(document)
    else:
        _print(rows, silent)
        if job:
            _print_offers(job, offers)
    nowhere = job is not None and figures.soonest(offers) is None
    raise typer.Exit(exits.FAILED if not fleet or nowhere else exits.DONE)


def _job(
    gpus: int | None,
    kind: str,
    per_pod: int | None,
    pods: int | None,
    cpus: float,
    memory: float,
    spot: str,
    team: str,
    within: str | None,
) -> Job | None:
    from controllers.autoscaler.capacity import Job
    from controllers.planner import Spot

    if spot not in list(Spot):
        raise typer.BadParameter(f"--spot: {spot!r}; write any, never or only")
    if gpus is None and pods is None:
        if kind or per_pod:
            raise typer.BadParameter("--gpu-kind and --gpus-per-pod describe a job: add --gpus")
        return None
    if gpus is None:
        return Job(pods or 1, 0, cpus, memory, "", Spot(spot), team, within)
    in_pod = per_pod or (gpus // pods if pods else min(gpus, _PER_HOST))
    count = pods or -(-gpus // in_pod)
    if in_pod * count != gpus:
        raise typer.BadParameter(f"--gpus: {gpus} GPUs do not divide into pods with {in_pod} each")
    return Job(count, in_pod, cpus, memory, kind.lower(), Spot(spot), team, within)


def _fleet(names: list[str] | None) -> tuple[list[tuple[str, World, Memory, Autoscaler]], dict[str, str]]:
    """Return (name, world, memory, settings) of every cluster that answers, and why the others do not."""
    from cli.failures import explain
    from cluster.errors import RefusedError
    from cluster.load import clusters

    fleet, silent = [], {}
    for name in names or clusters(ROOT):
        try:
            fleet.append(_observed(name))
        except Exception as error:
            foreseen = explain(error)
            if foreseen is None or (names and isinstance(error, RefusedError)):
                raise
            silent[name] = foreseen.text
    return fleet, silent


def _observed(name: str) -> tuple[str, World, Memory, Autoscaler]:
    cluster = checked(name)
    from cluster.autoscaler import Autoscaler
    from controllers.autoscaler.actuator import Actuator
    from controllers.autoscaler.choose import groups_of
    from controllers.autoscaler.groups import GroupError
    from controllers.autoscaler.look import Fixed, read_world
    from operations import stack
    from operations.repair.look import CheckInputs, limits_of

    access = stack.access_to(cluster)
    settings = cluster.spec.autoscaler or Autoscaler()
    around = CheckInputs(cluster, access.api, lambda: "", limits_of(cluster))
    try:
        groups = groups_of(cluster, access.api) if cluster.spec.autoscaler else Fixed()
    except GroupError:
        groups = Fixed()
    memory = Actuator(access.api, groups, around.limits).recall()
    return cluster.name, read_world(around, groups, settings, memory), memory, settings


def _print(rows: list[Row], silent: dict[str, str]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("CLUSTER", "POOL", "GPU"):
        table.add_column(heading)
    for heading in ("HOSTS", "FREE", "GPUS FREE", "COMING", "MORE", "$/H"):
        table.add_column(heading, justify="right")
    for row in sorted(rows, key=lambda row: (row.gpu_kind, row.cluster, row.pool)):
        gpus = f"{row.free_gpus}/{row.gpus}" if row.gpus or row.more_gpus or row.coming_gpus else ""
        price = f"{row.price:.2f}" if row.price else ""
        spot = " spot" if row.spot else ""
        table.add_row(
            row.cluster, row.pool + spot, row.gpu_kind, str(row.hosts), str(row.free_hosts), gpus, str(row.coming),
            str(row.more), price,
        )  # fmt: skip
    if rows:
        console.print(table)
    for row in rows:
        if row.note:
            errors.print(Text(f"{row.cluster}: pool {row.pool}: {row.note}", style="yellow"))
    for name, why in silent.items():
        errors.print(Text(f"{name}: {why.splitlines()[0]}", style="yellow"))


def _print_offers(job: Job, offers: list[Offer]) -> None:
    from controllers.autoscaler.capacity import cheapest, soonest
    from controllers.autoscaler.words import lasting

    first, least = soonest(offers), cheapest(offers)
    console.print()
    for offer in sorted(offers, key=lambda offer: (offer.starts_s is None, offer.starts_s or 0, offer.dollars)):
        marks = [word for word, best in (("soonest", first), ("cheapest", least)) if best is offer]
        mark = f" ({' and '.join(marks)})" if marks else ""
        if offer.starts_s is None:
            console.print(Text(f"{offer.cluster} {offer.pool}: {offer.reason}", style="dim"))
            continue
        when = "now" if offer.starts_s == 0 and not offer.hosts else f"in about {lasting(offer.starts_s)}"
        cost = f"{offer.hosts} new hosts, {offer.dollars:.2f} $/h" if offer.hosts else "on existing hosts"
        console.print(Text(f"{offer.cluster} {offer.pool}: {when}, {cost}{mark}", style="green"))
    if first is None:
        what = f"{job.pods * job.gpus} {job.gpu_kind} GPUs".replace("  ", " ") if job.gpus else f"{job.pods} pods"
        console.print(f"{what}: nowhere now" + ("" if offers else ": no pool has a host that fits such a pod"))
