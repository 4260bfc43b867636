"""The lab as groups of machines: real hosts on this machine that boot, join, and disappear.

The stack owns as many as a pool's min and re-creates them; further hosts are made here in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

from cluster.spec import Cluster
from controllers.autoscaler.groups import Group, GroupError, Machine
from operations.lab import RegionWorker, RegionWorkersError


class Workers(Protocol):
    """See `operations.lab.RegionWorkers`."""

    def there(self) -> list[RegionWorker]: ...
    def grow(self, pool: str, size: int) -> None: ...
    def remove(self, name: str) -> None: ...


class LabGroups:
    """See `groups.Groups`. A machine's id is its name, which is also its node's.

    The desired size equals the existing one: the lab makes hosts at once, or says why not.
    """

    def __init__(self, cluster: Cluster, workers: Workers) -> None:
        self._pools = {name: pool for name, pool in cluster.spec.pools.items() if pool.site is None}
        self._workers = workers

    def read(self) -> Mapping[str, Group]:
        workers = self._workers.there()
        groups = {}
        for name, pool in self._pools.items():
            machines = tuple(
                Machine(each.name, each.name, "running", since=datetime.fromtimestamp(each.made_s, UTC))
                for each in workers
                if each.pool == name
            )
            groups[name] = Group(name, len(machines), pool.min, pool.max, machines)
        return groups

    def grow(self, pool: str, size: int) -> None:
        if size > self._pools[pool].max:
            raise GroupError(
                f"pool {pool} may have at most {self._pools[pool].max} machines, but {size} were requested"
            )
        try:
            self._workers.grow(pool, size)
        except RegionWorkersError as error:
            raise GroupError(str(error)) from error

    def remove(self, pool: str, ids: Sequence[str]) -> None:
        try:
            for name in ids:
                self._workers.remove(name)
        except RegionWorkersError as error:
            raise GroupError(str(error)) from error
