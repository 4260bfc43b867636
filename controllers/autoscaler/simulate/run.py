"""Runs the loop over a trace, and sums up the outcome."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from cluster.autoscaler import Autoscaler, Idle
from cluster.errors import RefusedError
from cluster.spec import Cluster
from controllers.autoscaler.decide import decide
from controllers.autoscaler.decision import Act, Pass
from controllers.autoscaler.memory import Memory
from controllers.autoscaler.simulate.cloud import START_S, Cloud
from controllers.autoscaler.simulate.trace import Arrival
from controllers.autoscaler.supply import choices_of, supplies
from controllers.autoscaler.world import Supply, World
from controllers.planner import Fate, Policy
from operations.breaker import Limits

_LONGEST_STEP_S = 300.0
_NEVER_MS = 10**12
_STILL_S = 600.0
"""After this time without a change, a look every five minutes is enough."""
_GIVEN_UP_S = 86400.0
"""After this time without a change, pods that wait are assumed to wait forever: all times of the autoscaler are shorter."""
_PERCENT = 100


@dataclass(frozen=True)
class SimulationOutcome:
    """The outcome of a simulation. Money in dollars, times in seconds of the simulation.

    wait_…: median, 95th percentile and longest wait for a host, of pods that started; if a pod started more than once, the sum of its
    waits. never: pods that can never start according to the last pass -> why. waiting: other pods that did not start -> why.
    """

    hours: float
    pods: int
    started: int
    ended: int
    unstarted: int
    never: dict[str, str]
    waiting: dict[str, str]
    cost: float
    host_hours: float
    peak_hosts: int
    wait_median_s: float
    wait_95_s: float
    wait_longest_s: float
    interrupted: int
    ordered: int
    removed: int
    passes: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


Watch = Callable[[World, Pass], None]


@dataclass(frozen=True)
class Setting:
    """The input of a simulation besides the trace. elsewhere: machines at sites -> their pools; they run nothing of the trace."""

    supplies: dict[str, Supply]
    least: dict[str, int]
    settings: Autoscaler
    limits: Limits
    elsewhere: dict[str, str] = field(default_factory=dict)


def setting_of(cluster: Cluster, settings: Autoscaler, limits: Limits) -> Setting:
    """Return the setting with the cluster's pools that grow. Errors: raises RefusedError if the size of their hosts is unknown."""
    by_name, notices = supplies(cluster, settings, (), {})
    names = settings.grown(cluster.spec.pools)
    if missing := [name for name in names if name not in by_name]:
        raise RefusedError(f"can't simulate pools {', '.join(missing)}: {'; '.join(notices)}", code="unknown-size")
    return Setting(
        {name: replace(by_name[name], grows=True) for name in names},
        {name: cluster.spec.pools[name].min for name in names},
        settings,
        limits,
        {host.name: pool for pool, host in cluster.host_list()},
    )


def without_scale_in(setting: Setting) -> Setting:
    """Return the same setting with hosts that are never removed."""
    never = setting.settings.model_copy(update={"idle": Idle.model_construct(cpu=_NEVER_MS, gpu=_NEVER_MS)})
    return replace(setting, settings=never)


def simulate(
    setting: Setting,
    trace: Sequence[Arrival],
    seed: int = 1,
    watch: Watch = lambda world, pass_: None,
    policy: Policy | None = None,
    hours: float | None = None,
    memory: Callable[[Memory], Memory] = lambda memory: memory,
    prepare: Callable[[Cloud], None] = lambda cloud: None,
    most_hours: float | None = None,
) -> SimulationOutcome:
    """Run the trace until nothing runs and nothing waits that can still start.

    hours: run for exactly this long instead. most_hours: run at most this long. watch: is called with every pass. memory: transforms
    the memory between passes. prepare: prepares the cloud, for tests.
    """
    cloud = Cloud(
        setting.supplies, setting.least, choices_of(setting.supplies, setting.settings), seed, setting.elsewhere
    )
    prepare(cloud)
    kept, pass_, tally = Memory(), None, _Tally()
    left = list(trace)
    end_s = START_S + (
        hours * 3600 if hours is not None else min(_latest(trace), (most_hours or _latest(trace)) * 3600)
    )
    pulse = _Pulse()
    interval_s = setting.settings.interval / 1000
    while cloud.now_s <= end_s:
        while left and START_S + left[0].at_s <= cloud.now_s:
            cloud.arrive(left.pop(0))
        cloud.schedule()
        world = cloud.world()
        pass_ = decide(world, memory(kept), setting.settings, setting.limits, policy)
        kept = pass_.memory
        watch(world, pass_)
        tally.passes += 1
        for decision in pass_.decisions:
            tally.count(decision.act, decision.size - cloud.sizes.get(decision.pool, 0))
            cloud.carry_out(decision)
        still_s = pulse.still_s(cloud, pass_)
        hopeless = still_s > _GIVEN_UP_S or all(_never(pass_, story.waiting.name) for story in cloud.pending())
        if hours is None and not left and hopeless and not _busy(cloud, setting):
            break
        cloud.until(_next(cloud, world, pass_, left, interval_s, still_s))
    return _outcome(cloud, tally, pass_)


def _never(pass_: Pass, pod: str) -> bool:
    verdict = pass_.verdicts.get(pod)
    return verdict is not None and verdict.fate is Fate.NEVER


@dataclass
class _Pulse:
    """Since when nothing has changed: no pod arrived, started or ended, no host was added or removed, and nothing was decided."""

    _last: tuple[object, ...] = ()
    _since_s: float = START_S

    def still_s(self, cloud: Cloud, pass_: Pass) -> float:
        pods = (len(cloud.pods), sum(1 for _ in cloud.pending()), sum(len(host.pods) for host in cloud.hosts.values()))
        ready = sum(host.ready_s <= cloud.now_s for host in cloud.hosts.values())
        now = (*pods, ready, tuple(cloud.hosts), tuple(cloud.sizes.items()))
        if now != self._last or pass_.decisions:
            self._last, self._since_s = now, cloud.now_s
        return cloud.now_s - self._since_s


@dataclass
class _Tally:
    ordered: int = 0
    removed: int = 0
    passes: int = 0

    def count(self, act: Act, more: int) -> None:
        self.ordered += more if act is Act.GROW else 0
        self.removed += act is Act.REMOVE


def _latest(trace: Sequence[Arrival]) -> float:
    """Return the time by which all pods would have run even one after another; it ends a simulation with pods that never start."""
    return max((each.at_s for each in trace), default=0.0) + sum(each.runs_s for each in trace) + 30 * 86400.0


def _busy(cloud: Cloud, setting: Setting) -> bool:
    """Whether pods run, or hosts remain that will be removed."""
    running = any(host.pods for host in cloud.hosts.values())
    never = setting.settings.idle.cpu >= _NEVER_MS
    more = any(cloud.sizes[pool] > setting.least.get(pool, 0) for pool in cloud.sizes)
    return running or (more and not never)


def _next(cloud: Cloud, world: World, pass_: Pass, left: Sequence[Arrival], interval_s: float, still_s: float) -> float:
    """Return the time of the next look: soon while something is in progress, else at the next event."""
    hopes = still_s < _STILL_S and any(not _never(pass_, pod.name) for pod in world.waiting)
    active = bool(hopes or pass_.decisions or pass_.memory.orders or any(node.mark for node in world.nodes))
    if active:
        return cloud.now_s + interval_s
    events = [cloud.next_event_s(), START_S + left[0].at_s if left else float("inf"), cloud.now_s + _LONGEST_STEP_S]
    return max(min(events), cloud.now_s + min(interval_s, 1.0))


def _outcome(cloud: Cloud, tally: _Tally, last_pass: Pass | None) -> SimulationOutcome:
    stories = cloud.pods.values()
    waits = sorted(story.waited_s for story in stories if story.started_s is not None or story.ended_s is not None)
    verdicts = last_pass.verdicts if last_pass else {}
    last_verdicts = {name: verdict for name, verdict in verdicts.items() if name in cloud.pods}
    never = {name: verdict.reason for name, verdict in last_verdicts.items() if verdict.fate is Fate.NEVER}
    waiting = {
        story.waiting.name: last_verdicts[story.waiting.name].reason
        if story.waiting.name in last_verdicts
        else "the last pass gave no reason"
        for story in cloud.pending()
        if story.waiting.name not in never
    }
    return SimulationOutcome(
        round((cloud.now_s - START_S) / 3600, 3),
        len(cloud.pods),
        len(waits),
        sum(story.ended_s is not None for story in stories),
        len(cloud.pods) - len(waits),
        never,
        waiting,
        round(cloud.cost, 2),
        round(cloud.host_s / 3600, 2),
        cloud.peak,
        statistics.median(waits) if waits else 0.0,
        waits[min(len(waits) * 95 // _PERCENT, len(waits) - 1)] if waits else 0.0,
        waits[-1] if waits else 0.0,
        sum(story.lost for story in stories),
        tally.ordered,
        tally.removed,
        tally.passes,
    )
