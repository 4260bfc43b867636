"""``python -m tests.bench.scheduling``: how fast pods are placed, how many whole hosts stay free, and what gangs cost.

A control plane on loopback with the rendered flags and configuration; kwok simulates the kubelets (`tests.bench.simulated`).
Pods are created while no scheduler runs. Then the scheduler starts, and the time until the last pod is bound is measured,
including the start. All ways are measured on one control plane, and pods are deleted in between.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from cluster import versions
from components.scheduling import gangs
from tests.bench import alone, gang_trials, load, simulated
from tests.bench.calls import Api
from tests.bench.figures import Figure, ratios
from tests.bench.load import NAMESPACE, Call
from tests.bench.loopback import Loopback, LoopbackError, Shape, running
from tests.bench.loopback_files import ADMIN, NODES
from tests.bench.mechanisms import Native, pod_spec
from tests.bench.neighbours import ended_by_signals

NODES_, PODS, MEMBERS = 200, 1000, 8
FULL = (2000, 10_000)
GPUS = 8
SIZES = (1,) * 15 + (2,) * 5
"""GPUs of pods, in turns: 5 pods per node then fill 78 % of all GPUs. If some pods wanted four, filling 84 %, spreading would
leave pods that fit on no host, and never bind all of them."""
PODS_PATH = f"/api/v1/namespaces/{NAMESPACE}/pods"
PATIENCE_S = 1800.0


@dataclass(frozen=True)
class Way:
    """How pods ask to be placed. profile: schedulerName. gang: whether MEMBERS consecutive pods form a gang."""

    name: str
    profile: str
    gang: bool = False


SPREAD, PACK, GANGS = Way("spread", "default-scheduler"), Way("pack", "pack"), Way("pack, in gangs", "pack", gang=True)
WAYS = (SPREAD, PACK, GANGS)


@dataclass(frozen=True)
class Placed:
    """Results of one way. seconds: from the scheduler's start until all pods were bound. free: hosts without any pod."""

    way: Way
    pods: int
    seconds: float
    free: int
    most_free: int


def measure(say: Callable[[str], None], nodes: int = NODES_, pods: int = PODS) -> list[Figure]:
    """Measure all ways at one size."""
    placed = []
    with (
        ended_by_signals(),
        load.processes(simulated.CLIENTS) as pool,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        ExitStack() as ends,
    ):
        shape = Shape(nodes, 2, gangs=True)
        plane = ends.enter_context(running(shape, Path(folder), left_out={"kube-scheduler"}))
        load.bind(plane.login(ADMIN.name), (NODES.name,))
        ends.enter_context(simulated.kwok(plane))
        with_nodes(plane, pool, nodes)
        say(f"{nodes} nodes are Ready")
        for way in WAYS:
            placed.append(_place(plane, shape, pool, way, nodes, pods))
            say(describe(placed[-1]))
    return summary(placed, nodes)


def mechanisms(say: Callable[[str], None]) -> list[Figure]:
    """Measure gangs by each mechanism. Builds the programs that clusters don't have, which takes long the first time."""
    with ended_by_signals(), load.processes(simulated.CLIENTS) as pool:
        return gang_trials.measure(pool, say)


def with_nodes(plane: Loopback, pool: Executor, nodes: int) -> None:
    """Create `nodes` nodes, and wait until all are Ready."""
    login = plane.login(ADMIN.name)
    simulated.make(pool, login, [simulated.node(number) for number in range(nodes)])
    with Api(login) as api:
        simulated.until_none(api, simulated.unsettled_nodes, 1.0)


def _place(plane: Loopback, shape: Shape, pool: Executor, way: Way, nodes: int, pods: int) -> Placed:
    login = plane.login(ADMIN.name)
    count = pods - pods % MEMBERS
    if way.gang:
        simulated.make(pool, login, [group(number) for number in range(count // MEMBERS)])
    simulated.make(pool, login, [pod(number, way) for number in range(count)])
    with Api(login) as api, Native().at_work(plane, shape):
        began = time.monotonic()
        until_bound(api)
        seconds = time.monotonic() - began
        used = gpus_by_node(api)
    _empty(plane, way)
    requested = sum(used.values())
    return Placed(way, count, seconds, nodes - len(used), (nodes * GPUS - requested) // GPUS)


def group(number: int) -> Call:
    """Return the call that creates the PodGroup of a gang."""
    body = gangs.pod_group(versions.KUBERNETES, f"gang-{number}", MEMBERS)
    return "POST", f"/apis/{body['apiVersion']}/namespaces/{NAMESPACE}/podgroups", body, "application/json"


def pod(number: int, way: Way) -> Call:
    """Return the call that creates a pending pod. Members of a gang are identical, like those of a job."""
    turn = number // MEMBERS if way.gang else number
    spec = {**pod_spec(SIZES[turn * 7 % len(SIZES)]), "schedulerName": way.profile}
    if way.gang:
        spec["schedulingGroup"] = {"podGroupName": f"gang-{number // MEMBERS}"}
    body = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": f"pod-{number}"}, "spec": spec}
    return "POST", PODS_PATH, body, "application/json"


def until_bound(api: Api) -> None:
    """Wait until every pod has a node. LoopbackError after PATIENCE_S."""
    deadline = time.monotonic() + PATIENCE_S
    while api.get(f"{PODS_PATH}?fieldSelector=spec.nodeName%3D&limit=1")["items"]:
        if time.monotonic() > deadline:
            raise LoopbackError(f"some pods have no node after {PATIENCE_S:.0f} s")
        time.sleep(0.3)


def gpus_by_node(api: Api) -> Counter[str]:
    """Return node -> number of requested GPUs."""
    used: Counter[str] = Counter()
    for item in api.get(PODS_PATH)["items"]:
        limits = item["spec"]["containers"][0]["resources"]["limits"]
        used[item["spec"]["nodeName"]] += int(limits["nvidia.com/gpu"])
    return used


def _empty(plane: Loopback, way: Way) -> None:
    with Api(plane.login(ADMIN.name)) as api:
        api.call("DELETE", PODS_PATH, {"gracePeriodSeconds": 0})
        while api.get(f"{PODS_PATH}?limit=1")["items"]:
            api.call("DELETE", PODS_PATH, {"gracePeriodSeconds": 0})
            time.sleep(1.0)
        if way.gang:
            api.call("DELETE", f"/apis/{gangs.api(versions.KUBERNETES)}/namespaces/{NAMESPACE}/podgroups")


def describe(placed: Placed) -> str:
    """Return one line for people."""
    return (
        f"{placed.way.name}: {placed.pods} pods bound in {placed.seconds:.1f} s, {placed.pods / placed.seconds:.0f} a second; "
        f"{placed.free} whole hosts left, of at most {placed.most_free}"
    )


def summary(placed: Sequence[Placed], nodes: int) -> list[Figure]:
    """Return the figures of all ways, with ratios to spreading."""
    by_way = {each.way: each for each in placed}
    figures: list[Figure] = []
    for each in placed:
        name = f"{nodes} nodes, {each.pods} pods, {each.way.name}"
        figures += [
            Figure(f"{name}: until all are bound", "s", (each.seconds,)),
            Figure(f"{name}: bound a second", "/s", (each.pods / each.seconds,)),
            Figure(
                f"{name}: whole hosts left", "", (float(each.free),), None, f"{each.most_free} if none were broken into"
            ),
        ]
    for way in (PACK, GANGS):
        compared: tuple[Any, Any] = (by_way[way].seconds,), (by_way[SPREAD].seconds,)
        figures.append(Figure(f"{nodes} nodes: until all are bound, {way.name} ÷ spread", "", ratios(*compared)))
    return figures


def main(
    nodes: Annotated[int, typer.Option(min=8, help="Simulated nodes, with 8 GPUs each.")] = NODES_,
    pods: Annotated[int, typer.Option(min=8, help="Pending pods.")] = PODS,
    full: Annotated[bool, typer.Option(help="2,000 nodes and 10,000 pods.")] = False,
    compare: Annotated[
        bool,
        typer.Option(
            help="Then also measure gangs by Coscheduling and Kueue: takes half an hour, builds both, needs root."
        ),
    ] = False,
    as_json: alone.JsonOpt = False,
) -> None:
    """Measure how fast pods are placed on simulated nodes, spread, packed and in gangs, and how many whole hosts stay free."""
    if full:
        nodes, pods = FULL
    alone.run(
        lambda say: [*measure(say, nodes, pods), *(mechanisms(say) if compare else [])],
        as_json=as_json,
    )


if __name__ == "__main__":
    alone.command(main, LoopbackError, OSError)
