"""Days in simulated time: what must hold in every pass, for any load."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from cli.main import app
from cluster.errors import RefusedError
from controllers.autoscaler.decide import decide
from controllers.autoscaler.decision import Act, Pass
from controllers.autoscaler.memory import Memory, packed, unpacked
from controllers.autoscaler.simulate.cloud import Cloud
from controllers.autoscaler.simulate.run import Setting, simulate, without_scale_in
from controllers.autoscaler.simulate.trace import MOST_PODS, Arrival, read
from controllers.autoscaler.simulate.trace import lines as lines_of
from controllers.autoscaler.world import World
from tests.scheduling.autoscaler.support import LIMITS, setting, supply

HOUR_S = 3600.0
POOLS = (
    supply("cpu", boot_s=100, most=8),
    supply("gpu", cpus=64, gpus=8, price=30.0, most=6, boot_s=540),
    supply("spot", cpus=64, gpus=8, price=10.0, most=3, boot_s=540, spot=True, interruptions=0.05),
)


def trace(*lines: dict[str, object]) -> tuple[Arrival, ...]:
    return read([json.dumps(line) for line in lines], "trace")


def random_trace(seed: int, hours: int, load: float) -> tuple[Arrival, ...]:
    """Return random jobs: small ones, whole hosts, gangs of up to half the pool, and services that may move."""
    random, lines, at_s = Random(seed), [], 0.0
    while at_s < hours * HOUR_S * 0.8:
        at_s += random.expovariate(load / HOUR_S)
        kind = random.random()
        line: dict[str, object] = {"at": f"{int(at_s)}s", "name": f"j{len(lines)}"}
        if kind < 0.5:
            line |= {"count": random.randint(1, 6), "requests": {"cpu": random.randint(1, 7)}}
            line |= {"runs": f"{random.randint(5, 120)}m", "kind": random.choice(("Job", "ReplicaSet"))}
        elif kind < 0.8:
            line |= {
                "requests": {"cpu": 8, "nvidia.com/gpu": random.choice((1, 4, 8))},
                "runs": f"{random.randint(1, 6)}h",
            }
        else:
            line |= {"count": random.randint(2, 3), "gang": True, "requests": {"nvidia.com/gpu": 8}, "runs": "2h"}
            line |= {"annotations": {"scheduling.menagerie.dev/spot": random.choice(("any", "never"))}}
        lines.append(line)
    return trace(*lines)


class Watch:
    """Records every rule that a pass breaks."""

    def __init__(self, setting_: Setting) -> None:
        self.violations: list[str] = []
        self._setting = setting_
        self._cordoned: list[float] = []

    def __call__(self, world: World, result: Pass) -> None:
        if result.refused:
            self.violations.append(result.refused)
        for pool, group in world.groups.items():
            if group.size > group.most or len(group.machines) > group.most + 2:
                self.violations.append(f"{pool} has {group.size} machines of {group.most}")
        started = [each for each in result.decisions if each.act is Act.CORDON]
        for each in result.decisions:
            node = world.by_node.get(each.node)
            if each.act in (Act.CORDON, Act.REMOVE, Act.DRAIN) and node and any(pod.keeps for pod in node.pods):
                self.violations.append(f"{each} although pods keep it")
            if each.act is Act.REMOVE and node and (node.pods or not node.cordoned):
                self.violations.append(f"{each} although it is not empty or not cordoned")
        self._cordoned = [at for at in self._cordoned if at > world.now_s - LIMITS.window_s] + [world.now_s] * len(
            started
        )
        if started and len(self._cordoned) > len(world.fleet.members) // 2:
            self.violations.append(f"{len(self._cordoned)} of {len(world.fleet.members)} nodes within an hour")
        if len(started) > max(1, len(world.fleet.members) // 10):
            self.violations.append(f"{len(started)} of {len(world.fleet.members)} nodes in one step")
        self._stable(world, result)

    def _stable(self, world: World, result: Pass) -> None:
        """Check that a second pass over the same world, with the memory of the first, orders nothing more."""
        again = decide(world, result.memory, self._setting.settings, self._setting.limits)
        before = {each.pool: each.size for each in result.decisions if each.act is Act.GROW}
        after = {each.pool: each.size for each in again.decisions if each.act is Act.GROW}
        waits = any(verdict.fate == "waiting" for verdict in result.verdicts.values())
        if before != after and not waits:
            self.violations.append(f"the plan is not stable: {before}, then {after}")


@settings(max_examples=3)
@given(st.integers(0, 2**30))
def test_in_a_simulated_day_no_limit_is_exceeded_and_the_plan_is_stable(seed: int) -> None:
    setup = setting(POOLS, {"cpu": 1}, interval="180s", idle_below=20)
    watch = Watch(setup)
    outcome = simulate(setup, random_trace(seed, 24, 2.0), seed, watch, hours=24)
    assert watch.violations == []
    assert outcome.started > 0


@settings(max_examples=2)
@given(st.integers(0, 2**30))
def test_in_a_simulated_week_nobody_starves(seed: int) -> None:
    setup = setting(POOLS, interval="600s")
    outcome = simulate(setup, random_trace(seed, 168, 1.0), seed, hours=168)
    # The longest job, a boot, and a day in which room is held for a large job.
    assert outcome.wait_longest_s <= 30 * HOUR_S
    assert (outcome.unstarted, outcome.never) == (0, {})


@settings(max_examples=2)
@given(st.integers(0, 2**30))
def test_the_memory_survives_being_stored(seed: int) -> None:
    setup, arrivals = setting(POOLS, interval="240s"), random_trace(seed, 12, 3.0)

    def written(memory: Memory) -> Memory:
        assert unpacked(packed(memory)) == memory
        return unpacked(packed(memory))

    kept = simulate(setup, arrivals, seed, memory=written, hours=12)
    assert kept == simulate(setup, arrivals, seed, hours=12)


@settings(max_examples=2)
@given(st.integers(0, 2**30))
def test_it_converges_although_every_tenth_pass_loses_the_memory(seed: int) -> None:
    passes = 0

    def forgetful(memory: Memory) -> Memory:
        nonlocal passes
        passes += 1
        return Memory() if passes % 10 == 0 else memory

    setup = setting(POOLS, interval="240s")
    watch = Watch(setup)
    outcome = simulate(setup, random_trace(seed, 12, 2.0), seed, watch, memory=forgetful, hours=48)
    assert watch.violations == []
    assert outcome.unstarted == 0


def test_scale_in_saves_the_cost_of_idle_hosts() -> None:
    setup = setting(POOLS, interval="60s")
    arrivals = trace({"at": "0s", "name": "train", "count": 2, "runs": "1h", "requests": {"nvidia.com/gpu": 8}})
    outcome = simulate(setup, arrivals, hours=10)
    kept = simulate(without_scale_in(setup), arrivals, hours=10)
    assert (outcome.ended, kept.ended) == (2, 2)
    assert outcome.cost < kept.cost / 2
    assert outcome.removed >= 1


def test_spot_machines_that_never_arrive_are_replaced_by_on_demand_ones() -> None:
    def barren(cloud: Cloud) -> None:
        cloud.barren.add("spot")

    setup = setting(POOLS, interval="60s")
    arrivals = trace({"at": "0s", "name": "train", "runs": "1h", "requests": {"nvidia.com/gpu": 8}})
    outcome = simulate(setup, arrivals, prepare=barren, hours=5)
    # Ten minutes for spot, nine to boot on-demand, and passes in between.
    assert (outcome.ended, outcome.wait_longest_s <= 1500) == (1, True)


def test_pods_that_can_never_start_are_reported_and_nothing_is_ordered() -> None:
    setup = setting(POOLS, interval="60s")
    outcome = simulate(
        setup, trace({"at": "0s", "name": "big", "runs": "1h", "requests": {"nvidia.com/gpu": 9}}), hours=2
    )
    assert (outcome.ordered, outcome.cost) == (0, 0.0)
    assert "it requests 9 GPUs, but the largest host has 8 GPUs" in outcome.never["default/big"]


def test_a_trace_is_refused_with_all_its_errors() -> None:
    lines = [
        '{"at": "0s", "name": "a", "runs": "1h"}',
        "",
        '{"at": "0s", "name": "a", "runs": "1h"}',
        '{"at": 5, "name": "B", "runs": "1h", "gpu": 1}',
        "nonsense",
    ]
    with pytest.raises(RefusedError) as error:
        read(lines, "t.jsonl")
    text = str(error.value)
    assert "t.jsonl:3: name a is already used in line 1" in text
    assert "t.jsonl:4: at: 5 isn't a duration" in text
    assert "t.jsonl:4: gpu: Extra inputs are not permitted" in text
    assert "t.jsonl:5: not a JSON object" in text


BIG = {"at": "0s", "runs": "1h", "requests": {"cpu": 4000}}


@pytest.mark.parametrize(
    ("lines", "passes", "reasons"),
    [
        ([{**BIG, "name": "big"}], 3, 1),
        ([{**BIG, "name": "gang", "count": 200, "gang": True, "requests": {"cpu": 6}}], 3, 1),
        ([{**BIG, "name": "many", "count": 5000}, {**BIG, "name": "other", "requests": {"x": 1}}], 3, 2),
        # A pod that never starts causes no extra looks while another one runs.
        ([{**BIG, "name": "big"}, {**BIG, "name": "long", "requests": {"cpu": 4}, "runs": "2d"}], 700, 1),
    ],
    ids=["a pod", "a gang larger than its pools", "many pods", "next to a running pod"],
)
def test_a_simulation_ends_when_waiting_pods_can_never_start(
    lines: list[dict[str, object]], passes: int, reasons: int
) -> None:
    """Measured by the number of passes; it used to be 43,000, for 30 simulated days."""
    outcome = simulate(setting(POOLS, interval="60s"), trace(*lines))
    assert outcome.passes <= passes
    assert (outcome.unstarted, len(set(outcome.never.values())), outcome.waiting) == (len(outcome.never), reasons, {})


def test_a_simulation_ends_when_nothing_changes_for_a_day() -> None:
    """The machines of the only suitable pools never arrive."""

    def barren(cloud: Cloud) -> None:
        cloud.barren.update(("gpu", "spot"))

    arrivals = trace({"at": "0s", "name": "train", "runs": "1h", "requests": {"nvidia.com/gpu": 8}})
    outcome = simulate(setting(POOLS, interval="600s"), arrivals, prepare=barren, most_hours=100)
    assert (outcome.started, set({**outcome.waiting, **outcome.never})) == (0, {"default/train"})


def test_a_simulation_ends_at_its_time_limit() -> None:
    arrivals = trace({"at": "0s", "name": "train", "runs": "100h", "requests": {"cpu": 4}})
    outcome = simulate(setting(POOLS, interval="60s"), arrivals, most_hours=2)
    assert (2 <= outcome.hours <= 2.1, outcome.ended) == (True, 0)


@pytest.mark.parametrize(
    "value",
    [
        '"four"',
        "NaN",
        '"NaN"',
        "-4",
        '"-4"',
        '"9e999999999"',
        "9e999999999",
        "1e999",
        "Infinity",
        '""',
        "[]",
        "null",
        '"1 "',
    ],
)
def test_an_invalid_amount_is_refused_with_its_place(value: str) -> None:
    with pytest.raises(RefusedError) as error:
        read([f'{{"at": "0s", "name": "a", "runs": "1h", "requests": {{"cpu": {value}}}}}'], "t.jsonl")
    assert str(error.value).startswith("t.jsonl:1: ")
    assert "cpu" in str(error.value) or "is not a number" in str(error.value)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"at": "9999999999999999999d", "name": "a", "runs": "1h"}', "at: is more than ten years"),
        ('{"at": "0s", "name": "a", "runs": "1h", "priority": 99999999999}', "priority: "),
        ("[" * 100_000, "not a JSON object"),
        ('{"at": "0s", "name": "a", "runs": "1h", "count": 100001}', "count: "),
        ('{"at": 1' + "0" * 5000 + "}", "not a JSON object"),
    ],
    ids=["time", "priority", "nesting", "number of pods", "long number"],
)
def test_an_impossible_value_is_refused_with_its_place(line: str, why: str) -> None:
    with pytest.raises(RefusedError) as error:
        read([line], "t.jsonl")
    assert f"t.jsonl:1: {why}" in str(error.value)


def test_a_trace_of_too_many_pods_is_refused_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_PODS <= 10**6
    monkeypatch.setattr("controllers.autoscaler.simulate.trace.MOST_PODS", 20)
    lines = [json.dumps({"at": "0s", "name": f"a{number}", "runs": "1h", "count": 10}) for number in range(1000)]
    with pytest.raises(RefusedError, match="t.jsonl:3: with this line the trace has 30 pods; at most 20 are allowed"):
        read(lines, "t.jsonl")


def test_a_trace_must_be_a_readable_file(tmp_path: Path) -> None:
    for path in (tmp_path, Path("/dev/zero"), tmp_path / "none"):
        with pytest.raises(RefusedError, match="not a regular file|there is no such file"):
            lines_of(path)
    (tmp_path / "latin").write_bytes(b"\xff")
    with pytest.raises(RefusedError, match="can't be read"):
        lines_of(tmp_path / "latin")


def test_the_command_counts_pods_that_never_start_by_reason(tmp_path: Path) -> None:
    example = (Path(__file__).parents[3] / "examples" / "aws-small" / "cluster.yaml").read_text()
    (tmp_path / "cluster.yaml").write_text(f"{example}autoscaler: {{}}\n")
    (tmp_path / "t.jsonl").write_text(json.dumps({**BIG, "name": "big", "count": 7}))
    command = ["autoscaler", "simulate", str(tmp_path / "cluster.yaml"), str(tmp_path / "t.jsonl")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0
    assert "7 pods never start (default/big-0 and others): no pool can ever fit this" in " ".join(done.output.split())
    assert CliRunner().invoke(app, [*command, "--hours", "nan"]).exit_code == 2
    document = json.loads(CliRunner().invoke(app, [*command, "--json", "--hours", "1"]).stdout)
    assert len(document["with"]["never"]) == 7
