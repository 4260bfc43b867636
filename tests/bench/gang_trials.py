"""Gangs by each mechanism of `tests.bench.mechanisms`, side by side: how fast, how many started in part, and whether two get in each other's way.

Each has a control plane of its own, of the same programs and with the same nodes. Gangs are Jobs, whose pods the controller manager
makes. The crowd: gangs that all fit. The contest: two gangs that each need most of the hosts, their Jobs made at once; the one that
runs is ended after a while, and the other should follow. What is bound is looked at a few times a second: a gang is started in part
while some of its members have a host and some have none.
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
    """What one mechanism showed; seconds are PATIENCE_S where it never came.

    crowd_s: until all gangs of the crowd had all their hosts. first_s, second_s: from the Jobs of the contest until one gang was whole,
    and from its end until the other was. partial_s: how long, in all, some gang was started in part. held: hosts at most that a gang
    held without being whole.
    """

    name: str
    crowd_s: tuple[float, ...]
    first_s: tuple[float, ...]
    second_s: tuple[float, ...]
    partial_s: tuple[float, ...]
    held: tuple[float, ...]


class Watch:
    """What is bound of each gang, looked at again and again."""

    def __init__(self, api: Api, all_of: Sequence[Gang]) -> None:
        self._api, self._gangs = api, all_of
        self.partial_s, self.held = 0.0, 0
        self._last = time.monotonic()

    def whole(self) -> set[str]:
        """The gangs that have all their hosts now."""
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
        """Seconds until so many are whole, and which."""
        began = time.monotonic()
        while len(found := self.whole() - {but}) < count and time.monotonic() - began < PATIENCE_S:
            time.sleep(LOOK_S)
        return (time.monotonic() - began if len(found) >= count else PATIENCE_S), found


def measure(pool: Executor, say: Callable[[str], None]) -> list[Figure]:
    """Each mechanism, one after the other."""
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
    _, found = watch.until(1)
    first = time.monotonic() - began
    second = PATIENCE_S
    if found:
        # Time for the other to try.
        until = time.monotonic() + 10
        while time.monotonic() < until:
            watch.whole()
            time.sleep(LOOK_S)
        (ended,) = sorted(found)[:1]
        _delete(api, f"{JOBS}/{ended}")
        second, _ = watch.until(1, but=ended)
    _clear(api)
    return crowd, first, second, watch.partial_s, float(watch.held)


def _make(api: Api, mechanism: Native, all_of: Sequence[Gang]) -> None:
    for gang in all_of:
        for path, thing in mechanism.made(gang):
            status, said = api.call("POST", path, thing)
            if status != 201:
                raise ConnectionError(f"POST {path}: {status} {said[:300].decode()}")


def _delete(api: Api, path: str) -> None:
    api.call("DELETE", path, {"propagationPolicy": "Background"})


def _clear(api: Api) -> None:
    """No Jobs, pods and groups any more."""
    _delete(api, JOBS)
    for group in ("scheduling.k8s.io/v1alpha2", "scheduling.x-k8s.io/v1alpha1"):
        _delete(api, f"/apis/{group}/namespaces/{NAMESPACE}/podgroups")
    while api.get(f"{PODS}?limit=1")["items"]:
        api.call("DELETE", PODS, {"gracePeriodSeconds": 0})
        time.sleep(0.5)


def describe(trial: Trial) -> str:
    """One line for people."""

    def shown(values: Sequence[float]) -> str:
        return "/".join("never" if value >= PATIENCE_S else f"{value:.1f}" for value in values)

    return (
        f"{trial.name}: {len(CROWD)} gangs in {shown(trial.crowd_s)} s; of two, one whole after {shown(trial.first_s)} s, the other "
        f"{shown(trial.second_s)} s after its end; in part for {shown(trial.partial_s)} s, with {shown(trial.held)} hosts at most"
    )


def summary(trials: Sequence[Trial]) -> list[Figure]:
    """The figures by mechanism."""
    note = f"{PATIENCE_S:.0f} s is where it was given up"
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
