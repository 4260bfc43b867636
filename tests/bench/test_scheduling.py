"""Arithmetic of the scheduler's bench, and its made-up pods."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bench import gang_trials
from tests.bench.gang_trials import CONTEST, CROWD, GPUS, HOSTS, Trial, Watch
from tests.bench.loopback import LoopbackError
from tests.bench.mechanisms import Coscheduling, Gang, Kueue, Native, until_ready
from tests.bench.scheduling import FULL, GANGS, MEMBERS, PACK, SPREAD, Placed, pod, summary
from tests.ports import free_port


def requested_gpus(count: int, way: Any) -> int:
    pods = [pod(number, way)[2]["spec"]["containers"][0]["resources"]["limits"] for number in range(count)]
    return sum(int(limits["nvidia.com/gpu"]) for limits in pods)


def test_the_pods_fill_the_same_share_of_the_hosts_in_every_way() -> None:
    nodes, pods = FULL
    for way in (SPREAD, PACK, GANGS):
        assert 0.75 < requested_gpus(pods, way) / (nodes * 8) < 0.8


def test_members_of_a_gang_are_identical_and_name_it() -> None:
    specs = [pod(number, GANGS)[2]["spec"] for number in range(2 * MEMBERS)]
    assert specs[0] == specs[MEMBERS - 1]
    assert [spec["schedulingGroup"]["podGroupName"] for spec in specs[MEMBERS - 1 : MEMBERS + 1]] == [
        "gang-0",
        "gang-1",
    ]


def test_ratios_are_relative_to_spreading() -> None:
    placed = [Placed(way, 1000, seconds, 5, 9) for way, seconds in ((SPREAD, 10.0), (PACK, 20.0), (GANGS, 5.0))]
    medians = {figure.name: figure.median for figure in summary(placed, 200)}
    assert medians["200 nodes: until all are bound, pack ÷ spread"] == 2.0
    assert medians["200 nodes: until all are bound, pack, in gangs ÷ spread"] == 0.5
    assert medians["200 nodes, 1000 pods, pack: bound a second"] == 50.0


def test_the_crowd_fits_and_the_contests_gangs_fit_only_one_at_a_time() -> None:
    assert all(gang.members * gang.gpus <= HOSTS * GPUS for gang in CONTEST)
    assert sum(gang.members * gang.gpus for gang in CONTEST) > HOSTS * GPUS
    assert sum(gang.members * gang.gpus for gang in CROWD) < HOSTS * GPUS


@pytest.mark.parametrize("mechanism", [Native(), Coscheduling(), Kueue(800)], ids=lambda each: str(each.name))
def test_every_mechanism_gets_the_same_job(mechanism: Native) -> None:
    made = mechanism.made(Gang("red", 4, 8))
    _, job = made[-1]
    assert (job["kind"], job["spec"]["parallelism"], job["metadata"]["name"]) == ("Job", 4, "red")
    limits = job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits["nvidia.com/gpu"] == "8"
    sizes = [thing["spec"] for path, thing in made[:-1] if path.endswith("podgroups")]
    assert sizes in (
        [],
        [{"schedulingPolicy": {"gang": {"minCount": 4}}}],
        [{"minMember": 4, "scheduleTimeoutSeconds": 60}],
    )


class FakeApi:
    """Bound pods at each request: Job -> number of pods."""

    def __init__(self, *looks: dict[str, int]) -> None:
        self._looks: Iterator[dict[str, int]] = iter(looks)

    def get(self, path: str) -> Any:
        bound = next(self._looks)
        label = "batch.kubernetes.io/job-name"
        pods = [name for name, count in bound.items() for _ in range(count)]
        return {"items": [{"metadata": {"labels": {label: name}}, "spec": {"nodeName": "n"}} for name in pods]}


def test_a_gang_with_some_of_its_hosts_is_partially_started(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([0.0, 1.0, 3.0, 4.0])
    monkeypatch.setattr(gang_trials.time, "monotonic", lambda: next(now))
    watch = Watch(FakeApi({}, {"red": 2, "blue": 3}, {"red": 4}), [Gang("red", 4, 8), Gang("blue", 4, 8)])  # type: ignore[arg-type]
    assert [watch.whole(), watch.whole(), watch.whole()] == [set(), set(), {"red"}]
    assert (watch.partial_s, watch.held) == (2.0, 3)


def test_what_never_happened_is_reported_as_never(capsys: pytest.CaptureFixture[str]) -> None:
    line = gang_trials.describe(Trial("x", (1.0,), (gang_trials.PATIENCE_S,), (2.0,), (0.0,), (30.0,)))
    assert "one whole after never s" in line


def test_a_controller_that_exits_before_it_is_ready_stops_the_comparison_with_its_log(tmp_path: Path) -> None:
    log = tmp_path / "kueue.log"
    log.write_text("no certificate for metrics\n")
    with subprocess.Popen(["false"]) as process:
        process.wait()
        with pytest.raises(LoopbackError, match="kueue is not ready: no certificate for metrics"):
            until_ready(process, f"http://127.0.0.1:{free_port()}/readyz", log)
