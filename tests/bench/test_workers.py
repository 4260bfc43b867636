from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from inventories.build import build
from inventories.run import run
from tests.bench import inventory as inventories_
from tests.bench import peer
from tests.bench.fleet import fleet, outputs
from tests.bench.workers import Run, answered, exponent, marginal, summary


def test_an_exponent_is_recovered() -> None:
    sizes = [10, 100, 1000]
    assert exponent(sizes, [0.7 * size for size in sizes]) == pytest.approx(1.0)
    assert exponent(sizes, [3 * size**1.3 for size in sizes]) == pytest.approx(1.3)
    with pytest.raises(ValueError, match="two sizes"):
        exponent([10], [1])


def test_the_cost_of_one_more_worker_is_measured_between_the_two_largest_fleets() -> None:
    assert marginal(Run(100, 11, 100.0, 1.0), Run(1000, 11, 1900.0, 1.0)) == pytest.approx(2.0)


def test_a_growth_or_a_ratio_past_its_aim_is_missed() -> None:
    linear = [Run(size, 11, 0.6 * size, 1.0) for size in (10, 100)]
    square = [Run(size, 11, 0.006 * size**2, 1.0) for size in (10, 100)]
    far, near = (Run(10, 11, 6.0, 1.0), Run(10, 343, 180.0, 1.0)), (Run(10, 11, 6.0, 1.0), Run(10, 343, 60.0, 1.0))
    good = {figure.name: figure.met for figure in summary(linear, [far], 2.0)}
    bad = {figure.name: figure.met for figure in summary(square, [near], 30.0)}
    with_aim = [name for name, met in good.items() if met is not None]
    assert len(with_aim) == 3
    assert [good[name] for name in with_aim] == [True] * 3
    assert [bad[name] for name in with_aim] == [False] * 3


def test_a_made_up_fleet_has_the_requested_hosts_with_unique_addresses() -> None:
    hosts = build(fleet(100), outputs()).data["all"]["hosts"]
    assert len({values["ansible_host"] for values in hosts.values()}) == 100
    assert len(build(fleet(100), outputs()).groups) == 5  # one pool, one site, three racks of 40


def test_a_script_prints_the_same_inventory() -> None:
    inventory = build(fleet(41), outputs())
    document = inventories_.as_script(inventory)
    assert document["_meta"]["hostvars"] == inventory.data["all"]["hosts"]
    assert tuple(document["pool_workers"]["hosts"]) == inventory.hosts
    assert set(document) == {"_meta", "all", *inventory.groups}


def test_every_task_of_the_peer_succeeds_on_a_host_that_answers_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs the first task of each kind, and a skipped one. A failing kind would end its host early, and cost less."""
    tasks = list(peer.tasks())
    assert len(tasks) == sum(count for count, _ in peer.KINDS.values()) + peer.SKIPPED
    chosen = [next(task for task in tasks if f"ansible.builtin.{kind}" in task) for kind in peer.KINDS]
    monkeypatch.setattr(peer, "tasks", lambda: iter([*chosen, tasks[-1]]))
    hosts = answered(build(fleet(1), outputs()), peer.interpreter(tmp_path), dead=False)
    report = run(hosts, root=peer.root(tmp_path))
    (host,) = report.hosts.values()
    assert (report.failures, host.ok, host.skipped) == ((), len(peer.KINDS), 1)


def test_the_stand_in_for_python_reads_all_its_input(tmp_path: Path) -> None:
    done = subprocess.run([peer.interpreter(tmp_path)], input="x" * 2**20, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["changed"] is False
