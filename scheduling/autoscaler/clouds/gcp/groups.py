"""The managed instance groups that `stacks/gcp/workers.py` makes: one a pool and zone.

A group has no labels of its own; its template has those that its machines get, and by them it is known.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote, urlencode

from cluster.spec import Cluster
from scheduling.autoscaler.clouds import common
from scheduling.autoscaler.clouds.bearer import Api
from scheduling.autoscaler.clouds.common import Names
from scheduling.autoscaler.clouds.gcp.identity import GcpBearers
from scheduling.autoscaler.clouds.http import Http
from scheduling.autoscaler.groups import Group, GroupError, Machine

_URL = "https://compute.googleapis.com"
_MOST_PAGES = 1000
_AT_ONCE = 1000
""""instanceGroupManagers.deleteInstances": instances of one request."""
_BOOTING = frozenset({"CREATING", "CREATING_WITHOUT_RETRIES", "RECREATING", "VERIFYING"})
_LEAVING = frozenset({"DELETING", "ABANDONING", "STOPPING", "SUSPENDING"})
_GOING = frozenset({"STOPPING", "STOPPED", "TERMINATED", "SUSPENDING", "SUSPENDED"})
""""ManagedInstance": currentAction and instanceStatus."""


@dataclass(frozen=True)
class Zonal:
    """One group of a pool. size: targetSize."""

    zone: str
    name: str
    size: int


@dataclass(frozen=True)
class Member:
    """error: why it could not be made the last time."""

    name: str
    state: Literal["booting", "running", "leaving"]
    error: str


class GcpGroups:
    """See `scheduling.autoscaler.groups.Groups`. A machine's id is ``<zone>/<name>``."""

    def __init__(
        self, cluster: Cluster, http: Http, names: Names, environment: Mapping[str, str], page: int = 500
    ) -> None:
        self._cluster = cluster
        self._names = names
        self._page = page
        self._bearers = GcpBearers(http, environment)
        url = environment.get("CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE", _URL).removesuffix("/compute/v1/").rstrip("/")
        self._api = Api(http, self._bearers, "Google Cloud", url, "docs/gcp-role-autoscaler.yaml")
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
        bad = {zonal: any(member.error for member in self._members(zonal)) for zonal in zonals}
        able = [zonal for zonal in zonals if not bad[zonal]] or list(zonals)
        for _ in range(more):
            wanted[min(able, key=lambda zonal: (wanted[zonal], zonal.zone))] += 1
        for zonal, target in wanted.items():
            if target > zonal.size:
                self._change(zonal, "resize", size=str(target))

    def remove(self, pool: str, ids: Sequence[str]) -> None:
        zonals = common.known(self._find(), pool)
        here = {
            (zonal, member.name): f"{zonal.zone}/{member.name}"
            for zonal in zonals
            for member in self._members(zonal)
            if member.state != "leaving"
        }
        going = [key for key, id_ in here.items() if id_ in set(ids)]
        left = sum(zonal.size for zonal in zonals) - len(going)
        common.refuse_below(pool, left, self._cluster.spec.pools[pool].min)
        for zonal in zonals:
            names = [name for of, name in going if of == zonal]
            for at in range(0, len(names), _AT_ONCE):
                urls = [f"zones/{zonal.zone}/instances/{name}" for name in names[at : at + _AT_ONCE]]
                body = {"instances": urls, "skipInstancesOnValidationError": True}
                self._change(zonal, "deleteInstances", body)

    def _change(self, zonal: Zonal, what: str, body: object = None, **query: str) -> None:
        """requestId: of a request that is repeated Google does the first alone."""
        query["requestId"] = str(uuid.uuid4())
        self._api.ask("POST", f"{self._at(zonal)}/{what}?{urlencode(query)}", body)

    def _find(self) -> dict[str, tuple[Zonal, ...]]:
        """Pool -> its groups. GroupError unless each pool of the spec has one in each of its zones, and no second."""
        templates = self._templates()
        found: list[tuple[str, str, Zonal]] = []
        zones = {zone for pool in common.in_region(self._cluster) for zone in self._zones(pool)}
        for zone in sorted(zones):
            for each in self._pages("GET", f"/zones/{zone}/instanceGroupManagers", "items"):
                pool = templates.get(_short(each.get("instanceTemplate") or each["versions"][0]["instanceTemplate"]))
                if pool is not None:
                    found.append(
                        (f"{pool} in {zone}", each["name"], Zonal(zone, each["name"], int(each["targetSize"])))
                    )
        wanted = {f"{pool} in {zone}": pool for pool in common.in_region(self._cluster) for zone in self._zones(pool)}
        by_place = common.exactly_one(self._cluster, list(wanted), found)
        return {
            pool: tuple(by_place[place] for place, of in wanted.items() if of == pool)
            for pool in common.in_region(self._cluster)
        }

    def _templates(self) -> dict[str, str]:
        """Templates of this cluster's workers -> the pool."""
        path = f"/regions/{self._cluster.spec.control_plane.region}/instanceTemplates"
        found = {}
        for each in self._pages("GET", path, "items"):
            labels = each.get("properties", {}).get("labels", {})
            if all(labels.get(key) == value for key, value in self._labels.items()) and labels.get("pool"):
                found[_short(each["selfLink"])] = str(labels["pool"])
        return found

    def _zones(self, pool: str) -> tuple[str, ...]:
        spec = self._cluster.spec
        return tuple(map(str, spec.pools[pool].zones or spec.control_plane.zones))

    def _at(self, zonal: Zonal) -> str:
        return f"{self._root()}/zones/{zonal.zone}/instanceGroupManagers/{quote(zonal.name)}"

    def _root(self) -> str:
        return f"/compute/v1/projects/{self._bearers.project()}"

    def _pages(self, method: str, path: str, key: str) -> Iterator[Any]:
        """All of a list, or GroupError: also where Google says that it left something out."""
        token = ""
        for _ in range(_MOST_PAGES):
            query = {"maxResults": str(self._page), **({"pageToken": token} if token else {})}
            page = self._api.ask(method, f"{self._root()}{path}?{urlencode(query)}") or {}
            warning = page.get("warning", {}).get("code", "")
            if page.get("unreachables") or warning not in ("", "NO_RESULTS_ON_PAGE"):
                raise GroupError(
                    f"Google Cloud left out a part of {path} ({warning or 'UNREACHABLE'}); none is believed"
                )
            yield from page.get(key, ())
            before, token = token, page.get("nextPageToken", "")
            if not token:
                return
            if token == before:
                break
        raise GroupError(f"Google Cloud gives one page of {path} again and again; none is believed")

    def _members(self, zonal: Zonal) -> list[Member]:
        path = f"/zones/{zonal.zone}/instanceGroupManagers/{quote(zonal.name)}/listManagedInstances"
        return [_member(each) for each in self._pages("POST", path, "managedInstances")]

    def _group(self, pool: str, zonals: Sequence[Zonal], names: Mapping[str, str]) -> Group:
        spec, machines, troubles = self._cluster.spec.pools[pool], [], []
        for zonal in zonals:
            for member in self._members(zonal):
                node = names.get(f"gce://{self._bearers.project()}/{zonal.zone}/{member.name}", "")
                machines.append(Machine(f"{zonal.zone}/{member.name}", node, member.state, zonal.zone))
                if member.error and member.state == "booting":
                    troubles.append(f"{zonal.zone}: {member.error}")
        size = sum(zonal.size for zonal in zonals)
        return Group(pool, size, spec.min, spec.max, tuple(machines), "; ".join(dict.fromkeys(troubles)))


def _member(told: Mapping[str, Any]) -> Member:
    errors = told.get("lastAttempt", {}).get("errors", {}).get("errors", ())
    error = "; ".join(dict.fromkeys(f"{each.get('code', '')}: {each.get('message', '')}" for each in errors))
    action, status = told.get("currentAction", "NONE"), told.get("instanceStatus", "")
    state: Literal["booting", "running", "leaving"] = "running"
    if action in _LEAVING or (action == "NONE" and status in _GOING):
        state = "leaving"
    elif action in _BOOTING or status in ("PROVISIONING", "STAGING"):
        state = "booting"
    return Member(told.get("name") or told["instance"].rpartition("/")[2], state, error)


def _short(link: str) -> str:
    """A link without the server, of which there are several."""
    return re.sub(r"^.*?/projects/", "projects/", link)
