"""Changes of a spec: each is made if it applies, and none breaks the spec."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.check import check
from cluster.load import load_cluster
from cluster.spec import Cluster
from stacks.validation.changes import CHANGES, SpecChange, changed

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = [path.parent.name for path in sorted((ROOT / "examples").glob("*/cluster.yaml"))]


def example(name: str) -> Cluster:
    return load_cluster(ROOT / "examples" / name / "cluster.yaml")


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_can_be_changed_and_stays_valid(name: str) -> None:
    cluster = example(name)
    result = changed(cluster)
    assert len(result.whats) >= 3
    assert [problem for problem in check(result.cluster) if problem.is_error] == []
    assert result.cluster.spec.control_plane.api_servers == cluster.spec.control_plane.api_servers + 1
    assert result.cluster.spec.control_plane.machine != cluster.spec.control_plane.machine
    assert result.cluster.hosts == cluster.hosts


def test_every_change_applies_to_some_example() -> None:
    applied = {what for name in EXAMPLES for what in changed(example(name)).whats}
    assert applied == {change.what for change in CHANGES}


def test_only_network_disks_are_enlarged_and_only_pools_in_the_region_grow() -> None:
    horus, ibis, jaguar = (changed(example(name)) for name in ("horus", "ibis", "jaguar"))
    assert "larger data disks of etcd" not in horus.whats
    assert ibis.cluster.spec.etcd.main.disk_size == example("ibis").spec.etcd.main.disk_size + 2**30
    assert "pools in the region that may grow by one" not in jaguar.whats
    before = example("horus").spec.pools
    assert {name: pool.max - before[name].max for name, pool in horus.cluster.spec.pools.items()} == dict.fromkeys(
        before, 1
    )


def test_a_change_that_the_checks_refuse_is_skipped() -> None:
    even = SpecChange("an even number of members", ("etcd", "main", "members"), lambda _, count: count + 1)
    more = SpecChange("one more API server", ("control_plane", "api_servers"), lambda _, count: count + 1)
    result = changed(example("horus"), (even, more))
    assert result.whats == ("one more API server",)
    assert result.cluster.spec.etcd == example("horus").spec.etcd
