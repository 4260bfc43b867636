"""The managed instance groups that `stacks/gcp/workers.py` makes: one per pool and zone.

A group has no labels. It is identified by the labels in its template, which its machines get.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cluster.spec import Cluster
from cluster.tags import of_cluster
from controllers.autoscaler.clouds import common
from controllers.autoscaler.clouds.common import Names
from controllers.autoscaler.clouds.gcp.api import Compute, Zonal
from controllers.autoscaler.groups import Group, Machine

_AT_ONCE = 1000
"""Instances in one request; see "instanceGroupManagers.deleteInstances"."""


class GcpGroups:
    """See `controllers.autoscaler.groups.Groups`. A machine's id is ``<zone>/<name>``."""

    def __init__(self, cluster: Cluster, names: Names) -> None:
        self._cluster = cluster
        self._names = names
        self._api = Compute(cluster.spec.control_plane.region)
        self._labels = {**of_cluster(cluster.name), "role": "worker"}

    def read(self) -> Mapping[str, Group]:
        by_pool, names = self._find(), self._names()
        return {pool: self._group(pool, zonals, names) for pool, zonals in by_pool.items()}

    def grow(self, pool: str, size: int) -> None:
        """Add machines in the zones with the fewest; zones where a machine could not be created are used last."""
        zonals = common.group_of(self._find(), pool)
        targets = {zonal: zonal.size for zonal in zonals}
        more = size - sum(targets.values())
        if more <= 0:
            return
        common.refuse_above(pool, size, self._cluster.spec.pools[pool].max)
        bad = {zonal: any(member.error for member in self._api.members(zonal)) for zonal in zonals}
        able = [zonal for zonal in zonals if not bad[zonal]] or list(zonals)
        for _ in range(more):
            targets[min(able, key=lambda zonal: (targets[zonal], zonal.zone))] += 1
        for zonal, target in targets.items():
            if target > zonal.size:
                self._api.resize(zonal, target)

    def remove(self, pool: str, ids: Sequence[str]) -> None:
        zonals = common.group_of(self._find(), pool)
        by_key = {
            (zonal, member.name): f"{zonal.zone}/{member.name}"
            for zonal in zonals
            for member in self._api.members(zonal)
            if member.state != "leaving"
        }
        leaving = [key for key, id_ in by_key.items() if id_ in set(ids)]
        left = sum(zonal.size for zonal in zonals) - len(leaving)
        common.refuse_below(pool, left, self._cluster.spec.pools[pool].min)
        for zonal in zonals:
            names = [name for of, name in leaving if of == zonal]
            for at in range(0, len(names), _AT_ONCE):
                self._api.delete(zonal, names[at : at + _AT_ONCE])

    def _find(self) -> dict[str, tuple[Zonal, ...]]:
        """Return pool -> its groups. Errors: raises GroupError unless each pool of the spec has exactly one group in each of its zones."""
        templates = self._templates()
        zones = {zone for pool in common.in_region(self._cluster) for zone in self._zones(pool)}
        groups = [
            (f"{templates[each.template]} in {zone}", each.name, each)
            for zone in sorted(zones)
            for each in self._api.groups(zone)
            if each.template in templates
        ]
        places = {f"{pool} in {zone}": pool for pool in common.in_region(self._cluster) for zone in self._zones(pool)}
        by_place = common.exactly_one(self._cluster, list(places), groups)
        return {
            pool: tuple(by_place[place] for place, of in places.items() if of == pool)
            for pool in common.in_region(self._cluster)
        }

    def _templates(self) -> dict[str, str]:
        """Return template of this cluster's workers -> pool."""
        return {
            link: labels["pool"]
            for link, labels in self._api.templates().items()
            if all(labels.get(key) == value for key, value in self._labels.items()) and labels.get("pool")
        }

    def _zones(self, pool: str) -> tuple[str, ...]:
        return self._cluster.spec.zones_of(self._cluster.spec.pools[pool])

    def _group(self, pool: str, zonals: Sequence[Zonal], names: Mapping[str, str]) -> Group:
        spec, machines, troubles = self._cluster.spec.pools[pool], [], []
        for zonal in zonals:
            for member in self._api.members(zonal):
                node = names.get(f"gce://{self._api.project}/{zonal.zone}/{member.name}", "")
                machines.append(Machine(f"{zonal.zone}/{member.name}", node, member.state, zonal.zone))
                if member.error and member.state == "booting":
                    troubles.append(f"{zonal.zone}: {member.error}")
        size = sum(zonal.size for zonal in zonals)
        return Group(pool, size, spec.min, spec.max, tuple(machines), "; ".join(dict.fromkeys(troubles)))
