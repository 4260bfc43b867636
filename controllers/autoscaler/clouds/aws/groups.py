"""The Auto Scaling groups that `stacks/aws/workers.py` makes: one per pool, across its zones, identified by its tags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from cluster.pools import POOL_LABEL
from cluster.spec import Cluster
from cluster.tags import of_cluster
from controllers.autoscaler.clouds import common
from controllers.autoscaler.clouds.aws.api import AutoScaling, AwsRefusedError, Instance, ScalingGroup
from controllers.autoscaler.clouds.common import LostError, Names
from controllers.autoscaler.groups import Group, Machine

_POOL_TAG = f"k8s.io/cluster-autoscaler/node-template/label/{POOL_LABEL}"
_BOOTING, _RUNNING = (
    ("Pending",),
    ("InService", "EnteringStandby", "Standby", "ReplacingRootVolume", "RootVolumeReplaced"),
)
"""States from "Amazon EC2 Auto Scaling instance lifecycle"; in all others the instance is leaving or gone."""
_TRIES = 3


class AwsGroups:
    """See `controllers.autoscaler.groups.Groups`. A machine's id is the instance's."""

    def __init__(self, cluster: Cluster, names: Names) -> None:
        self._cluster = cluster
        self._names = names
        self._api = AutoScaling(cluster.spec.control_plane.region)
        self._tags = {**of_cluster(cluster.name), "role": "pool"}

    def read(self) -> Mapping[str, Group]:
        by_pool, names = self._find(), self._names()
        return {name: self._group(name, group, names) for name, group in by_pool.items()}

    def grow(self, pool: str, size: int) -> None:
        group = self._of(pool)
        if size <= group.desired:
            return
        common.refuse_above(pool, size, self._most(pool, group))
        self._api.set_desired(group.name, size)

    def remove(self, pool: str, ids: Sequence[str]) -> None:
        group = self._of(pool)
        leaving = [each for each in group.instances if each.id in set(ids) and _state(each) != "leaving"]
        common.refuse_below(pool, group.desired - len(leaving), max(group.least, self._cluster.spec.pools[pool].min))
        for instance in leaving:
            self._end(pool, instance.id)

    def _end(self, pool: str, instance: str) -> None:
        """Terminate an instance. If the answer is lost, check in the group whether it was done."""
        for last in range(_TRIES):
            try:
                return self._api.terminate(instance)
            except AwsRefusedError as error:
                # "No managed instance found for instance ID": it is already gone.
                if error.word != "ValidationError" or self._is_there(pool, instance):
                    raise
                return None
            except LostError:
                if last == _TRIES - 1:
                    raise
                if not self._is_there(pool, instance):
                    return None

    def _is_there(self, pool: str, instance: str) -> bool:
        return any(each.id == instance and _state(each) != "leaving" for each in self._of(pool).instances)

    def _find(self) -> dict[str, ScalingGroup]:
        """Return pool -> its group. Errors: raises GroupError unless each pool of the spec has exactly one."""
        groups: list[tuple[str, str, ScalingGroup]] = []
        for group in self._api.groups(self._tags):
            # Check again, whatever the filter let through.
            if all(group.tags.get(key) == value for key, value in self._tags.items()):
                groups.append((group.tags.get(_POOL_TAG, ""), group.name, group))
        return common.exactly_one(self._cluster, common.in_region(self._cluster), groups)

    def _of(self, pool: str) -> ScalingGroup:
        return common.group_of(self._find(), pool)

    def _most(self, pool: str, group: ScalingGroup) -> int:
        return min(group.most, self._cluster.spec.pools[pool].max)

    def _group(self, pool: str, group: ScalingGroup, names: Mapping[str, str]) -> Group:
        machines = tuple(
            Machine(each.id, names.get(f"aws:///{each.zone}/{each.id}", ""), _state(each), each.zone)
            for each in group.instances
        )
        here = sum(machine.state != "leaving" for machine in machines)
        trouble = self._api.why_no_launch(group.name) if here < group.desired else ""
        least = self._cluster.spec.pools[pool].min
        return Group(pool, group.desired, least, self._most(pool, group), machines, trouble)


def _state(instance: Instance) -> Literal["booting", "running", "leaving"]:
    if instance.state.startswith(_BOOTING):
        return "booting"
    return "running" if instance.state.startswith(_RUNNING) else "leaving"
