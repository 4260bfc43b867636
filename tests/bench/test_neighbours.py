"""The bench of neighbour tables. No test changes the kernel's thresholds, which the whole machine shares."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from network.neighbours import thresholds
from tests.bench import neighbour_tables as tables
from tests.bench import neighbours
from tests.bench.fleet import fleet
from tests.bench.neighbour_tables import thresholds_put_back
from tests.bench.neighbours import DEFAULTS, PEERS, ROLE, Outcome, call, describe, hosts, summary


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with files like those in /proc, in place of the kernel's."""
    monkeypatch.setattr(tables, "threshold", lambda family, number: tmp_path / f"{family}-{number}")
    monkeypatch.setattr(tables, "_SAVED", tmp_path / "saved.json")
    tables.set_thresholds(DEFAULTS)
    return tmp_path


def test_the_measured_thresholds_are_those_of_the_role_for_such_a_fleet() -> None:
    assert thresholds(fleet(PEERS)) == ROLE


def test_thresholds_are_restored_after_an_error(kernel: Path) -> None:
    before = tables.read_thresholds()
    with pytest.raises(KeyboardInterrupt), thresholds_put_back():
        tables.set_thresholds(ROLE)
        assert tables.read_thresholds() != before
        raise KeyboardInterrupt
    assert tables.read_thresholds() == before
    assert not (kernel / "saved.json").exists()


def test_the_next_run_restores_thresholds_after_a_killed_one(kernel: Path) -> None:
    before = tables.read_thresholds()
    (kernel / "saved.json").write_text(json.dumps(before))
    tables.set_thresholds(ROLE)
    with thresholds_put_back():
        assert tables.read_thresholds() == before
    assert tables.read_thresholds() == before


def test_only_the_role_has_aims_and_one_slow_host_misses_them() -> None:
    fine, full = Outcome((0.1, 0.2), 0, 0, 0, 2), Outcome((0.1, 1.1), 3, 40, 5, 1024)
    figures = summary({("ipv4", "kernel's thresholds"): full, ("ipv4", "role's thresholds"): fine}, 5)
    assert [figure.met for figure in figures] == [None] * 3 + [True] * 3
    assert [figure.median for figure in figures[:3]] == [4.0, 1.1, 40.0]
    assert "5 lines of the kernel's log say so; 1024 entries" in figures[2].note
    missed = summary({("ipv4", "role's thresholds"): full}, 5)
    assert [figure.met for figure in missed] == [False] * 3
    assert describe(full) == (
        "2 reached, 1 of them after 0.5 s or more, the last after 1.10 s; 3 not within 20 s; 40 overflows"
    )


def test_hosts_in_a_namespace_are_reached_over_both_families_and_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0 or not Path("/proc/net/stat/arp_cache").exists() or not os.access("/dev/kmsg", os.R_OK):
        pytest.skip("only root may make networks and read the kernel's log")
    for name in ("_NAMESPACE", "_NEAR", "_FAR"):
        monkeypatch.setattr(neighbours, name, f"mgn{name[1]}{os.getpid()}"[:15].lower())
    with hosts(20):
        outcomes = [call(family, 20) for family in ("ipv4", "ipv6")]
        assert not neighbours.connect("ipv4", ["198.18.128.1"])[1]
    assert [(len(outcome.seconds), outcome.failed) for outcome in outcomes] == [(20, 0)] * 2
    left = [*Path("/run/netns").glob("mgn*"), *Path("/sys/class/net").glob("mgn*")]
    assert [path.name for path in left if str(os.getpid()) in path.name] == []
