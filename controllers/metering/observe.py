"""Reads facts from objects of the API, as JSON, with the time from which each holds. Pure.

An object's own times are believed within limits: nothing begins before what was known before, or after the moment of the
look. So a clock that jumps, on a host or an API server, moves an entry by no more than the interval between two looks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from clients.objects import Object
from cluster import hardware, preflight
from cluster.allocations import TEAM_KEY
from cluster.pools import POOL_LABEL
from cluster.spec import Cluster
from cluster.tenancy import TEAM_LABEL, Tenancy
from controllers.autoscaler.amounts import capacity_of, requests_of
from controllers.metering import published
from controllers.metering.facts import (
    Entry,
    Fact,
    HostFact,
    PodFact,
    Room,
    SpaceFact,
    Subject,
    Use,
    VolumeFact,
)
from controllers.metering.history import GRACE_S
from controllers.planner.resources import CPU, GPU, MEMORY, STORAGE
from controllers.tenancy.capacity.hosts import taint_of, teams_of
from controllers.tenancy.directory import TenantKind
from controllers.tenancy.directory.names import slug
from controllers.tenancy.sync.state import space_of

BOOT_S = 3600
"""After this time, a host that has never been Ready counts as broken."""
MOST = 10**12
"""Of any amount: what a node reports of itself must not exceed the integers of the day's table."""
AHEAD_S = 300
"""A node's clock may be so much ahead of the ledger's."""
NO_POOL = "(no pool)"
_MARK = "menagerie.dev/out-of-service"
"""`operations.drain.MARK`; a test compares them."""
_REPAIR = "repair"
_STARTING = ("node.kubernetes.io/not-ready", "node.cloudprovider.kubernetes.io/uninitialized", preflight.KEY)
_ENDED = ("Succeeded", "Failed")


class Look(NamedTuple):
    """A moment of looking. at: now. floor: the moment up to which everything was known before, 0 for nothing."""

    at: int
    floor: int


Before = tuple[int, Fact] | None
"""(since, fact) of what was known of a thing; None for a new one."""


class Observer:
    """Reads the objects of one cluster."""

    def __init__(self, cluster: Cluster, settings: Tenancy) -> None:
        self._cluster, self._settings = cluster, settings
        self._at_sites = {host.name: pool for pool, host in cluster.host_list()}
        rules = cluster.spec.repair.conditions
        self._bad = {(rule.type, str(rule.status)) for rule in rules if rule.type != "Ready"}

    def host(self, node: Object, renewed: int | None, before: Before, look: Look) -> Iterator[Entry]:
        """Yield what is new of a node. renewed: when its kubelet renewed its Lease last, None if that is unknown."""
        name, created = node["metadata"]["name"], _seconds(node["metadata"]["creationTimestamp"], look.at)
        former = before[1] if before and isinstance(before[1], HostFact) else None
        fact = self._host(node, former, look.at - created)
        if fact == former:
            return
        changed = _ready_since(node, look.at)
        if fact.down:
            changed = min(changed, look.at if renewed is None else renewed)
        if former is None:
            since = max(created, look.floor)
            if fact.down and since < changed:
                # What it was before is unknown, but it was there.
                yield Entry(since, Subject.HOST, name, fact._replace(down=False))
                since = _within(changed, since, look.at)
        elif fact.down != former.down:
            since = _within(changed, look.floor - GRACE_S * fact.down, look.at)
        else:
            since = _written(node, look)
        yield Entry(since, Subject.HOST, name, fact)

    def traffic(self, node: Object, before: Before, look: Look) -> Iterator[Entry]:
        """Yield the counters that a node has published, if they are new. Errors: raises ValueError for what are none."""
        metadata = node["metadata"]
        text = (metadata.get("annotations") or {}).get(published.ANNOTATION)
        if text is None:
            return
        moment, fact = published.read(text)
        if moment is not None and moment > look.at + AHEAD_S:
            raise ValueError(f"annotation {published.ANNOTATION} is of a time to come: its clock is ahead")
        since = look.at if moment is None else min(moment, look.at)
        # Counters that stand still are a reading, too, if it has a time of its own.
        if before is None or (before[1] != fact if moment is None else since > before[0]):
            yield Entry(since, Subject.COUNTERS, metadata["name"], fact)

    def absent(self, present: Iterable[str], known: Mapping[str, Fact], look: Look) -> Iterator[Entry]:
        """Yield what is new of machines at sites that have no node: they are broken, or have not joined yet."""
        for name in sorted(self._at_sites.keys() - set(present)):
            former = known.get(name)
            if isinstance(former, HostFact):
                idle = former.idle if former.idle in (Use.DRAINED, Use.BOOTING) else Use.BROKEN
                fact = former._replace(idle=idle, down=True)
            else:
                fact = HostFact(self._at_sites[name], Use.BOOTING, True, "", self._expected(self._at_sites[name]))
            if fact != former:
                yield Entry(look.at, Subject.HOST, name, fact)

    def removed(self, known: Mapping[str, Fact]) -> list[str]:
        """Return the hosts of sites' pools that are down and that the spec no longer has."""
        pools = self._cluster.spec.pools
        return [
            name
            for name, fact in sorted(known.items())
            if isinstance(fact, HostFact) and fact.down and fact.pool in pools and pools[fact.pool].site
            if name not in self._at_sites
        ]

    def is_ready(self, node: Object) -> bool:
        """Return whether a node is Ready."""
        conditions = (node.get("status") or {}).get("conditions") or ()
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def is_at_site(self, name: str) -> bool:
        """Return whether a machine of the spec has this name: it stays a host when its node is deleted."""
        return name in self._at_sites

    def pod(self, pod: Object, before: Before, look: Look, *, gone: bool = False) -> Iterator[Entry]:
        """Yield what is new of a pod. gone: it was deleted."""
        node, uid = pod["spec"].get("nodeName"), pod["metadata"]["uid"]
        if not node:
            return
        ended = gone or (pod.get("status") or {}).get("phase") in _ENDED
        finish = _finished(pod, look.at)
        if before is None and ended and (finish or (look.at if gone else 0)) <= look.floor:
            return  # it ended in a time that is known already, or nobody knows when
        since = before[0] if before else _within(_bound(pod, look.at), 0, look.at)
        if before is None:
            amounts = requests_of(pod["spec"])
            need = Room(amounts.get(GPU, 0), amounts.get(CPU, 0), amounts.get(MEMORY, 0))
            yield Entry(since, Subject.POD, uid, PodFact(pod["metadata"]["namespace"], node, need))
        if ended:
            yield Entry(_within(finish or look.at, since, look.at), Subject.POD, uid, None)

    def space(self, namespace: Object, before: Before, look: Look) -> Iterator[Entry]:
        """Yield what is new of a namespace."""
        tenant = space_of(namespace, self._settings).tenant
        label = (namespace["metadata"].get("labels") or {}).get(TEAM_LABEL, "")
        if tenant is not None and tenant.kind is TenantKind.PERSON:
            fact = SpaceFact("", tenant.name, tuple(sorted(teams_of(namespace))))
        else:
            # As labels of hosts have it, and not as the directory writes it.
            fact = SpaceFact(label or (slug(tenant.name) if tenant else ""))
        yield from _entry(Subject.SPACE, namespace, fact, before, look)

    def volume(self, volume: Object, before: Before, look: Look) -> Iterator[Entry]:
        """Yield what is new of a persistent volume."""
        size = capacity_of({STORAGE: str((volume["spec"].get("capacity") or {}).get("storage", "0"))})[STORAGE]
        size = min(size, MOST)
        is_bound = (volume.get("status") or {}).get("phase") == "Bound"
        claim = (volume["spec"].get("claimRef") or {}).get("namespace", "") if is_bound else ""
        yield from _entry(Subject.VOLUME, volume, VolumeFact(claim, size), before, look)

    def _host(self, node: Object, former: HostFact | None, age_s: int) -> HostFact:
        labels = node["metadata"].get("labels") or {}
        pool = self._at_sites.get(node["metadata"]["name"]) or labels.get(POOL_LABEL) or NO_POOL
        team = taint_of(node) or labels.get(TEAM_KEY, "")
        status = node.get("status") or {}
        states = {(each["type"], each["status"]) for each in status.get("conditions") or ()}
        is_ready, is_bad = ("Ready", "True") in states, bool(self._bad & states)
        keys = {taint["key"] for taint in node["spec"].get("taints") or ()}
        starts = not is_ready or bool(keys & set(_STARTING))
        is_new = former is None or former.idle is Use.BOOTING
        if node["spec"].get("unschedulable"):
            idle = Use.BROKEN if _taken_by(node) == _REPAIR else Use.DRAINED
        elif starts and is_new and age_s <= BOOT_S:
            idle = Use.BOOTING
        elif starts or is_bad:
            idle = Use.BROKEN
        else:
            idle = Use.HELD if team else Use.FREE
        return HostFact(pool, idle, not is_ready, team, *_room(status, former))

    def _expected(self, pool: str) -> Room:
        expected = hardware.of_pool(self._cluster.spec.control_plane.cloud, self._cluster.spec.pools[pool])
        return Room(expected.gpus.count if expected and expected.gpus else 0)


def _entry(subject: Subject, thing: Object, fact: Fact, before: Before, look: Look) -> Iterator[Entry]:
    """Yield the entry if the fact is new: since the object's creation, or its last change."""
    metadata = thing["metadata"]
    if before is None:
        since = _within(_seconds(metadata["creationTimestamp"], look.at), look.floor, look.at)
        yield Entry(since, subject, metadata["name"], fact)
    elif before[1] != fact:
        yield Entry(_written(thing, look), subject, metadata["name"], fact)


def _room(status: Mapping[str, Any], former: HostFact | None) -> tuple[Room, int]:
    """Return (rooms, unhealthy GPUs). A GPU that a node no longer lists is unhealthy: it was paid for."""
    whole, usable = (
        {name: min(amount, MOST) for name, amount in capacity_of(status.get(part) or {}).items()}
        for part in ("capacity", "allocatable")
    )
    gpus = max(whole.get(GPU, 0), former.room.gpus if former else 0)
    if not usable and former:
        return former.room, former.bad_gpus
    return Room(gpus, usable.get(CPU, 0), usable.get(MEMORY, 0)), gpus - min(usable.get(GPU, 0), gpus)


def _taken_by(node: Object) -> str:
    """Return the verb that took the node out of service, "" if none did or its mark can't be read."""
    try:
        return str(json.loads((node["metadata"].get("annotations") or {}).get(_MARK, "{}"))["by"])
    except (ValueError, TypeError, KeyError):
        return ""


def _ready_since(node: Object, at: int) -> int:
    conditions = (node.get("status") or {}).get("conditions") or ()
    times = [each.get("lastTransitionTime") for each in conditions if each["type"] == "Ready"]
    return _seconds(times[0], at) if times and times[0] else at


def _bound(pod: Object, at: int) -> int:
    """Return when the pod was bound to its host."""
    created = _seconds(pod["metadata"]["creationTimestamp"], at)
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if (
            condition["type"] == "PodScheduled"
            and condition["status"] == "True"
            and condition.get("lastTransitionTime")
        ):
            return max(created, _seconds(condition["lastTransitionTime"], at))
    return created


def _finished(pod: Object, at: int) -> int:
    """Return when the last container ended, 0 if one has not, or nobody says."""
    status = pod.get("status") or {}
    ends = [(each.get("state") or {}).get("terminated") for each in status.get("containerStatuses") or ()]
    times = [each.get("finishedAt") for each in ends if each]
    if not times or len(times) < len(ends) or not all(times):
        return 0
    return max(_seconds(each, at) for each in times)


def _written(thing: Object, look: Look) -> int:
    """Return when an object was last written, as the API records it (managedFields); between the last look and this one."""
    times = [_seconds(each.get("time"), look.at) for each in thing["metadata"].get("managedFields") or ()]
    recent = [moment for moment in times if look.floor < moment <= look.at]
    return max(recent, default=look.at)


def _within(moment: int, low: int, high: int) -> int:
    return min(max(moment, low), high)


def _seconds(stamp: Any, otherwise: int) -> int:
    """Convert RFC 3339 to Unix time in whole seconds. What is no time counts as `otherwise`."""
    try:
        return int(datetime.fromisoformat(str(stamp)).timestamp())
    except (ValueError, OverflowError):
        return otherwise
