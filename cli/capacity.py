"""`capacity`: what the fleet has free, and where a job would start."""

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
    from controllers.autoscaler.seen import World

_PER_HOST = 8


@examples(
    ("capacity", "the whole fleet"),
    ("capacity jaguar", "one cluster"),
    ("capacity --gpus 16 --gpu-kind h100", "two hosts of eight"),
    ("capacity --pods 4 --cpus 32 --memory 120", "without GPUs"),
)
def capacity(
    clusters: ClustersArg = None,
    gpus: Annotated[
        int | None, typer.Option("--gpus", min=1, max=100_000, metavar="N", help="GPUs of the whole job.")
    ] = None,
    gpu_kind: Annotated[
        str, typer.Option("--gpu-kind", metavar="KIND", help="Such as h100 or a100. Default: any.")
    ] = "",
    gpus_per_pod: Annotated[
        int | None, typer.Option("--gpus-per-pod", min=1, max=64, metavar="N", help="Default: 8, or all if fewer.")
    ] = None,
    pods: Annotated[int | None, typer.Option("--pods", min=1, max=10_000, metavar="N", help="Pods of the job.")] = None,
    cpus: Annotated[float, typer.Option("--cpus", min=0, metavar="N", help="CPUs of each pod.")] = 1.0,
    memory: Annotated[float, typer.Option("--memory", min=0, metavar="GIB", help="Memory of each pod.")] = 1.0,
    spot: Annotated[str, typer.Option("--spot", metavar="WORD", help="any, never or only.")] = "any",
    team: Annotated[str, typer.Option("--team", metavar="TEAM", help="Also on this team's own hosts.")] = "",
    within: Annotated[
        str | None, typer.Option("--within", metavar="LABEL", help="All of it in one topology domain: openai.org/rack.")
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Show free and coming capacity by GPU kind, and where a job would start soonest and cheapest.

    Nothing is ordered or reserved for the job. Pending pods are served first. A cluster
    that does not answer is named, and left out.
    Exit code 1 if no cluster answered, or the job could start nowhere.
    """
    from controllers.autoscaler import capacity as found

    job = _job(gpus, gpu_kind, gpus_per_pod, pods, cpus, memory, spot, team, within)
    fleet, silent = _fleet(clusters)
    rows = [row for name, world, memory_, _ in fleet for row in found.rows(name, world, memory_)]
    offers = (
        [each for name, world, memory_, settings in fleet for each in found.offers(name, world, memory_, settings, job)]
        if job
        else []
    )
    if as_json:
        best = {"soonest": found.soonest(offers), "cheapest": found.cheapest(offers)}
        document = {
            "pools": [row.to_json() for row in rows],
            "silent": silent,
            "job": [each.to_json() for each in offers],
            **{key: each.to_json() if each else None for key, each in best.items()},
        }
        print_json(document)
    else:
        _print(rows, silent)
        if job:
            _print_offers(job, offers)
    nowhere = job is not None and found.soonest(offers) is None
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
            raise typer.BadParameter("--gpu-kind and --gpus-per-pod are of a job: add --gpus")
        return None
    if gpus is None:
        return Job(pods or 1, 0, cpus, memory, "", Spot(spot), team, within)
    each = per_pod or (gpus // pods if pods else min(gpus, _PER_HOST))
    count = pods or -(-gpus // each)
    if each * count != gpus:
        raise typer.BadParameter(f"--gpus: {gpus} GPUs are no whole number of pods with {each} each")
    return Job(count, each, cpus, memory, kind.lower(), Spot(spot), team, within)


def _fleet(names: list[str] | None) -> tuple[list[tuple[str, World, Memory, Autoscaler]], dict[str, str]]:
    """(name, world, memory, settings) of every cluster that answers; why others don't."""
    from cli.failures import explain
    from cluster.errors import RefusedError
    from cluster.load import clusters

    fleet, silent = [], {}
    for name in names or clusters(ROOT):
        try:
            fleet.append(_seen(name))
        except Exception as error:
            foreseen = explain(error)
            if foreseen is None or (names and isinstance(error, RefusedError)):
                raise
            silent[name] = foreseen.text
    return fleet, silent


def _seen(name: str) -> tuple[str, World, Memory, Autoscaler]:
    cluster = checked(name)
    from cluster.autoscaler import Autoscaler
    from controllers.autoscaler.choose import groups_of
    from controllers.autoscaler.groups import GroupError
    from controllers.autoscaler.hands import Hands
    from controllers.autoscaler.look import Fixed, look
    from operations import stack
    from operations.repair.look import Around, limits_of

    access = stack.access_to(cluster)
    settings = cluster.spec.autoscaler or Autoscaler()
    around = Around(cluster, access.api, lambda: "", limits_of(cluster))
    try:
        groups = groups_of(cluster, access.api) if cluster.spec.autoscaler else Fixed()
    except GroupError:
        groups = Fixed()
    memory = Hands(access.api, groups, around.limits).recall()
    return cluster.name, look(around, groups, settings, memory), memory, settings


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
    for each in sorted(offers, key=lambda one: (one.starts_s is None, one.starts_s or 0, one.dollars)):
        marks = [word for word, best in (("soonest", first), ("cheapest", least)) if best is each]
        mark = f" ({' and '.join(marks)})" if marks else ""
        if each.starts_s is None:
            console.print(Text(f"{each.cluster} {each.pool}: {each.reason}", style="dim"))
            continue
        when = "now" if each.starts_s == 0 and not each.hosts else f"in about {lasting(each.starts_s)}"
        cost = f"{each.hosts} new hosts, {each.dollars:.2f} $/h" if each.hosts else "on hosts that are there"
        console.print(Text(f"{each.cluster} {each.pool}: {when}, {cost}{mark}", style="green"))
    if first is None:
        what = f"{job.pods * job.gpus} {job.gpu_kind} GPUs".replace("  ", " ") if job.gpus else f"{job.pods} pods"
        console.print(f"{what}: nowhere now" + ("" if offers else ", no pool has a host that takes such a pod"))
