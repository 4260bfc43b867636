"""The lab as groups: which hosts belong to a pool, and which of them the stack makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from cluster.spec import Cluster
from controllers.autoscaler.groups import GroupError
from controllers.autoscaler.lab import LabGroups
from operations.lab import RegionWorker, RegionWorkersError
from stacks.lab.workers import possible_in_region, workers_in_region


@dataclass
class Hosts:
    made: list[RegionWorker] = field(default_factory=list)
    broken: str = ""

    def there(self) -> list[RegionWorker]:
        return self.made

    def grow(self, pool: str, size: int) -> None:
        if self.broken:
            raise RegionWorkersError(self.broken)
        own = [each for each in self.made if each.pool == pool]
        self.made += [RegionWorker(pool, f"lab-{pool}-{at + 1}", 5.0) for at in range(len(own), size)]

    def remove(self, name: str) -> None:
        self.made = [each for each in self.made if each.name != name]


@pytest.fixture
def cluster(build: Callable[..., Cluster]) -> Cluster:
    pool = {"machine": "lab-small", "min": 1, "max": 3}
    return build({"pools": {"region": pool, "other": {**pool, "min": 0, "max": 2}}, "autoscaler": {}})


def test_groups_of_the_lab_grow_and_shrink_by_name(cluster: Cluster) -> None:
    hosts = Hosts([RegionWorker("region", "lab-region-1", 5.0)])
    groups = LabGroups(cluster, hosts)
    groups.grow("region", 3)
    groups.grow("region", 2)
    group = groups.read()["region"]
    assert (group.size, group.least, group.most) == (3, 1, 3)
    assert [machine.node for machine in group.machines] == ["lab-region-1", "lab-region-2", "lab-region-3"]
    groups.remove("region", ["lab-region-2", "gone"])
    assert [machine.id for machine in groups.read()["region"].machines] == ["lab-region-1", "lab-region-3"]
    assert groups.read()["other"].size == 0
    with pytest.raises(GroupError, match="may have at most 3 machines, but 4 were requested"):
        groups.grow("region", 4)
    hosts.broken = "no space is left"
    with pytest.raises(GroupError, match="no space is left"):
        groups.grow("region", 3)


def test_the_stack_makes_the_minimum_and_addresses_do_not_depend_on_the_number_of_hosts(
    cluster: Cluster, build: Callable[..., Cluster]
) -> None:
    assert [worker.host.name for worker in workers_in_region(cluster)] == ["lab-region-1"]
    possible = possible_in_region(cluster)
    assert [worker.host.name for worker in possible] == [
        "lab-region-1", "lab-region-2", "lab-region-3", "lab-other-1", "lab-other-2",
    ]  # fmt: skip
    assert len({worker.host.address for worker in possible}) == 5
    pool = {"machine": "lab-small", "min": 3, "max": 3}
    fixed = build({"pools": {"region": pool, "other": {**pool, "min": 0, "max": 2}}})
    assert possible_in_region(fixed) == possible
