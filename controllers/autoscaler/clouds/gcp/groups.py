"""The managed instance groups that `stacks/gcp/workers.py` makes: one a pool and zone.

A group has no labels of its own; its template has those that its machines get, and by them it is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cluster.spec import Cluster
from controllers.autoscaler.clouds import common
from controllers.autoscaler.clouds.common import Names
from controllers.autoscaler.clouds.gcp.api import Compute, Zonal
from controllers.autoscaler.groups import Group, Machine

_AT_ONCE = 1000
""""instanceGroupManagers.deleteInstances": instances of one request."""


class GcpGroups:
    """See `controllers.autoscaler.groups.Groups`. A machine's id is ``<zone>/<name>``."""

    def __init__(self, cluster: Cluster, names: Names) -> None:
        self._cluster = cluster
        self._names = names
        self._api = Compute(cluster.spec.control_plane.region)
        self._labels = {"menagerie": "true", "cluster": cluster.name, "role": "worker"}

    def read(self) -> Mapping[str, Group]:
        found, names = self._find(), self._names()
        return {pool: self._group(pool, zonals, names) for pool, zonals in found.items()}

    def grow(self, pool: str, size: int) -> None:
        """More in the zones that have fewest; those that could not make a machine come last."""
        zonals = common.known(self._find(), pool)
        wanted = {zonal: zonal.size for zonal in zonals}
        more = size - sum(wanted.values())
        if more <= 0:
            return
        common.refuse_above(pool, size, self._cluster.spec.pools[pool].max)
        bad = {zonal: any(member.error for member in self._api.members(zonal)) for zonal in zonals}
        able = [zonal for zonal in zonals if not bad[zonal]] or list(zonals)
        for _ in range(more):
            wanted[min(able, key=lambda zonal: (wanted[zonal], zonal.zone))] += 1
        for zonal, target in wanted.items():
            if target > zonal.size:
                self._api.resize(zonal, target)

    def remove(self, pool: str, ids: Sequence[str]) -> None:
        zonals = common.known(self._find(), pool)
        here = {
            (zonal, member.name): f"{zonal.zone}/{member.name}"
            for zonal in zonals
            for member in self._api.members(zonal)
            if member.state != "leaving"
        }
        going = [key for key, id_ in here.items() if id_ in set(ids)]
        left = sum(zonal.size for zonal in zonals) - len(going)
        common.refuse_below(pool, left, self._cluster.spec.pools[pool].min)
        for zonal in zonals:
            names = [name for of, name in going if of == zonal]
            for at in range(0, len(names), _AT_ONCE):
                self._api.delete(zonal, names[at : at + _AT_ONCE])

    def _find(self) -> dict[str, tuple[Zonal, ...]]:
        """Pool -> its groups. GroupError unless each pool of the spec has one in each of its zones, and no second."""
        templates = self._templates()
        zones = {zone for pool in common.in_region(self._cluster) for zone in self._zones(pool)}
        found = [
            (f"{templates[each.template]} in {zone}", each.name, each)
            for zone in sorted(zones)
            for each in self._api.groups(zone)
            if each.template in templates
        ]
        wanted = {f"{pool} in {zone}": pool for pool in common.in_region(self._cluster) for zone in self._zones(pool)}
        by_place = common.exactly_one(self._cluster, list(wanted), found)
        return {
            pool: tuple(by_place[place] for place, of in wanted.items() if of == pool)
            for pool in common.in_region(self._cluster)
        }

    def _templates(self) -> dict[str, str]:
        """Templates of this cluster's workers -> the pool."""
        return {
            link: labels["pool"]
            for link, labels in self._api.templates().items()
            if all(labels.get(key) == value for key, value in self._labels.items()) and labels.get("pool")
        }

    def _zones(self, pool: str) -> tuple[str, ...]:
        spec = self._cluster.spec
        return tuple(map(str, spec.pools[pool].zones or spec.control_plane.zones))

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
