"""The scale sets that `stacks/azure/workers.py` makes: one per pool, in the workers' resource group, identified by tags.

They use uniform orchestration: a machine is identified by its number in the scale set.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from cluster.pools import POOL_LABEL
from cluster.spec import Cluster
from cluster.tags import of_cluster
from controllers.autoscaler.clouds import common
from controllers.autoscaler.clouds.azure.api import AzureRefusedError, Instance, ScaleSet, ScaleSets
from controllers.autoscaler.clouds.common import LostError, Names
from controllers.autoscaler.groups import Group, Machine

_TRIES = 3
_POOL_TAG = "k8s.io_cluster-autoscaler_node-template_label_" + POOL_LABEL.replace("_", "~2").replace("/", "_")
_REMEMBERED_S = 900.0
_WANTING = ("quota", "allocation", "capacity", "skunotavailable", "operationnotallowed", "overconstrained")
"""Parts of error codes that mean a lack of capacity or quota: see "Resolve errors for resource quotas", "Resolve errors for SKU not
available", "Troubleshoot allocation failures". For a core quota Azure returns OperationNotAllowed."""


class AzureGroups:
    """See `controllers.autoscaler.groups.Groups`. A machine's id is its number in the scale set."""

    def __init__(self, cluster: Cluster, names: Names, clock: Callable[[], float] = time.monotonic) -> None:
        self._cluster = cluster
        self._names = names
        self._clock = clock
        # A cluster's pools are in the resource group with this name, which no other cluster can have.
        self._api = ScaleSets(f"{cluster.name}_workers")
        self._refused: dict[str, tuple[float, str]] = {}

    def read(self) -> Mapping[str, Group]:
        by_pool = self._find()
        # Azure's APIs spell the same resource's id in different cases.
        names = {provider.lower(): name for provider, name in self._names().items()}
        return {pool: self._group(pool, scale_set, names) for pool, scale_set in by_pool.items()}

    def grow(self, pool: str, size: int) -> None:
        scale_set = self._of(pool)
        if size <= scale_set.size:
            return
        common.refuse_above(pool, size, self._cluster.spec.pools[pool].max)
        try:
            self._api.resize(scale_set, size)
        except AzureRefusedError as error:
            if any(word in error.word.lower() for word in _WANTING):
                self._refused[pool] = (self._clock(), str(error))
            raise
        self._refused.pop(pool, None)

    def remove(self, pool: str, ids: Sequence[str]) -> None:
        scale_set = self._of(pool)
        leaving = self._there(scale_set, ids)
        common.refuse_below(pool, scale_set.size - len(leaving), self._cluster.spec.pools[pool].min)
        for last in range(_TRIES):
            if not leaving:
                return
            try:
                return self._api.delete(scale_set.name, leaving)
            except LostError:
                if last == _TRIES - 1:
                    raise
                leaving = self._there(scale_set, ids)

    def _there(self, scale_set: ScaleSet, ids: Sequence[str]) -> list[str]:
        return [
            each.id for each in self._api.instances(scale_set.name) if each.id in set(ids) and each.state != "leaving"
        ]

    def _find(self) -> dict[str, ScaleSet]:
        tags = of_cluster(self._cluster.name)
        scale_sets: list[tuple[str, str, ScaleSet]] = []
        for each in self._api.every():
            pool = each.tags.get(_POOL_TAG, "")
            if (
                all(each.tags.get(key) == value for key, value in tags.items())
                and each.tags.get("role") == f"pool-{pool}"
            ):
                scale_sets.append((pool, each.name, each))
        return common.exactly_one(self._cluster, common.in_region(self._cluster), scale_sets)

    def _of(self, pool: str) -> ScaleSet:
        return common.group_of(self._find(), pool)

    def _group(self, pool: str, scale_set: ScaleSet, names: Mapping[str, str]) -> Group:
        spec, instances = self._cluster.spec.pools[pool], self._api.instances(scale_set.name)
        machines = tuple(
            Machine(each.id, names.get(each.provider, ""), each.state, each.zone, each.since) for each in instances
        )
        trouble = self._trouble(pool, scale_set, instances)
        return Group(pool, scale_set.size, spec.min, spec.max, machines, trouble)

    def _trouble(self, pool: str, scale_set: ScaleSet, instances: Sequence[Instance]) -> str:
        errors = [each.error for each in instances if each.error]
        here = sum(each.state != "leaving" for each in instances)
        if scale_set.provisioning == "Failed" and here < scale_set.size:
            errors += self._api.errors(scale_set.name)
        at, refusal = self._refused.get(pool, (0.0, ""))
        if refusal and self._clock() - at < _REMEMBERED_S:
            errors.append(refusal)
        return "; ".join(dict.fromkeys(errors))
