"""Changes of a spec: each is made where it makes sense, and none breaks the spec."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.check import check
from cluster.load import load_cluster
from cluster.spec import Cluster
from stacks.validation.changes import CHANGES, Change, changed

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = [path.parent.name for path in sorted((ROOT / "examples").glob("*/cluster.yaml"))]


def example(name: str) -> Cluster:
    return load_cluster(ROOT / "examples" / name / "cluster.yaml")


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_can_be_changed_and_is_still_right(name: str) -> None:
    cluster = example(name)
    made = changed(cluster)
    assert len(made.whats) >= 3
    assert [problem for problem in check(made.cluster) if problem.is_error] == []
    assert made.cluster.spec.control_plane.api_servers == cluster.spec.control_plane.api_servers + 1
    assert made.cluster.spec.control_plane.machine != cluster.spec.control_plane.machine
    assert made.cluster.hosts == cluster.hosts


def test_every_change_is_made_of_some_example() -> None:
    made = {what for name in EXAMPLES for what in changed(example(name)).whats}
    assert made == {change.what for change in CHANGES}


def test_only_network_disks_are_enlarged_and_only_pools_in_the_region_grow() -> None:
    horus, ibis, jaguar = (changed(example(name)) for name in ("horus", "ibis", "jaguar"))
    assert "larger data disks of etcd" not in horus.whats
    assert ibis.cluster.spec.etcd.main.disk_size == example("ibis").spec.etcd.main.disk_size + 2**30
    assert "pools in the region that may grow by one" not in jaguar.whats
    before = example("horus").spec.pools
    assert {name: pool.max - before[name].max for name, pool in horus.cluster.spec.pools.items()} == dict.fromkeys(
        before, 1
    )


def test_a_change_that_the_checks_refuse_is_not_made() -> None:
    even = Change("an even number of members", ("etcd", "main", "members"), lambda _, count: count + 1)
    more = Change("one API server more", ("control_plane", "api_servers"), lambda _, count: count + 1)
    made = changed(example("horus"), (even, more))
    assert made.whats == ("one API server more",)
    assert made.cluster.spec.etcd == example("horus").spec.etcd
