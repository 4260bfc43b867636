"""``python -m tests.bench.scale``: the control plane under thousands of simulated nodes, on two cores.

A control plane on loopback, with the same programs and the rendered flags: two etcds on this machine's disk, TLS, audit log,
encryption, admission. kwok simulates the kubelets. These parts of a real cluster are missing: the nodes' own connections and
watches (about ten each), kube-proxy, DaemonSets, images in the nodes' status. The phases are separate: nodes are created, then
pods, some hundreds at a time, and each batch settles before the next; then a probe runs at a low rate on top of the usual
traffic. One cluster grows through the sizes.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from cluster.errors import FailedError
from tests.bench import alone, load, machine, simulated
from tests.bench.calls import MERGE, Api, Login
from tests.bench.figures import Figure, ratios
from tests.bench.load import Call, Timed
from tests.bench.loopback import Loopback, LoopbackError, Shape, running
from tests.bench.loopback_files import ADMIN, NODES, RESEARCHER
from tests.bench.neighbours import ended_by_signals
from tests.bench.readings import Usage, between, read, slope

SIZES = (500, 2500)
STEP = 500
"""Number of nodes that are created, or get their pods, at once. A fleet grows by racks; 5,000 at once did not settle on two
cores within 15 minutes."""
PODS = 10
"""Pods per node. A GPU node has few."""
PROBE_S, RATE, LISTS = 60.0, 10.0, 3
REST_S = 10.0
SINGLE_AIM_S, LIST_AIM_S = 1.0, 30.0
"""Kubernetes' own objectives (sig-scalability/slos/api_call_latency.md), of p99."""
RSS_AIM_MB = 0.2
_LISTS = {"nodes": "/api/v1/nodes", "pods": "/api/v1/pods"}


@dataclass(frozen=True)
class Size:
    """Results of one size. Seconds are the sums of all steps.

    nodes_made_s, pods_made_s: creating them. nodes_settled_s, pods_settled_s: after the last one of a step was created, until
    each node was Ready and untainted and had its range, and each pod ran. single, lists: the probe's calls, timed by its
    client.
    """

    nodes: int
    nodes_made_s: float
    nodes_settled_s: float
    pods_made_s: float
    pods_settled_s: float
    single: Timed
    lists: dict[str, Timed]
    usage: Usage

    @property
    def nodes_ready_s(self) -> float:
        return self.nodes_made_s + self.nodes_settled_s

    @property
    def filled_s(self) -> float:
        return self.nodes_made_s + self.nodes_settled_s + self.pods_made_s + self.pods_settled_s


def measure(
    say: Callable[[str], None], sizes: Sequence[int] = SIZES, *, defaults: bool = True, pods: int = PODS
) -> list[Figure]:
    """Grow one cluster through the sizes. defaults: also measure the smallest size with Kubernetes' defaults."""
    with ended_by_signals(), load.processes(simulated.CLIENTS + 1) as pool:
        ours = _grown(Shape(sizes[-1], 0), sizes, pods, pool, say)
        theirs = []
        if defaults:
            say("the smallest size with Kubernetes' defaults")
            theirs = _grown(Shape(sizes[-1], 1, defaults=True), sizes[:1], pods, pool, say)
    return summary(ours, theirs, pods)


def _grown(shape: Shape, sizes: Sequence[int], pods: int, pool: Executor, say: Callable[[str], None]) -> list[Size]:
    results = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, running(shape, Path(folder)) as plane:
        load.bind(plane.login(ADMIN.name), (NODES.name, RESEARCHER.name))
        with simulated.kwok(plane):
            for before, size in zip((0, *sizes), sizes, strict=False):
                results.append(_at(plane, pool, range(before, size), pods, say))
                say(describe(results[-1]))
    return results


def _at(plane: Loopback, pool: Executor, more: range, pods: int, say: Callable[[str], None]) -> Size:
    """Create nodes and pods, let them settle, then probe."""
    admin = plane.login(ADMIN.name)
    steps = [range(begin, min(begin + STEP, more.stop)) for begin in range(more.start, more.stop, STEP)]
    with Api(admin) as api:
        nodes = [[simulated.node(number) for number in step] for step in steps]
        nodes_made, nodes_settled = _settled(
            pool, admin, nodes, lambda: simulated.until_none(api, simulated.unsettled_nodes, 2.0)
        )
        say(f"{more.stop} nodes: created in {nodes_made:.0f} s, settled in {nodes_settled:.0f} s")
        bound = [[simulated.pod(number, each) for each in range(pods) for number in step] for step in steps]
        pods_made, pods_settled = _settled(
            pool, admin, bound, lambda: simulated.until_none(api, simulated.pending_pods, 1.0)
        )
        say(f"{more.stop} nodes: pods created in {pods_made:.0f} s, running in {pods_settled:.0f} s")
        time.sleep(REST_S)
        single, lists, usage = probe(plane, pool, more.stop)
        if lost := simulated.unsettled_nodes(api):
            say(f"{lost} of {more.stop} nodes are not Ready at the end")
    return Size(more.stop, nodes_made, nodes_settled, pods_made, pods_settled, single, lists, usage)


def _settled(
    pool: Executor, login: Login, steps: Sequence[Sequence[Call]], settle: Callable[[], None]
) -> tuple[float, float]:
    """Create each step's objects and let them settle. Return the total seconds of both."""
    made = settled = 0.0
    clock = _Clock()
    for calls in steps:
        simulated.make(pool, login, calls)
        made += clock.lap()
        settle()
        settled += clock.lap()
    return made, settled


class _Clock:
    """Measures the seconds since the previous lap."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def lap(self) -> float:
        now = time.monotonic()
        passed, self._last = now - self._last, now
        return passed


def probe(plane: Loopback, pool: Executor, nodes: int) -> tuple[Timed, dict[str, Timed], Usage]:
    """Make single calls at a low rate and, meanwhile, a few lists of the whole cluster of each kind."""
    researcher = plane.login(RESEARCHER.name)
    before = read(plane, time.monotonic())
    singles = pool.submit(load.at_rate, researcher, single_calls(nodes, int(PROBE_S * RATE)), RATE, 8)
    every = PROBE_S / LISTS / len(_LISTS)
    calls: list[Call] = [("GET", path, None, "application/json") for path in _LISTS.values()]
    listed = load.at_rate(researcher, calls * LISTS, 1 / every, 1)
    single = singles.result()
    usage = between(before, read(plane, time.monotonic()), plane)
    if listed.refused:
        raise LoopbackError(f"lists failed: {dict(listed.failed)}")
    lists = {kind: Timed(listed.seconds[place :: len(_LISTS)], Counter()) for place, kind in enumerate(_LISTS)}
    return single, lists, usage


def single_calls(nodes: int, count: int) -> list[Call]:
    """Return calls that in turns create a ConfigMap, read another, read a node, read a pod, and label the pod."""
    calls: list[Call] = []
    for number in range(count):
        host = simulated.name(number * 37 % nodes)
        pod = f"/api/v1/namespaces/{load.NAMESPACE}/pods/{host}-0"
        kinds: list[Call] = [
            load.config_map(f"probe-{nodes}-{number}"),
            ("GET", f"/api/v1/namespaces/{load.NAMESPACE}/configmaps/kube-root-ca.crt", None, "application/json"),
            ("GET", f"/api/v1/nodes/{host}", None, "application/json"),
            ("GET", pod, None, "application/json"),
            ("PATCH", pod, {"metadata": {"labels": {"probe": str(number)}}}, MERGE),
        ]
        calls.append(kinds[number % len(kinds)])
    return calls


def describe(size: Size) -> str:
    """Return one line for people."""
    usage = size.usage
    lists = ", ".join(f"{kind} {timed.percentile(1.0):.1f} s" for kind, timed in size.lists.items())
    return (
        f"{size.nodes} nodes: filled in {size.filled_s:.0f} s; single calls p99 {size.single.percentile(0.99) * 1000:.0f} ms "
        f"of {len(size.single.seconds)}, "
        f"slowest list of {lists}; API server {usage.rss_mb:.0f} MB; it used {sum(usage.cores.values()):.2f} cores "
        f"with its etcds, all CPUs were {usage.busy:.0%} busy; nearest to its limit: {nearest(size)[0]}"
    )


def shares(size: Size) -> dict[str, float]:
    """Return the used share of each limit; 1 is all of it."""
    usage = size.usage
    singles = max((seconds for seconds, _ in usage.p99.values()), default=0.0)
    lists = max(timed.percentile(1.0) for timed in size.lists.values())
    return {
        "processors": sum(usage.cores.values()) / machine.read().cores,
        "memory": usage.rss_mb / (machine.read().memory_gib * 1073.74),
        "single calls against 1 s": singles / SINGLE_AIM_S,
        "lists against 30 s": lists / LIST_AIM_S,
        **{f"etcd {role}'s quota": share for role, share in usage.databases.items()},
    }


def nearest(size: Size) -> tuple[str, float]:
    """Return the limit with the largest used share, and the share."""
    return max(shares(size).items(), key=lambda each: each[1])


def summary(ours: Sequence[Size], theirs: Sequence[Size], pods: int) -> list[Figure]:
    """Return the figures by size."""
    figures = [figure for size in ours for figure in of_size(size, f"{size.nodes} nodes", pods)]
    figures += [
        figure for size in theirs for figure in of_size(size, f"{size.nodes} nodes, Kubernetes' defaults", pods)
    ]
    if theirs:
        settled = [(each[0].nodes_ready_s,) for each in (ours, theirs)]
        figures.append(
            Figure(f"{theirs[0].nodes} nodes: until all are Ready, ÷ Kubernetes' defaults", "", ratios(*settled))
        )
    if len(ours) > 1:
        grown = slope({size.nodes: size.usage.rss_mb for size in ours})
        note = f"fit over {', '.join(str(size.nodes) for size in ours)}; {pods} pods a node, no watches of its own"
        figures.append(Figure("API server's memory a node", "MB", (grown,), RSS_AIM_MB, note))
    return figures


def of_size(size: Size, name: str, pods: int) -> list[Figure]:
    """Return the figures of one size. Aims are Kubernetes' objectives."""
    usage = size.usage
    limit, share = nearest(size)
    return [
        Figure(f"{name}: until all are Ready, with their range", "s", (size.nodes_ready_s,)),
        Figure(f"{name}: until {pods} pods on each more run", "s", (size.pods_made_s + size.pods_settled_s,)),
        *(
            Figure(f"{name}: {key} p99 of {count}, API server's histogram", "s", (seconds,), SINGLE_AIM_S)
            for key, (seconds, count) in usage.p99.items()
        ),
        Figure(
            f"{name}: single calls p99 of {len(size.single.seconds)}, client",
            "s",
            (size.single.percentile(0.99),),
            SINGLE_AIM_S,
        ),
        Figure(f"{name}: single calls that failed", "", (float(size.single.refused),), 0.0),
        *(
            Figure(
                f"{name}: list of all {kind}, slowest of {len(timed.seconds)}, client",
                "s",
                (timed.percentile(1.0),),
                LIST_AIM_S,
            )
            for kind, timed in size.lists.items()
        ),
        Figure(f"{name}: answers 429", "", (usage.refused,), 0.0),
        Figure(f"{name}: API server's memory", "MB", (usage.rss_mb,)),
        *(Figure(f"{name}: cores that {program} takes", "", (cores,)) for program, cores in usage.cores.items()),
        *(Figure(f"{name}: writes at etcd {role}", "/s", (rate,)) for role, rate in usage.writes_s.items()),
        *(Figure(f"{name}: fsync p99 of etcd {role}", "s", (took,)) for role, took in usage.fsync_p99.items()),
        Figure(f"{name}: nearest to its limit: {limit}", "of 1", (share,)),
    ]


def main(
    nodes: Annotated[str, typer.Option(help="Sizes that one cluster grows through, separated by commas.")] = ",".join(
        map(str, SIZES)
    ),
    pods: Annotated[int, typer.Option(min=1, help="Pods on each node.")] = PODS,
    defaults: Annotated[bool, typer.Option(help="Also measure the smallest size with Kubernetes' defaults.")] = True,
    as_json: alone.JsonOpt = False,
) -> None:
    """Measure the control plane under thousands of simulated nodes."""
    sizes = sorted(int(size) for size in nodes.split(","))
    alone.run(lambda say: measure(say, sizes, defaults=defaults, pods=pods), as_json=as_json)


if __name__ == "__main__":
    alone.command(main, LoopbackError, OSError, FailedError)
