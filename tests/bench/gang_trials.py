"""Compare gangs by each mechanism of `tests.bench.mechanisms`: speed, partial starts, and whether two gangs block each other.

Each mechanism has its own control plane, with the same programs and nodes. Gangs are Jobs, whose pods the controller manager
creates. The crowd is a set of gangs that all fit. The contest is two gangs that each need most of the hosts, whose Jobs are
created at once; the one that runs is ended after a while, and the other should follow. Bound pods are counted a few times a
second. A gang is partially started while some of its members have a host and some do not.
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

from tests.bench import load, simulated
from tests.bench.calls import Api
from tests.bench.figures import Figure
from tests.bench.load import NAMESPACE
from tests.bench.loopback import Loopback, Shape, running
from tests.bench.loopback_files import ADMIN, NODES
from tests.bench.mechanisms import JOBS, Coscheduling, Gang, Kueue, Native
from tools import build

HOSTS, GPUS = 100, 8
CROWD = tuple(Gang(f"crowd-{number}", 8, 2) for number in range(40))
"""640 of 800 GPUs."""
CONTEST = (Gang("red", 60, GPUS), Gang("blue", 60, GPUS))
ROUNDS, PATIENCE_S, LOOK_S = 3, 360.0, 0.2
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


@dataclass(frozen=True)
class Trial:
    """Results of one mechanism, a value per round. Seconds are PATIENCE_S for what never happened.

    crowd_s: until all gangs of the crowd had all their hosts. first_s: in the contest, from the Jobs until one gang was whole.
    second_s: from the end of that gang until the other was whole. partial_s: total time in which some gang was partially
    started. held: the most hosts that a gang held without being whole.
    """

    name: str
    crowd_s: tuple[float, ...]
    first_s: tuple[float, ...]
    second_s: tuple[float, ...]
    partial_s: tuple[float, ...]
    held: tuple[float, ...]


class Watch:
    """Counts the bound pods of each gang, repeatedly."""

    def __init__(self, api: Api, gangs: Sequence[Gang]) -> None:
        self._api, self._gangs = api, gangs
        self.partial_s, self.held = 0.0, 0
        self._last = time.monotonic()

    def whole(self) -> set[str]:
        """Return the gangs that have all their hosts now."""
        bound: Counter[str] = Counter()
        for pod in self._api.get(PODS)["items"]:
            if pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]:
                bound[pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]] += 1
        now = time.monotonic()
        partial = [bound[gang.name] for gang in self._gangs if 0 < bound[gang.name] < gang.members]
        self.partial_s += (now - self._last) * bool(partial)
        self.held, self._last = max([self.held, *partial]), now
        return {gang.name for gang in self._gangs if bound[gang.name] == gang.members}

    def until(self, count: int, but: str = "") -> tuple[float, set[str]]:
        """Wait until `count` gangs are whole. Return the seconds, and their names."""
        began = time.monotonic()
        while len(whole := self.whole() - {but}) < count and time.monotonic() - began < PATIENCE_S:
            time.sleep(LOOK_S)
        return (time.monotonic() - began if len(whole) >= count else PATIENCE_S), whole


def measure(pool: Executor, say: Callable[[str], None]) -> list[Figure]:
    """Measure each mechanism, one after the other."""
    build.ensure(["coscheduler", "kueue"])
    trials = []
    for number, mechanism in enumerate((Native(), Coscheduling(), Kueue(HOSTS * GPUS)), 3):
        trials.append(_trial(mechanism, number, pool, say))
    return summary(trials)


def _trial(mechanism: Native, number: int, pool: Executor, say: Callable[[str], None]) -> Trial:
    shape = Shape(HOSTS, number, gangs=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, ExitStack() as ends:
        plane = ends.enter_context(running(shape, Path(folder), left_out={"kube-scheduler"}))
        load.bind(plane.login(ADMIN.name), (NODES.name, "system:kube-scheduler"))
        ends.enter_context(simulated.kwok(plane))
        simulated.make(pool, plane.login(ADMIN.name), [simulated.node(each) for each in range(HOSTS)])
        api = ends.enter_context(Api(plane.login(ADMIN.name)))
        simulated.until_none(api, simulated.unsettled_nodes, 1.0)
        ends.enter_context(mechanism.at_work(plane, shape))
        time.sleep(5.0)
        rounds = [_round(plane, api, mechanism) for _ in range(ROUNDS)]
    trial = Trial(mechanism.name, *zip(*rounds, strict=True))
    say(describe(trial))
    return trial


def _round(plane: Loopback, api: Api, mechanism: Native) -> tuple[float, float, float, float, float]:
    began = time.monotonic()
    _make(api, mechanism, CROWD)
    Watch(api, CROWD).until(len(CROWD))
    crowd = time.monotonic() - began
    _clear(api)
    watch = Watch(api, CONTEST)
    began = time.monotonic()
    _make(api, mechanism, CONTEST)
    _, whole = watch.until(1)
    first = time.monotonic() - began
    second = PATIENCE_S
    if whole:
        # Gives the other gang time to try.
        until = time.monotonic() + 10
        while time.monotonic() < until:
            watch.whole()
            time.sleep(LOOK_S)
        (ended,) = sorted(whole)[:1]
        _delete(api, f"{JOBS}/{ended}")
        second, _ = watch.until(1, but=ended)
    _clear(api)
    return crowd, first, second, watch.partial_s, float(watch.held)


def _make(api: Api, mechanism: Native, gangs: Sequence[Gang]) -> None:
    for gang in gangs:
        for path, document in mechanism.made(gang):
            status, reply = api.call("POST", path, document)
            if status != 201:
                raise ConnectionError(f"POST {path}: {status} {reply[:300].decode()}")


def _delete(api: Api, path: str) -> None:
    api.call("DELETE", path, {"propagationPolicy": "Background"})


def _clear(api: Api) -> None:
    """Delete all Jobs, pods and groups."""
    _delete(api, JOBS)
    for group in ("scheduling.k8s.io/v1alpha2", "scheduling.x-k8s.io/v1alpha1"):
        _delete(api, f"/apis/{group}/namespaces/{NAMESPACE}/podgroups")
    while api.get(f"{PODS}?limit=1")["items"]:
        api.call("DELETE", PODS, {"gracePeriodSeconds": 0})
        time.sleep(0.5)


def describe(trial: Trial) -> str:
    """Return one line for people."""

    def shown(values: Sequence[float]) -> str:
        return "/".join("never" if value >= PATIENCE_S else f"{value:.1f}" for value in values)

    return (
        f"{trial.name}: {len(CROWD)} gangs in {shown(trial.crowd_s)} s; of two, one whole after {shown(trial.first_s)} s, "
        f"the other {shown(trial.second_s)} s after its end; partially started for {shown(trial.partial_s)} s, with at most "
        f"{shown(trial.held)} hosts"
    )


def summary(trials: Sequence[Trial]) -> list[Figure]:
    """Return the figures by mechanism."""
    note = f"{PATIENCE_S:.0f} s is the time-out"
    return [
        figure
        for each in trials
        for figure in (
            Figure(f"gangs, {each.name}: until {len(CROWD)} gangs of 8 are whole", "s", each.crowd_s, None, note),
            Figure(f"gangs, {each.name}: of two, until one is whole", "s", each.first_s, None, note),
            Figure(f"gangs, {each.name}: then until the other is", "s", each.second_s, None, note),
            Figure(f"gangs, {each.name}: some started in part", "s", each.partial_s),
            Figure(f"gangs, {each.name}: hosts held by one that is not whole", "", each.held),
        )
    ]
