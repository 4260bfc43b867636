"""A cluster's API and a bucket in memory, with clocks that tests move."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

from obstore.store import MemoryStore

from cluster.spec import Cluster as Spec
from controllers.bookkeeping.clock import LedgerClock
from controllers.bookkeeping.run import Bookkeeper
from controllers.bookkeeping.store import LedgerStore
from controllers.metering.day import Day
from operations.record.store import RecordStore, RecordStoreError
from tests.metering.lives import DAY, HOUR, START

NODES, PODS, SPACES = "/api/v1/nodes", "/api/v1/pods", "/api/v1/namespaces"
GPU = "nvidia.com/gpu"


def stamp(moment: float) -> str:
    return f"{datetime.fromtimestamp(int(moment), UTC):%Y-%m-%dT%H:%M:%SZ}"


@dataclass
class Cluster:
    """An API server. Objects by path; every write is an event with a version.

    forgets: watches from before this version are answered with 410. may: (group, resource) that the controller may list.
    """

    now: float
    things: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    events: list[tuple[int, str, str, dict[str, Any]]] = field(default_factory=list)
    version: int = 100
    forgets: int = 0
    silent: bool = False
    requests: list[str] = field(default_factory=list)
    may: set[tuple[str, str]] = field(default_factory=set)

    def write(self, path: str, thing: dict[str, Any], *, gone: bool = False) -> None:
        """Create, change or delete an object."""
        self.version += 1
        key = thing["metadata"].get("uid") or thing["metadata"]["name"]
        own = self.things.setdefault(path, {})
        kind = "DELETED" if gone else "MODIFIED" if key in own else "ADDED"
        copy = json.loads(json.dumps(thing))
        copy["metadata"]["resourceVersion"] = str(self.version)
        if gone:
            own.pop(key, None)
        else:
            own[key] = copy
        self.events.append((self.version, path, kind, copy))

    def request(self, method: str, url: str, **how: Any) -> Any:
        """Answer like urllib3's pool."""
        address = urlsplit(url)
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        self.requests.append(f"{method} {address.path}{' watch' if 'watch' in query else ''}")
        if self.silent:
            import urllib3

            raise urllib3.exceptions.HTTPError("no answer")
        if address.path == "/version":
            return self._answer(b"{}")
        if address.path.endswith("/subjectaccessreviews"):
            return self._review(how["body"])
        if "watch" in query:
            since = int(query["resourceVersion"])
            if since < self.forgets:
                return self._answer(b'{"type":"ERROR","object":{"code":410,"reason":"Expired"}}\n')
            return self._answer("".join(self._lines(address.path, since)).encode())
        items = list(self.things.get(address.path, {}).values())
        return self._answer(json.dumps({"metadata": {"resourceVersion": str(self.version)}, "items": items}).encode())

    def _review(self, body: Any) -> Any:
        asked = json.loads(body)["spec"]["resourceAttributes"]
        allowed = (asked["group"], asked["resource"]) in self.may
        return self._answer(json.dumps({"status": {"allowed": allowed}}).encode())

    def _lines(self, path: str, since: int) -> Iterator[str]:
        for version, of, kind, thing in self.events:
            if of == path and version > since:
                yield json.dumps({"type": kind, "object": thing}) + "\n"
        bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(self.version)}}}
        yield json.dumps(bookmark) + "\n"

    def _answer(self, data: bytes) -> Any:
        date = format_datetime(datetime.fromtimestamp(int(self.now), UTC), usegmt=True)
        return SimpleNamespace(status=200, reason="OK", data=data, headers={"Date": date})

    def api(self, **_: Any) -> Any:
        """Return what `clients.rest.Rest` needs of the library's client."""
        configuration = SimpleNamespace(host="https://api", auth_settings=dict)
        return SimpleNamespace(
            default_headers={}, configuration=configuration, rest_client=SimpleNamespace(pool_manager=self)
        )


class Bucket(RecordStore):
    """A bucket in memory. silent: it answers nothing."""

    def __init__(self) -> None:
        super().__init__(MemoryStore(), "bucket records", shared=True)
        self.silent = False

    def create(self, key: str, value: bytes) -> Any:
        if self.silent:
            raise RecordStoreError("can't use bucket records: no answer")
        return super().create(key, value)


@dataclass
class World:
    """A cluster, its bucket, and the time, which all clocks share until a test moves one."""

    start: int
    cluster: Cluster = field(init=False)
    bucket: Bucket = field(default_factory=Bucket)
    wall_off: float = 0.0
    steady: float = 1000.0

    def __post_init__(self) -> None:
        self.cluster = Cluster(float(self.start))

    def store(self) -> LedgerStore:
        return LedgerStore(self.bucket)

    def clock(self) -> LedgerClock:
        return LedgerClock(lambda: self.cluster.now + self.wall_off, lambda: self.steady)

    def wait(self, seconds: float) -> None:
        self.cluster.now += seconds
        self.steady += seconds

    def keys(self, prefix: str = "ledger/") -> list[str]:
        return self.bucket.keys(prefix)


def node(name: str, ready: str = "True", since: float = START - 7000, **more: Any) -> dict[str, Any]:
    resources = {"cpu": "4", "memory": "8Gi", GPU: "8"}
    conditions = [{"type": "Ready", "status": ready, "lastTransitionTime": stamp(since)}]
    metadata = {"name": name, "creationTimestamp": stamp(START - 7200)}
    return {
        "metadata": metadata,
        "spec": more,
        "status": {"conditions": conditions, "capacity": resources, "allocatable": resources},
    }


def pod(uid: str, host: str, bound: float, gpus: int = 8, ended: float | None = None) -> dict[str, Any]:
    state = {"running": {}} if ended is None else {"terminated": {"finishedAt": stamp(ended)}}
    return {
        "metadata": {"name": uid, "uid": uid, "namespace": "team-vision", "creationTimestamp": stamp(bound)},
        "spec": {"nodeName": host, "containers": [{"resources": {"requests": {GPU: str(gpus)}}}]},
        "status": {"phase": "Running" if ended is None else "Succeeded", "containerStatuses": [{"state": state}]},
    }


def keeper(world: World, spec: Spec) -> Bookkeeper:
    assert spec.spec.tenancy
    return Bookkeeper(world.cluster, world.store(), spec.spec.tenancy, world.clock())


def rounds(world: World, spec: Spec, book: Bookkeeper, until: int, every_s: int = 1800) -> list[Day]:
    """Run rounds until a moment. Return the days that were written, without the one in which the ledger began."""
    made: list[Day] = []
    while world.cluster.now < until:
        made += [day for day in book.once(spec).days if day.name >= DAY.isoformat()]
        world.wait(every_s)
    return made


def use(day: Day) -> dict[tuple[str, str], float]:
    """Return (team, use) -> GPU hours, without zeros."""
    sums: dict[tuple[str, str], float] = {}
    for key, amounts in day.rows():
        sums[key.team, key.use.value] = sums.get((key.team, key.use.value), 0) + amounts["gpus"] / HOUR
    return {key: amount for key, amount in sums.items() if amount}
