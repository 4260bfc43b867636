"""`capacity`: free capacity of the fleet, and where a job would start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import typer
from rich.table import Table
from rich.text import Text

from cli import exits
from cli.failures import explain
from cli.output import console, errors, print_json
from cli.specs import checked
from cluster.errors import RefusedError
from cluster.load import clusters
from cluster.project import ROOT
from cluster.spec import Cluster
from controllers.autoscaler import capacity as figures
from controllers.autoscaler.capacity import Job, Offer, Row
from controllers.autoscaler.observed import Observed, observe
from controllers.autoscaler.words import lasting
from controllers.planner import Spot
from operations import stack

_PER_HOST = 8


def capacity(named: Mapping[str, Cluster], job: Job | None, *, as_json: bool) -> None:
    """Print capacity and exit. named: clusters by their names on the command line; all clusters if empty."""
    fleet, silent = _answers(_looks(named), refuse=bool(named))
    rows = [row for each in fleet for row in figures.rows(each.cluster, each.world, each.memory)]
    offers = (
        [offer for each in fleet for offer in figures.offers(each.cluster, each.world, each.memory, each.settings, job)]
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


def job_of(
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
    """Return the job that the options describe; None if they describe none. Errors: raises BadParameter."""
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


def _looks(named: Mapping[str, Cluster]) -> dict[str, Callable[[], Observed]]:
    if named:
        return {name: partial(_look, cluster) for name, cluster in named.items()}
    return {name: partial(_read, name) for name in clusters(ROOT)}


def _read(name: str) -> Observed:
    return _look(checked(name))


def _look(cluster: Cluster) -> Observed:
    return observe(cluster, stack.access_to(cluster))


def _answers(looks: Mapping[str, Callable[[], Observed]], *, refuse: bool) -> tuple[list[Observed], dict[str, str]]:
    """Return every cluster that answers, and why the others do not. refuse: raise refusals."""
    fleet, silent = [], {}
    for name, look_at in looks.items():
        try:
            fleet.append(look_at())
        except Exception as error:
            foreseen = explain(error)
            if foreseen is None or (refuse and isinstance(error, RefusedError)):
                raise
            silent[name] = foreseen.text
    return fleet, silent


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
    first, least = figures.soonest(offers), figures.cheapest(offers)
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
